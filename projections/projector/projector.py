"""Projector: applies (folds) the events of a namespace to its read model, each exactly once.

A batch and its checkpoint are one transaction, so an event is applied once even after a repeated job or a crash.
Attempts are counted before the work in a separate transaction, so an event that kills its worker is detected and not
tried for ever.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import apsw
from msgspec import Struct
from msgspec.structs import replace

from recollect.events.backends.log import EventLog
from recollect.events.chain import link
from recollect.events.envelope import RecordedEvent
from recollect.events.errors import LogRewound
from recollect.events.instruments import Counter, Histogram
from recollect.events.storage.database import is_of_full_disk
from recollect.events.tracing import Span, hidden_namespace, is_tracing, span
from recollect.projections.projector.event_handlers import apply_event
from recollect.projections.projector.known_entities import EntityRegister
from recollect.projections.projector.skipped_events import is_skipped
from recollect.projections.projector.write_batch import WriteBatch
from recollect.projections.schema.schema import read_state

#: Of all projectors; others than the read models observe it with their name.
APPLY_SECONDS = Histogram(
    "recollect_projection_apply_duration_seconds",
    "Time of a batch of events, until its rows are stored",
    ("projector",),
)
_FACTS_CHANGED = Counter("recollect_facts_changed", "Facts whose status a projected event changed", ("change",))

#: Events in the first batch: few, so that readers with a short deadline get a result.
FIRST_BATCH_EVENTS = 200
#: Events in later batches. The insert rate does not rise over 1,000 events.
BATCH_EVENTS = 2_000
#: Attempts on one event before its namespace is parked. Power cuts may cause the first failures.
ATTEMPTS_MAX = 3


class Parked(Struct, frozen=True, kw_only=True):
    """A namespace whose projection stopped at an event that cannot be applied; a replay tries again."""

    namespace: str
    #: Version of that event.
    version: int
    error: str


class Projector:
    """Applies the events of one namespace to one read model.

    Only one thread may use a projector at a time; several processes may project one namespace, each with its own.

    Parameters:
        connection: the read model, writable.
        path: the file of the read model, for messages.
    """

    def __init__(self, log: EventLog, namespace: str, connection: apsw.Connection, path: Path) -> None:
        self._log = log
        self.namespace = namespace
        self._connection = connection
        self._path = path
        self._names: EntityRegister | None = None
        #: The state of the read model at the last refresh.
        self.row = read_state(connection)

    @property
    def parked(self) -> Parked | None:
        """Return the event at which projection is parked; None: it is not parked."""
        if self.row.parked_version is None:
            return None
        return Parked(namespace=self.namespace, version=self.row.parked_version, error=self.row.parked_error or "")

    def advance(self, limit: int) -> int:
        """Apply up to `limit` events and return their number: 0 at the log's head or when the namespace is parked.

        Raises:
            LogRewound: the events do not follow those that were applied: an older copy of the log is in use, such as a
                replica that lacked the last commits.
        """
        self.refresh()
        if self.row.parked_version is not None:
            return 0
        # After a failed attempt events are applied singly, so that the events before the bad one are applied.
        events = self._log.read(self.namespace, after=self.row.checkpoint, limit=1 if self.row.attempts else limit)
        if not events:
            return 0
        if link(self.row.checkpoint_hash, events[0].leaf) != events[0].hash:
            raise LogRewound(self.namespace, self.row.checkpoint)
        if self.row.attempts > ATTEMPTS_MAX:
            return self._skip_or_park(events[0], "its worker died on it every time")
        if not self._count_attempt():
            return 0
        try:
            self._project(events)
        except apsw.Error as error:
            if is_of_full_disk(error, self._path):
                self._uncount_attempt()
            raise
        except Exception as error:
            if len(events) > 1:
                return self.advance(1)
            return self._skip_or_park(events[0], f"{type(error).__name__}: {error}")
        return len(events)

    def retry(self) -> None:
        """Let projection begin again at the event at which it is parked."""
        with self._transaction():
            self._connection.execute("UPDATE read_model SET parked_version = NULL, parked_error = NULL, attempts = 0")
        self.refresh()

    def refresh(self) -> None:
        """Read the state of the read model again: another process may have changed it."""
        state = read_state(self._connection)
        if state.checkpoint != self.row.checkpoint:
            self._names = None
        self.row = state

    def _count_attempt(self) -> bool:
        """Count an attempt and return True; return False when another process has moved the checkpoint."""
        with self._transaction():
            if not self._is_at_checkpoint():
                return False
            self._connection.execute("UPDATE read_model SET attempts = attempts + 1")
        self.row = replace(self.row, attempts=self.row.attempts + 1)
        return True

    def _is_at_checkpoint(self) -> bool:
        """Return whether no other process has moved the checkpoint since the last refresh."""
        # Reading all of the state takes four times as long, twice for each batch.
        row = self._connection.execute("SELECT checkpoint FROM read_model").fetchone()
        return row == (self.row.checkpoint,)

    def _uncount_attempt(self) -> None:
        """Undo the count of an attempt that a full disk ended: no event is the reason, and there will be room again."""
        # What was rolled back leaves room for it; without it, the attempt stays counted.
        with suppress(apsw.Error), self._transaction():
            self._connection.execute("UPDATE read_model SET attempts = max(0, attempts - 1)")

    def _project(self, events: Sequence[RecordedEvent], *, skipped: bool = False) -> None:
        """Apply a batch and move the checkpoint in one transaction; nothing when another process was faster.

        Parameters:
            skipped: whether the events change nothing.
        """
        started = time.perf_counter()
        try:
            with self._apply_span(events), self._transaction():
                if not self._is_at_checkpoint():
                    return
                self._names = self._names or EntityRegister(self._connection)
                batch = WriteBatch(self._connection, self._names)
                for event in () if skipped else events:
                    apply_event(batch, event)
                last = events[-1]
                batch.write(last.version)
                self._connection.execute(
                    "UPDATE read_model SET checkpoint = ?, checkpoint_hash = ?, attempts = 0", (last.version, last.hash)
                )
        except BaseException:
            self._names = None
            raise
        self.row = replace(self.row, checkpoint=last.version, checkpoint_hash=last.hash, attempts=0)
        APPLY_SECONDS.observe(time.perf_counter() - started, "read_models")
        for change, _ in batch.facts.rows.changes:
            _FACTS_CHANGED.add(change)

    def _apply_span(self, events: Sequence[RecordedEvent]) -> AbstractContextManager[Span]:
        """Return the span of a batch of events."""
        if not is_tracing():
            return span("projector.apply")
        attributes = {
            "recollect.projector": "read_models",
            "gen_ai.memory.store.id": hidden_namespace(self.namespace),
            "recollect.events": len(events),
            "recollect.event.version": events[-1].version,
        }
        return span("projector.apply", attributes)

    def _skip_or_park(self, event: RecordedEvent, error: str) -> int:
        """Pass over an event that an operator leaves out, and return 1; stop at any other one, and return 0."""
        if is_skipped(self._log, event):
            self._project([event], skipped=True)
            return 1
        self._park(event, error)
        return 0

    def _park(self, event: RecordedEvent, error: str) -> None:
        """Stop projection at an event, unless another process has moved the checkpoint."""
        with self._transaction():
            row = read_state(self._connection)
            if row.checkpoint == self.row.checkpoint:
                self._connection.execute(
                    "UPDATE read_model SET parked_version = ?, parked_error = ?", (event.version, error)
                )
        self.refresh()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        """Commit the block as one transaction; roll back when it raises."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
