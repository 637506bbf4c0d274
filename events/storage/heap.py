"""Heap: keeps the heaps of the C library small, where it is glibc; elsewhere the functions do nothing."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

#: The symbols of this process; glibc is there on Linux alone.
_library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
#: `M_ARENA_MAX` of malloc.h: the heaps of a process.
_ARENA_MAX = -8
_HEAPS = 2


def share_heaps() -> None:
    """Let the threads that begin from now on share two heaps.

    Each would get its own, up to eight for each processor, and each heap keeps its holes: of 215 MB in the sixteen
    heaps of a server process 92 were in use after an hour of `ops/faults soak`.
    """
    set_option = getattr(_library, "mallopt", None)
    if set_option is not None:
        set_option(_ARENA_MAX, _HEAPS)


def trim_heap() -> None:
    """Give free memory back to the system.

    The rows of a large load are Python objects for a moment. Their memory stays with the process otherwise, since it is
    full of holes: 10 MB after a load of 50,000 episodes with their vectors. It takes 2 to 3 ms.
    """
    trim = getattr(_library, "malloc_trim", None)
    if trim is not None:
        trim(0)
