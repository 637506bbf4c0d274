"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Long enough for a machine that does ten other things; a test that passes waits for a fraction of it.
SECONDS_MAX = 120.0


def eventually(condition: Callable[[], bool], seconds_max: float = SECONDS_MAX) -> None:
    """Wait until `condition` holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds_max
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
