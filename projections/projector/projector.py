"""The projector: folds a namespace's events into its read model, each exactly once.

A batch and the checkpoint behind it are one transaction, so whatever a queue repeats or a crash cuts off, an event is
folded once. Attempts are counted before the work, in a transaction of their own: an event that kills its worker is
found out instead of being tried for ever.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw

from recollect.events.backends.log import EventLog
from recollect.events.envelope import RecordedEvent
from recollect.projections.projector.event_handlers import apply_event
from recollect.projections.projector.write_batch import EntityNames, WriteBatch
from recollect.projections.schema.schema import read_state

#: Events in the first batch: few, so that a reader who is in a hurry is served.
FIRST_BATCH_EVENTS = 200
#: Events in the batches after it. Larger ones gain nothing: the insert rate is flat from 1,000 on.
BATCH_EVENTS = 2_000
#: Attempts on one event before its namespace is parked. A power cut or two are not the event's fault.
ATTEMPTS_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A namespace whose folding stopped at an event; it is retried by replay."""

    namespace: str
    #: The event that could not be folded.
    version: int
    error: str


class Projector:
    """Folds one namespace into one file. Not for several threads at once; several processes may, each with its own.

    Parameters:
        connection: the read model, writable.
        path: its file, for messages.
    """

    def __init__(self, log: EventLog, namespace: str, connection: apsw.Connection, path: Path) -> None:
        self._log = log
        self._namespace = namespace
        self._connection = connection
        self._path = path
        self._names: EntityNames | None = None
        #: The model's row as it was when this projector last looked.
        self.row = read_state(connection)

    @property
    def parked(self) -> Parked | None:
        """Where folding stopped, if it did."""
        if self.row.parked_version is None:
            return None
        return Parked(namespace=self._namespace, version=self.row.parked_version, error=self.row.parked_error or "")

    def advance(self, limit: int) -> int:
        """Fold up to `limit` events and return how many; 0 when there is nothing left, or the namespace is parked."""
        self.refresh()
        if self.row.parked_version is not None:
            return 0
        # What failed or was killed before goes one by one, so that the events before the bad one get in.
        events = self._log.read(self._namespace, after=self.row.checkpoint, limit=1 if self.row.attempts else limit)
        if not events:
            return 0
        if self.row.attempts > ATTEMPTS_MAX:
            self._park(events[0], "its worker died on it every time")
            return 0
        if not self._count_attempt():
            return 0
        try:
            self._fold(events)
        except apsw.Error:
            raise
        except Exception as error:
            if len(events) > 1:
                return self.advance(1)
            self._park(events[0], f"{type(error).__name__}: {error}")
            return 0
        return len(events)

    def refresh(self) -> None:
        """Look at the model's row again: another process may have moved it."""
        row = read_state(self._connection)
        if row.checkpoint != self.row.checkpoint:
            self._names = None
        self.row = row

    def _count_attempt(self) -> bool:
        """Count the attempt; False when another process has moved the checkpoint meanwhile."""
        with self._transaction():
            if read_state(self._connection).checkpoint != self.row.checkpoint:
                return False
            self._connection.execute("UPDATE read_model SET attempts = attempts + 1")
        self.row = self.row._replace(attempts=self.row.attempts + 1)
        return True

    def _fold(self, events: Sequence[RecordedEvent]) -> None:
        try:
            with self._transaction():
                if read_state(self._connection).checkpoint != self.row.checkpoint:
                    return
                self._names = self._names or EntityNames(self._connection)
                changes = WriteBatch(self._connection, self._names)
                for event in events:
                    apply_event(changes, event)
                last = events[-1]
                changes.write(last.version)
                self._connection.execute(
                    "UPDATE read_model SET checkpoint = ?, checkpoint_hash = ?, attempts = 0", (last.version, last.hash)
                )
        except BaseException:
            self._names = None
            raise
        self.row = self.row._replace(checkpoint=last.version, checkpoint_hash=last.hash, attempts=0)

    def _park(self, event: RecordedEvent, error: str) -> None:
        with self._transaction():
            row = read_state(self._connection)
            if row.checkpoint == self.row.checkpoint:
                self._connection.execute(
                    "UPDATE read_model SET parked_version = ?, parked_error = ?", (event.version, error)
                )
        self.refresh()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
