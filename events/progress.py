"""Progress: the types of callbacks that report the progress of long operations."""

from __future__ import annotations

from collections.abc import Callable

#: Called with (steps done, total steps).
OnProgress = Callable[[int, int], None]
#: Called with (steps done), where the total is unknown.
OnCount = Callable[[int], None]
#: Called with (name of the part, steps done, total steps or None when the total is unknown).
OnPartProgress = Callable[[str, int, int | None], None]


def no_progress(_name: str, _done: int, _total: int | None) -> None:
    """Report nothing."""
