"""Bounded caches: LRU caches that are limited by the sum of the sizes of their values."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def _unit_size(_value: object) -> int:
    """Return 1, the size of every value by default."""
    return 1


class BoundedCache(Generic[Key, Value]):
    """A cache that evicts the least recently used value first. Safe to use from many threads; a call takes one lock.

    The newest value is never evicted, also when it is larger than the cache, so that the next read is a hit.

    Parameters:
        maximum: the largest sum of the sizes of all values.
        size_of: returns the size of a value, which must not change while it is cached; 1 by default.
        entries_max: the largest number of values; None for any number.
    """

    def __init__(
        self, maximum: int, size_of: Callable[[Value], int] = _unit_size, *, entries_max: int | None = None
    ) -> None:
        self._maximum = maximum
        self._size_of = size_of
        self._entries_max = entries_max
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    @property
    def size(self) -> int:
        """Return the sum of the sizes of all values."""
        return self._size

    def values(self) -> list[Value]:
        """Return the cached values, the least recently used one first."""
        with self._lock:
            return list(self._values.values())

    def keys(self) -> set[Key]:
        """Return the keys of all cached values."""
        with self._lock:
            return set(self._values)

    def get(self, key: Key) -> Value | None:
        """Return the value of `key` and mark it as the most recently used value; None when it is not cached."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def get_all(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Return the cached values of `keys`, under one lock."""
        hits: dict[Key, Value] = {}
        values = self._values
        with self._lock:
            for key in keys:
                value = values.get(key)
                if value is not None:
                    values.move_to_end(key)
                    hits[key] = value
        return hits

    def put(self, key: Key, value: Value, *, unless: Callable[[Value], bool] | None = None) -> None:
        """Store `value`, then evict values over the limits.

        Parameters:
            unless: a cached value for which it returns True is not replaced.
        """
        with self._lock:
            current = self._values.get(key)
            if current is None or unless is None or not unless(current):
                self._set(key, value)
            self._values.move_to_end(key)
            self._evict()

    def put_all(self, values: Mapping[Key, Value]) -> None:
        """Store `values`, replacing cached values of their keys, under one lock, then evict values over the limits."""
        with self._lock:
            for key, value in values.items():
                self._set(key, value)
                self._values.move_to_end(key)
            self._evict()

    def remove(self, unwanted: Callable[[Key], bool]) -> None:
        """Remove the values whose keys `unwanted` returns True for."""
        with self._lock:
            for key in [key for key in self._values if unwanted(key)]:
                self._size -= self._size_of(self._values.pop(key))

    def clear(self) -> None:
        """Remove every value."""
        with self._lock:
            self._values.clear()
            self._size = 0

    def _set(self, key: Key, value: Value) -> None:
        """Store `value` and update the sum of sizes. The caller holds the lock."""
        current = self._values.get(key)
        if current is not None:
            self._size -= self._size_of(current)
        self._values[key] = value
        self._size += self._size_of(value)

    def _evict(self) -> None:
        """Evict the least recently used values until the limits hold. The caller holds the lock."""
        values = self._values
        while len(values) > 1 and (
            self._size > self._maximum or (self._entries_max is not None and len(values) > self._entries_max)
        ):
            self._size -= self._size_of(values.popitem(last=False)[1])
