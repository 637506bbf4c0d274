"""The limits on builds of past read models: some moments at a time, some threads that wait for them."""

from __future__ import annotations

import pytest

from recollect.events.errors import TooManyBuilds
from recollect.projections.read_models.build_limits import BuildLimits


def test_one_namespace_builds_four_moments_and_a_fifth_is_refused_with_a_time_to_ask_again() -> None:
    limits = BuildLimits()
    for version in range(1, 5):
        limits.enter("a", version)
    with pytest.raises(TooManyBuilds) as refused:
        limits.enter("a", 5)
    assert refused.value.retry_seconds > 0
    limits.leave("a", 1)
    limits.enter("a", 5)


def test_all_namespaces_together_build_eight_moments() -> None:
    limits = BuildLimits()
    for name in "abcdefgh":
        limits.enter(name, 1)
    with pytest.raises(TooManyBuilds):
        limits.enter("i", 1)
    # Whoever waits for one of the eight adds no build.
    limits.enter("a", 1)


def test_sixteen_threads_wait_at_most_even_for_one_moment() -> None:
    limits = BuildLimits()
    for _ in range(16):
        limits.enter("a", 1)
    with pytest.raises(TooManyBuilds):
        limits.enter("a", 1)
    for _ in range(16):
        limits.leave("a", 1)
    limits.enter("b", 1)
