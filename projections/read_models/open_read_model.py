"""Open read model: the connections to the file of one live generation."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import tzinfo
from pathlib import Path

import apsw

from recollect.events.backends.log import EventLog
from recollect.events.errors import ForeignFile
from recollect.events.storage.database import BUSY_TIMEOUT_MS, connect, storage_errors
from recollect.projections.queries.snapshot import Snapshot, file_identity
from recollect.projections.read_models.generations import generation_path, generations
from recollect.projections.read_models.opening import open_projector
from recollect.projections.schema.content_hash import keyword_index_matches
from recollect.projections.schema.schema import has_own_schema, read_state


class OpenReadModel:
    """The open live generation of one namespace."""

    def __init__(self, log: EventLog, namespace: str, folder: Path) -> None:
        self._folder = folder
        self._seen_ns = folder.stat().st_mtime_ns
        self.generation = generations(folder)[-1]
        self.path = generation_path(folder, self.generation)
        self._connection = connect(self.path, create=False)
        try:
            with storage_errors(self.path):
                self.projector = open_projector(log, namespace, self._connection, self.path)
        except BaseException:
            self._connection.close()
            raise
        self._identity = file_identity(self._connection)
        #: Held while events are projected.
        self.lock = threading.Lock()
        self._readers: list[apsw.Connection] = []

    def is_live(self) -> bool:
        """Return whether this is still the newest generation; another process may have replayed the namespace."""
        try:
            changed_ns = self._folder.stat().st_mtime_ns
        except FileNotFoundError:
            return False
        if changed_ns == self._seen_ns:
            return True
        self._seen_ns = changed_ns
        return generations(self._folder)[-1:] == [self.generation]

    @contextmanager
    def reading(self, default_zone: tzinfo) -> Generator[Snapshot]:
        """Yield a snapshot on a read-only connection of its own."""
        reader = self._readers.pop() if self._readers else connect(self.path, readonly=True)
        try:
            reader.execute("BEGIN")
            state = read_state(reader)
            snapshot = Snapshot(reader, state.checkpoint, default_zone)
            snapshot.state, snapshot.file_identity = state, self._identity
            yield snapshot
        finally:
            if reader.in_transaction:
                # A rollback of the temporary table of the keyword search would let SQLite forget the schema: each
                # statement of the next retrieval would be compiled again, 3 ms.
                reader.execute("COMMIT")
            self._readers.append(reader)

    @contextmanager
    def busy_until(self, deadline: float | None) -> Generator[None]:
        """Limit the wait for another process's write to `deadline`; None leaves the default busy timeout."""
        if deadline is None:
            yield
            return
        self._connection.set_busy_timeout(int(max(0.0, deadline - time.monotonic()) * 1_000))
        try:
            yield
        except apsw.BusyError:
            # Another process writes, possibly the same events; the caller answers from the present checkpoint.
            return
        finally:
            self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)

    def has_own_schema(self) -> bool:
        """Return whether the tables are those of this version: a flipped bit may rename a column."""
        try:
            with closing(connect(self.path, readonly=True)) as reader:
                return has_own_schema(reader)
        except (apsw.Error, ForeignFile):
            return False

    def search_matches(self) -> bool:
        """Return whether the keyword index matches the episodes."""
        with self.lock, storage_errors(self.path):
            return keyword_index_matches(self._connection)

    def close(self) -> None:
        """Close all connections."""
        while self._readers:
            self._readers.pop().close()
        self._connection.close()
