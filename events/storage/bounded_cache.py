"""Bounded caches: the values used last, up to a sum of their sizes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def _unit_size(_value: object) -> int:
    return 1


class BoundedCache(Generic[Key, Value]):
    """A cache that evicts the least recently used value first. Safe to use from many threads; a call takes one lock.

    The newest value stays whatever its size, so that what is too large for the cache is still found the next time.

    Parameters:
        maximum: the sum of the sizes of the values kept.
        size_of: the size of a value, which must not change while it is kept; by default a value counts 1.
        entries_max: values kept, whatever their sizes; None for any number.
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

    def get(self, key: Key) -> Value | None:
        """Return the value of `key`, which is now the most recently used one; None when it is not kept."""
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def get_all(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Return the values of those `keys` that are kept, under one lock."""
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
        """Keep `value`, in place of one that is kept already unless `unless` holds of that one; evict what is over."""
        with self._lock:
            current = self._values.get(key)
            if current is None or unless is None or not unless(current):
                self._set(key, value)
            self._values.move_to_end(key)
            self._evict()

    def put_all(self, values: Mapping[Key, Value]) -> None:
        """Keep `values`, in the place of those that are kept already, under one lock; evict what is over."""
        with self._lock:
            for key, value in values.items():
                self._set(key, value)
                self._values.move_to_end(key)
            self._evict()

    def clear(self) -> None:
        """Forget every value."""
        with self._lock:
            self._values.clear()
            self._size = 0

    def _set(self, key: Key, value: Value) -> None:
        current = self._values.get(key)
        if current is not None:
            self._size -= self._size_of(current)
        self._values[key] = value
        self._size += self._size_of(value)

    def _evict(self) -> None:
        values = self._values
        while len(values) > 1 and (
            self._size > self._maximum or (self._entries_max is not None and len(values) > self._entries_max)
        ):
            self._size -= self._size_of(values.popitem(last=False)[1])
