"""Progress: the callbacks of work that takes long."""

from __future__ import annotations

from collections.abc import Callable

#: Called with (steps done, steps in all).
OnProgress = Callable[[int, int], None]
#: Called with (steps done), where the steps in all are not known.
OnCount = Callable[[int], None]
#: Called with (the part of the work, its steps done, its steps in all; None when they are not known).
OnPartProgress = Callable[[str, int, int | None], None]
