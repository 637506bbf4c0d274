"""Deferred updates: collects the updates of existing rows, and applies them after a batch's episodes are written."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from recollect.events.envelope import RecordedEvent
from recollect.projections.schema.schema import create_indexes


class DeferredUpdates:
    """The updates of a batch that look up rows, in the order of the log.

    Parameters:
        connection: the read model, writable.
        new: whether a bulk build writes the read model. It has no indexes of episodes then; the first update that looks
            up episodes creates them.
    """

    def __init__(self, connection: apsw.Connection, *, new: bool) -> None:
        self._connection = connection
        self._unindexed = new
        #: Version of the event whose updates were applied last.
        self._version = 0
        #: Version of the event, whether the update looks up episodes, and the update.
        self._updates: list[tuple[int, bool, Callable[[], None]]] = []

    def add(self, event: RecordedEvent, update: Callable[[], None], *, episodes: bool = False) -> None:
        """Add the `update` of an event.

        Parameters:
            episodes: whether the update looks up episodes.
        """
        self._updates.append((event.version, episodes, update))

    def apply(self, through: int) -> None:
        """Apply and drop the updates of the events up to the version `through`.

        The caller has written and indexed the episodes up to this version, and no later ones.
        """
        due = [update for update in self._updates if update[0] <= through]
        for version, episodes, update in due:
            if version != self._version:
                # The triggers of `knowledge.sql` read it.
                self._connection.execute("UPDATE read_model SET updating_version = ?", (version,))
                self._version = version
            if episodes and self._unindexed:
                create_indexes(self._connection)
                self._unindexed = False
            update()
        del self._updates[: len(due)]
