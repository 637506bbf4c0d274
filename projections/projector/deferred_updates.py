"""Changes to rows that are there: collected while a batch is folded, applied in order when its episodes are written."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from recollect.events.envelope import RecordedEvent
from recollect.projections.schema.schema import create_indexes


class DeferredUpdates:
    """The changes of a batch that look rows up, in the order of the log.

    Parameters:
        connection: the read model.
        new: whether it is built in bulk, without indexes of episodes: they are made when the first change needs them.
    """

    def __init__(self, connection: apsw.Connection, *, new: bool) -> None:
        self._connection = connection
        self._unindexed = new
        self._changes: list[tuple[int, bool, Callable[[], None]]] = []

    def add(self, event: RecordedEvent, change: Callable[[], None], *, episodes: bool = False) -> None:
        """Apply `change` later; `episodes` says that it looks episodes up."""
        self._changes.append((event.version, episodes, change))

    def apply(self, through: int) -> None:
        """Apply the changes of events up to the version `through`, and forget them.

        The episodes up to there must be written and indexed, and none after it.
        """
        due = [one for one in self._changes if one[0] <= through]
        for _, episodes, change in due:
            if episodes and self._unindexed:
                create_indexes(self._connection)
                self._unindexed = False
            change()
        del self._changes[: len(due)]
