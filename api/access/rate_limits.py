"""Rate limits: the requests that a token, or an address without one, may send in a minute.

They are counted by seconds in memory that all processes of a server share, so that a limit holds for all of them
together. A window has the present second and the 59 before it.
"""

from __future__ import annotations

import math
import struct
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import blake2b

from recollect.events.errors import TooManyRequests
from recollect.events.storage.shared_memory import SharedMemory

_WINDOW_SECONDS = 60
#: A key's digest, the second of its last request, and its requests in each second of the window.
_ENTRY = struct.Struct(f"<16sQ{_WINDOW_SECONDS}I")
#: Keys are kept in sets of eight, where the one used least recently makes room: 4,096 tokens, and as many addresses.
_WAYS, _SETS = 8, 512
_TABLE_BYTES = _SETS * _WAYS * _ENTRY.size


class RateMemory:
    """The counts of one server.

    Parameters:
        is_shared: whether the processes that are forked from this one count here, too.
    """

    def __init__(self, *, is_shared: bool = False) -> None:
        #: One table for tokens and one for addresses, so that requests without a token never push a token out.
        self.shared = SharedMemory(2 * _TABLE_BYTES) if is_shared else None
        self._own = bytearray(0 if is_shared else 2 * _TABLE_BYTES)

    @property
    def bytes(self) -> bytearray:
        """Return the bytes of both tables."""
        # `mmap` has the methods of a bytearray that are used here.
        return self._own if self.shared is None else self.shared.bytes  # pyright: ignore[reportReturnType]


class RateLimits:
    """The rates of one server. Safe to use from many threads.

    Parameters:
        per_minute: the requests of a token in a minute; 0 sets no limit.
        denials_per_minute: the denied requests of an address in a minute that are answered; 0 sets no limit.
        memory: where they are counted; memory of its own when None.
        clock: the present time in seconds, the same for all processes.
    """

    def __init__(
        self,
        per_minute: int,
        denials_per_minute: int,
        *,
        memory: RateMemory | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_minute, self._denials_per_minute = per_minute, denials_per_minute
        self._memory = memory or RateMemory()
        self._clock = clock
        self._threads = threading.Lock()

    def count_request(self, token_id: str, cost: int) -> None:
        """Count a request of a token.

        Raises:
            TooManyRequests: the token is over its rate; the request is not counted then.
        """
        if self._per_minute:
            self._count(0, token_id, cost, self._per_minute)

    def count_denial(self, address: str) -> None:
        """Count a denied request of an address; raise `TooManyRequests` over its rate."""
        if self._denials_per_minute:
            self._count(_TABLE_BYTES, address, 1, self._denials_per_minute)

    def _count(self, table: int, key: str, cost: int, limit: int) -> None:
        digest = blake2b(key.encode(errors="replace"), digest_size=16).digest()
        with self._lock():
            seconds = self._hit(table, digest, cost, limit)
        if seconds is not None:
            raise TooManyRequests(f"over {limit:,} requests in a minute; wait {seconds} seconds", retry_seconds=seconds)

    def _lock(self) -> AbstractContextManager[object]:
        return self._threads if self._memory.shared is None else self._memory.shared.lock()

    def _hit(self, table: int, digest: bytes, cost: int, limit: int) -> int | None:
        """Count `cost` requests of a key and return None; over the limit, return the seconds until they are allowed."""
        now = self._clock()
        second = int(now)
        offset, last, counts = self._entry(table, digest, second)
        for passed in range(last + 1, min(second, last + _WINDOW_SECONDS) + 1):
            counts[passed % _WINDOW_SECONDS] = 0
        excess = sum(counts) + cost - limit
        if excess > 0:
            return _seconds_until(counts, excess, now)
        counts[second % _WINDOW_SECONDS] += cost
        _ENTRY.pack_into(self._memory.bytes, offset, digest, max(second, last), *counts)
        return None

    def _entry(self, table: int, digest: bytes, second: int) -> tuple[int, int, list[int]]:
        """Return the place of a key, its last second and its counts; a new key gets the oldest place."""
        start = table + int.from_bytes(digest[:4], "big") % _SETS * _WAYS * _ENTRY.size
        oldest, oldest_second = start, second + 1
        for offset in range(start, start + _WAYS * _ENTRY.size, _ENTRY.size):
            stored, last, *counts = _ENTRY.unpack_from(self._memory.bytes, offset)
            if stored == digest:
                return offset, last, counts
            if last < oldest_second:
                oldest, oldest_second = offset, last
        return oldest, second, [0] * _WINDOW_SECONDS


def _seconds_until(counts: list[int], excess: int, now: float) -> int:
    """Return the seconds until `excess` of the counted requests have left the window."""
    for second in range(int(now) - _WINDOW_SECONDS + 1, int(now) + 1):
        excess -= counts[second % _WINDOW_SECONDS]
        if excess <= 0:
            return max(1, math.ceil(second + _WINDOW_SECONDS - now))
    return _WINDOW_SECONDS
