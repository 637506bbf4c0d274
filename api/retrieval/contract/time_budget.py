"""The time budget of one retrieval, and what was missed because of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from recollect.events.storage.database import DAMAGE_ERRORS
from recollect.projections.queries.snapshot import QueryTimeout, Snapshot

_Result = TypeVar("_Result")

#: The end of a note about a part that is there, though not for everything.
PARTIAL_SUFFIX = "not embedded yet"


class TimeBudget:
    """A clock that runs out, the time that each stage took, and the parts that are missing.

    Parameters:
        budget_ms: from now.
    """

    def __init__(self, budget_ms: float) -> None:
        self.started = time.monotonic()
        self._budget_ms = budget_ms
        self.deadline = self.started + budget_ms / 1_000
        self.stages_ms: dict[str, float] = {}
        self.degraded: list[str] = []

    @property
    def left_seconds(self) -> float:
        """Return the seconds left, never under 0."""
        return max(0.0, self.deadline - time.monotonic())

    def share_left_seconds(self, share: float) -> float:
        """Return the seconds left of the first `share` of the budget, never under 0."""
        return max(0.0, self.started + share * self._budget_ms / 1_000 - time.monotonic())

    @property
    def spent_ms(self) -> float:
        """Return the milliseconds since the start."""
        return (time.monotonic() - self.started) * 1_000

    def record_missing(self, part: str, reason: object) -> None:
        """Note that `part` is missing from the answer."""
        self.degraded.append(f"{part}: {reason}")

    def failed(self, part: str) -> bool:
        """Tell whether a part is missing as a whole."""
        return any(note.startswith(f"{part}: ") and not note.endswith(PARTIAL_SUFFIX) for note in self.degraded)

    def run(self, part: str, snapshot: Snapshot, search: Callable[[], _Result]) -> _Result | None:
        """Return what `search` finds in `snapshot`; None, and a note, when time runs out or it fails."""
        started = time.monotonic()
        try:
            with snapshot.interrupted_at(self.deadline):
                return search()
        except QueryTimeout:
            self.record_missing(part, "out of time")
        except DAMAGE_ERRORS:
            # The file is to be built anew, which is not for a search to decide.
            raise
        except Exception as error:
            self.record_missing(part, f"{type(error).__name__}: {error}")
        finally:
            self.stages_ms[part] = (time.monotonic() - started) * 1_000
        return None
