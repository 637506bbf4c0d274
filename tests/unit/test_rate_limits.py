"""Rate limits: moving windows in shared memory."""

from __future__ import annotations

import pytest

from recollect.api.access.rate_limits import RateLimits, RateMemory
from recollect.events.errors import TooManyRequests


class Clock:
    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


def limits_of(per_minute: int, clock: Clock, memory: RateMemory | None = None) -> RateLimits:
    return RateLimits(per_minute, per_minute, memory=memory, clock=clock)


def test_a_window_moves_with_the_time_and_says_when_the_next_request_is_allowed() -> None:
    clock = Clock()
    limits = limits_of(3, clock)
    limits.count_request("ann", 1)
    clock.seconds += 10
    limits.count_request("ann", 2)
    with pytest.raises(TooManyRequests) as refused:
        limits.count_request("ann", 1)
    assert refused.value.retry_seconds == 50
    with pytest.raises(TooManyRequests) as refused:
        limits.count_request("ann", 2)
    assert refused.value.retry_seconds == 60
    clock.seconds += 50
    limits.count_request("ann", 1)
    with pytest.raises(TooManyRequests):
        limits.count_request("ann", 1)
    clock.seconds += 1_000
    limits.count_request("ann", 3)


def test_a_request_that_costs_more_than_the_limit_is_never_allowed() -> None:
    with pytest.raises(TooManyRequests) as refused:
        limits_of(3, Clock()).count_request("ann", 4)
    assert refused.value.retry_seconds == 60


def test_tokens_and_addresses_are_counted_apart_and_zero_sets_no_limit() -> None:
    clock = Clock()
    limits = limits_of(1, clock)
    limits.count_request("ann", 1)
    limits.count_denial("ann")
    limits.count_request("bob", 1)
    with pytest.raises(TooManyRequests):
        limits.count_denial("ann")
    free = limits_of(0, clock)
    for _ in range(100):
        free.count_request("ann", 10)


def test_processes_that_share_the_memory_count_together() -> None:
    clock, memory = Clock(), RateMemory(is_shared=True)
    first, second = limits_of(10, clock, memory), limits_of(10, clock, memory)
    for limits in (first, second) * 5:
        limits.count_request("ann", 1)
    for limits in (first, second):
        with pytest.raises(TooManyRequests):
            limits.count_request("ann", 1)


def test_ten_thousand_addresses_fit_and_push_no_token_out() -> None:
    clock = Clock()
    limits = limits_of(1, clock)
    limits.count_request("ann", 1)
    for number in range(10_000):
        limits.count_denial(f"10.0.{number >> 8}.{number & 255}")
    with pytest.raises(TooManyRequests):
        limits.count_request("ann", 1)
