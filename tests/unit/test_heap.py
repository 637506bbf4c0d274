"""The heaps of the C library: threads share two, where it is glibc."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_THREADS = 8
#: Threads that allocate at the same time, and the heaps that `malloc_info` then lists in XML.
_PROGRAM = f"""
import ctypes, threading
from recollect.events.storage.heap import share_heaps
library = ctypes.CDLL(None)
library.malloc.restype = library.fopen.restype = ctypes.c_void_p
SHARE
together = threading.Barrier({_THREADS})
def allocate():
    together.wait()
    library.malloc(100_000)
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range({_THREADS})]
for thread in threads: thread.start()
for thread in threads: thread.join()
library.malloc_info(0, ctypes.c_void_p(library.fopen(b"/dev/stdout", b"w")))
library.fflush(None)
"""


def _heaps(share: str) -> int:
    program = _PROGRAM.replace("SHARE", share)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return done.stdout.count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_threads_share_two_heaps_and_have_more_otherwise() -> None:
    assert _heaps("share_heaps()") <= 2
    assert _heaps("") > 2
