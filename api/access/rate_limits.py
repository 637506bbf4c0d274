"""Rate limits: the requests that a token, or an address without one, may send in a minute."""

from __future__ import annotations

import math
import time

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from recollect.events.errors import TooManyRequests


class RateLimits:
    """The rates of one server, counted in its memory. Safe to use from many threads.

    Parameters:
        per_minute: the requests of a token in a minute; 0 sets no limit.
        denials_per_minute: the denied requests of an address in a minute that are answered; 0 sets no limit.
    """

    def __init__(self, per_minute: int, denials_per_minute: int) -> None:
        self._limiter = MovingWindowRateLimiter(MemoryStorage())
        self._requests = RateLimitItemPerMinute(per_minute) if per_minute else None
        self._denials = RateLimitItemPerMinute(denials_per_minute) if denials_per_minute else None

    def count_request(self, token_id: str, cost: int) -> None:
        """Count a request of a token.

        Raises:
            TooManyRequests: the token is over its rate; the request is not counted then.
        """
        if self._requests is not None and not self._limiter.hit(self._requests, "token", token_id, cost=cost):
            raise self._too_many(self._requests, "token", token_id)

    def count_denial(self, address: str) -> None:
        """Count a denied request of an address; raise `TooManyRequests` over its rate."""
        if self._denials is not None and not self._limiter.hit(self._denials, "address", address):
            raise self._too_many(self._denials, "address", address)

    def _too_many(self, item: RateLimitItemPerMinute, *identifiers: str) -> TooManyRequests:
        ends_at = self._limiter.get_window_stats(item, *identifiers).reset_time
        seconds = min(60, max(1, math.ceil(ends_at - time.time())))
        return TooManyRequests(
            f"over {item.amount:,} requests in a minute; wait {seconds} seconds", retry_seconds=seconds
        )
