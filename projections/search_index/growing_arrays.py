"""Growing arrays: append to the arrays of an index without a copy of what they hold."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Room behind a full array, as a share of its length. Pages of the room that nothing was written to take no memory.
_ROOM_SHARE = 0.25
_ROOM_MIN = 16


class GrowingArrays:
    """The memory of arrays of one length, with room behind them. Safe to use from many threads.

    `extended` returns views of it. Views that were returned before keep their length and their numbers.

    Parameters:
        buffers: the memory by name.
        filled: the numbers that are filled in each of them.
    """

    def __init__(self, buffers: Mapping[str, NDArray[Any]] | None = None, filled: int = 0) -> None:
        self._buffers: dict[str, NDArray[Any]] = dict(buffers or {})
        self._filled = filled
        self._lock = threading.Lock()

    def extended(
        self, views: Mapping[str, NDArray[Any]], added: Mapping[str, NDArray[Any]]
    ) -> tuple[GrowingArrays, dict[str, NDArray[Any]]]:
        """Return `views` with `added` at the end, by name, and the memory that they are in.

        It is this memory when `views` are the last ones that it returned. Otherwise another thread has extended them
        already, or they were cut, and the memory is a copy.

        Parameters:
            views: arrays of one length: those of this memory, or of none.
            added: arrays of one length, with the names of `views`.
        """
        first = next(iter(views))
        length = len(views[first])
        end = length + len(added[first])
        with self._lock:
            if self._filled == length and self._buffers:
                for name, values in added.items():
                    self._buffers[name] = buffer = _with_room(self._buffers[name], length, end)
                    buffer[length:end] = values
                self._filled = end
                return self, {name: buffer[:end] for name, buffer in self._buffers.items()}
        return _copied(views, end).extended(views, added)


def _copied(views: Mapping[str, NDArray[Any]], end: int) -> GrowingArrays:
    """Return new arrays with the numbers of `views`, and `views` as their last views."""
    length = len(next(iter(views.values())))
    return GrowingArrays({name: _grown(view, length, end) for name, view in views.items()}, length)


def _with_room(array: NDArray[Any], filled: int, end: int) -> NDArray[Any]:
    """Return `array` when it has room for `end` numbers, else a longer copy of its first `filled` numbers."""
    if end <= len(array):
        return array
    return _grown(array, filled, end)


def _grown(array: NDArray[Any], filled: int, end: int) -> NDArray[Any]:
    """Return a copy of the first `filled` numbers of `array` with room for `end` numbers and more."""
    grown = np.empty(end + _ROOM_MIN + int(end * _ROOM_SHARE), array.dtype)
    grown[:filled] = array[:filled]
    return grown
