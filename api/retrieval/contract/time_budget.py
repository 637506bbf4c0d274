"""The time budget of one retrieval, and what was missed because of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import apsw

_Found = TypeVar("_Found")

#: SQLite instructions between two looks at the clock: about 20 µs.
_STEPS_BETWEEN_LOOKS = 2_000


#: The end of a note about a part that is there, though not for everything.
PARTLY = "not embedded yet"


class Budget:
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

    def left_of(self, share: float) -> float:
        """Return the seconds left of the first `share` of the budget, never under 0."""
        return max(0.0, self.started + share * self._budget_ms / 1_000 - time.monotonic())

    @property
    def spent_ms(self) -> float:
        """Return the milliseconds since the start."""
        return (time.monotonic() - self.started) * 1_000

    def miss(self, part: str, reason: object) -> None:
        """Note that `part` is missing from the answer."""
        self.degraded.append(f"{part}: {reason}")

    def failed(self, part: str) -> bool:
        """Tell whether a part is missing as a whole."""
        return any(one.startswith(f"{part}: ") and not one.endswith(PARTLY) for one in self.degraded)

    def run(self, part: str, connection: apsw.Connection, search: Callable[[], _Found]) -> _Found | None:
        """Return what `search` finds on `connection`; None, and a note, when time runs out or it fails."""
        started = time.monotonic()
        try:
            with self._interrupting(connection):
                return search()
        except apsw.InterruptError:
            self.miss(part, "out of time")
        except (apsw.CorruptError, apsw.NotADBError):
            # The file is to be built anew, which is not for a search to decide.
            raise
        except Exception as error:
            self.miss(part, f"{type(error).__name__}: {error}")
        finally:
            self.stages_ms[part] = (time.monotonic() - started) * 1_000
        return None

    @contextmanager
    def _interrupting(self, connection: apsw.Connection) -> Generator[None]:
        connection.set_progress_handler(lambda: time.monotonic() > self.deadline, _STEPS_BETWEEN_LOOKS)
        try:
            yield
        finally:
            connection.set_progress_handler(None)
