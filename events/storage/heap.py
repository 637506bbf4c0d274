"""Heap: gives the free memory of the C library's heap back to the system."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

#: The symbols of this process; glibc is there on Linux alone.
_library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None


def trim_heap() -> None:
    """Give free memory back to the system, where the C library is glibc; elsewhere do nothing.

    The rows of a large load are Python objects for a moment. Their memory stays with the process otherwise, since it is
    full of holes: 10 MB after a load of 50,000 episodes with their vectors. It takes 2 to 3 ms.
    """
    trim = getattr(_library, "malloc_trim", None)
    if trim is not None:
        trim(0)
