"""Time budget: the deadline of one retrieval, the time of its stages and its missing parts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from recollect.events.errors import RecollectError, public_text
from recollect.events.storage.database import DAMAGE_ERRORS
from recollect.projections.queries.snapshot import QueryTimeout, Snapshot

_logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")

#: The end of a note about a part that is incomplete, not missing.
PARTIAL_SUFFIX = "not embedded yet"
#: The end of a note about events that the read model lacks.
BEHIND_SUFFIX = "not folded yet"


class TimeBudget:
    """The deadline of a retrieval, the milliseconds of each stage, and notes about missing parts.

    Parameters:
        budget_ms: the time limit in milliseconds, from now on.
    """

    def __init__(self, budget_ms: float) -> None:
        self.started = time.monotonic()
        self._budget_ms = budget_ms
        self.deadline = self.started + budget_ms / 1_000
        self.stages_ms: dict[str, float] = {}
        #: When each of these stages began, in milliseconds since the start.
        self.stage_starts_ms: dict[str, float] = {}
        self.degraded: list[str] = []

    @property
    def left_seconds(self) -> float:
        """Return the seconds until the deadline, at least 0."""
        return max(0.0, self.deadline - time.monotonic())

    def share_left_seconds(self, share: float) -> float:
        """Return the seconds left of the first `share` of the budget, at least 0."""
        return max(0.0, self.started + share * self._budget_ms / 1_000 - time.monotonic())

    @property
    def spent_ms(self) -> float:
        """Return the milliseconds since the start."""
        return (time.monotonic() - self.started) * 1_000

    def end_stage(self, stage: str, started_ms: float) -> None:
        """Record the time of a stage that began at `started_ms` and ends now."""
        self.stage_starts_ms[stage] = started_ms
        self.stages_ms[stage] = self.spent_ms - started_ms

    def record_missing(self, part: str, reason: object) -> None:
        """Add a note that `part` is missing from the result, with the reason.

        Bots show these notes to users, so that an error of the disk is without its paths, and an internal error is its
        type alone; the log has the rest.
        """
        if isinstance(reason, RecollectError):
            reason = public_text(reason)
        elif isinstance(reason, BaseException):
            _logger.warning("a retrieval lacks %s", part, exc_info=reason)
            reason = f"internal error ({type(reason).__name__}); the server's log has the details"
        self.degraded.append(f"{part}: {reason}")

    def failed(self, part: str) -> bool:
        """Return whether `part` is missing completely."""
        return any(note.startswith(f"{part}: ") and not note.endswith(PARTIAL_SUFFIX) for note in self.degraded)

    @property
    def is_behind(self) -> bool:
        """Return whether events were not projected or not embedded, which this machine can make up for."""
        return any(note.endswith((PARTIAL_SUFFIX, BEHIND_SUFFIX)) for note in self.degraded)

    def run(self, part: str, snapshot: Snapshot, search: Callable[[], _Result]) -> _Result | None:
        """Return the result of `search` on `snapshot`; None, and a note, when it fails or exceeds the deadline.

        Raises:
            An error of `DAMAGE_ERRORS` when the file of the read model is damaged.
        """
        started_ms = self.spent_ms
        try:
            with snapshot.interrupted_at(self.deadline):
                return search()
        except QueryTimeout:
            self.record_missing(part, "out of time")
        except DAMAGE_ERRORS:
            # The read model must be rebuilt, which its owner does.
            raise
        except Exception as error:
            self.record_missing(part, error)
        finally:
            self.end_stage(part, started_ms)
        return None
