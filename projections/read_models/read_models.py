"""The read models of a data folder: opened when needed, brought up to date before they are read, rebuilt by replay."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import apsw

from recollect.events.backends.log import EventLog
from recollect.events.errors import ForeignFile, LogRewound, ProjectionFailed, StorageError
from recollect.events.progress import OnProgress
from recollect.events.storage.database import BUSY_TIMEOUT_MS, connect, storage_errors
from recollect.projections.projection_settings import OPEN_MODELS_MAX
from recollect.projections.projector.projector import BATCH_EVENTS, FIRST_BATCH_EVENTS, Parked, Projector
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.generations import building, empty_path, next_generation, publish
from recollect.projections.read_models.layout import generation_path, generations, namespace_folder
from recollect.projections.read_models.open_files import OpenFiles
from recollect.projections.read_models.replay import BATCH_EVENTS as REPLAY_BATCH_EVENTS
from recollect.projections.read_models.replay import build_read_model
from recollect.projections.schema.content_hash import content_hash, keyword_index_matches
from recollect.projections.schema.schema import (
    SCHEMA_VERSION,
    ReadModelState,
    create_indexes,
    create_search,
    create_tables,
    read_state,
)

_logger = logging.getLogger(__name__)

#: Events to fold from which on a model is built anew in bulk instead, beside the live one: some seconds of work.
FAR_BEHIND_EVENTS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionProgress:
    """How far a read model has come."""

    namespace: str
    #: The last event folded.
    version: int
    #: The newest event in the log.
    head: int
    #: Where folding stopped for good, if it did.
    parked: Parked | None

    @property
    def behind(self) -> int:
        """Return how many events are not folded yet."""
        return self.head - self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCheck:
    """A live read model beside the same one built by replay."""

    namespace: str
    version: int
    live_digest: str
    replayed_digest: str
    #: Whether the live keyword index agrees with the live episodes.
    search_equal: bool

    @property
    def is_equal(self) -> bool:
        """Tell whether replay gives what is live."""
        return self.search_equal and self.live_digest == self.replayed_digest


class _OpenModel:
    """The live generation of one namespace, open."""

    def __init__(self, log: EventLog, namespace: str, folder: Path) -> None:
        self._folder = folder
        self._seen_ns = folder.stat().st_mtime_ns
        self.generation = generations(folder)[-1]
        self.path = generation_path(folder, self.generation)
        self._connection = connect(self.path, create=False)
        try:
            with storage_errors(self.path):
                self.projector = _projector_of(log, namespace, self._connection, self.path)
        except BaseException:
            self._connection.close()
            raise
        #: Held while events are folded.
        self.lock = threading.Lock()
        self._readers: list[apsw.Connection] = []

    def is_live(self) -> bool:
        """Tell whether this is still the newest generation; another process may have replayed the namespace."""
        try:
            changed_ns = self._folder.stat().st_mtime_ns
        except FileNotFoundError:
            return False
        if changed_ns == self._seen_ns:
            return True
        self._seen_ns = changed_ns
        return generations(self._folder)[-1:] == [self.generation]

    @contextmanager
    def reading(self) -> Generator[Snapshot]:
        reader = self._readers.pop() if self._readers else connect(self.path, readonly=True)
        try:
            reader.execute("BEGIN")
            yield Snapshot(reader, read_state(reader).checkpoint)
        finally:
            if reader.in_transaction:
                reader.execute("ROLLBACK")
            self._readers.append(reader)

    @contextmanager
    def patient_until(self, deadline: float | None) -> Generator[None]:
        """Wait for another process's write until `deadline`, and not as long as everybody else; as long for None."""
        if deadline is None:
            yield
            return
        self._connection.set_busy_timeout(int(max(0.0, deadline - time.monotonic()) * 1_000))
        try:
            yield
        except apsw.BusyError:
            # Another process folds, maybe the very same events.
            return
        finally:
            self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)

    def search_matches(self) -> bool:
        with self.lock, storage_errors(self.path):
            return keyword_index_matches(self._connection)

    def close(self) -> None:
        while self._readers:
            self._readers.pop().close()
        self._connection.close()


class ReadModels:
    """All read models of the data folder `data`. Safe to use from many threads, and from several processes at once.

    Parameters:
        log: the log they are folded from.
        open_files_max: namespaces kept open; the least recently used one is closed first.
        first_batch_events, batch_events: events folded in the first transaction of a catch-up, and in those after it.
        replay_batch_events: events in one batch of a replay.
        far_behind_events: events to fold from which on a model is built anew in bulk.
    """

    def __init__(
        self,
        data: Path,
        log: EventLog,
        *,
        open_files_max: int = OPEN_MODELS_MAX,
        first_batch_events: int = FIRST_BATCH_EVENTS,
        batch_events: int = BATCH_EVENTS,
        replay_batch_events: int = REPLAY_BATCH_EVENTS,
        far_behind_events: int = FAR_BEHIND_EVENTS,
    ) -> None:
        self._data = data
        self._first_batch_events = first_batch_events
        self._batch_events = batch_events
        self._replay_batch_events = replay_batch_events
        self._far_behind_events = far_behind_events
        #: The log they are folded from.
        self.log = log
        self._open: OpenFiles[_OpenModel] = OpenFiles(open_files_max, is_current=_OpenModel.is_live)
        #: Changed under the lock of the open files.
        self._parked: dict[str, Parked] = {}

    def catch_up(self, namespace: str, *, deadline: float | None = None) -> ProjectionProgress:
        """Fold what the log has and the read model has not; return how far that came.

        Parameters:
            deadline: `time.monotonic()` seconds after which no further batch is begun.

        Raises:
            StorageError: the file cannot be written.
        """
        head = self.log.head(namespace).version
        if head == 0:
            return ProjectionProgress(namespace=namespace, version=0, head=0, parked=None)
        if deadline is None and head > self._far_behind_events:
            self._rebuild_far_behind(namespace, head)
        with self._using(namespace) as model:
            if model.projector.row.checkpoint < head:
                self._fold(model, head, deadline)
            elif model.projector.row.checkpoint > head:
                self._check_rewound(model, namespace)
            return self._progress(model, namespace, head)

    @contextmanager
    def reading(self, namespace: str) -> Generator[Snapshot]:
        """Lend the read model as it is now; an empty one for a namespace without events."""
        if self.log.head(namespace).version == 0:
            yield Snapshot(empty_read_model(self.log.log_id, namespace), 0)
            return
        with self._using(namespace) as model, model.reading() as snapshot:
            yield snapshot

    def progress(self, namespace: str) -> ProjectionProgress:
        """Return how far the read model has come, without moving it."""
        head = self.log.head(namespace).version
        if head == 0:
            return ProjectionProgress(namespace=namespace, version=0, head=0, parked=None)
        with self._using(namespace) as model:
            with model.lock, storage_errors(model.path):
                model.projector.refresh()
            return self._progress(model, namespace, head)

    def parked(self) -> list[Parked]:
        """Return the parked namespaces that were met since the start, by name."""
        with self._open.lock:
            return [self._parked[namespace] for namespace in sorted(self._parked)]

    def replay(self, namespace: str, *, on_progress: OnProgress | None = None) -> int:
        """Build the next generation beside the live one, then put it in its place; return the events folded.

        Raises:
            ProjectionFailed: an event cannot be folded; the live generation goes on serving.
        """
        if self.log.head(namespace).version == 0:
            return 0
        folder = namespace_folder(self._data, namespace)
        with building(folder) as path:
            with storage_errors(path):
                version = build_read_model(
                    path, self.log, namespace, batch_events=self._replay_batch_events, on_progress=on_progress
                )
            self._swap_in(namespace, folder, path)
        return version

    def check(self, namespace: str, *, on_progress: OnProgress | None = None) -> ReplayCheck:
        """Build the read model beside the live one, compare the two, and throw the new one away."""
        self.catch_up(namespace)
        with self.reading(namespace) as live:
            version, live_digest = live.version, live.content_hash()
        with building(namespace_folder(self._data, namespace)) as path, storage_errors(path):
            build_read_model(
                path,
                self.log,
                namespace,
                until=version,
                batch_events=self._replay_batch_events,
                on_progress=on_progress,
            )
            connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
            replayed_digest = content_hash(connection)
            connection.close()
        search_equal = True
        if version:
            with self._using(namespace) as model:
                search_equal = model.search_matches()
        return ReplayCheck(
            namespace=namespace,
            version=version,
            live_digest=live_digest,
            replayed_digest=replayed_digest,
            search_equal=search_equal,
        )

    def close(self) -> None:
        """Close every file. Whoever still reads one keeps it until done."""
        self._open.drop_all()

    def _rebuild_far_behind(self, namespace: str, head: int) -> None:
        """Replay a model that has most of a long log before it: a new schema's, a lost file's. Bulk is much faster."""
        progress = self.progress(namespace)
        if progress.parked is None and progress.behind > self._far_behind_events and progress.behind > head // 2:
            try:
                self.replay(namespace)
            except ProjectionFailed:
                # Folding live gets as far as it can, and parks the namespace there.
                _logger.warning("namespace %r cannot be replayed", namespace, exc_info=True)

    def _fold(self, model: _OpenModel, head: int, deadline: float | None) -> None:
        timeout = -1 if deadline is None else max(0.0, deadline - time.monotonic())
        if not model.lock.acquire(timeout=timeout):
            return
        try:
            batch = self._first_batch_events
            with storage_errors(model.path), model.patient_until(deadline):
                while model.projector.row.checkpoint < head and model.projector.advance(batch):
                    if deadline is not None and time.monotonic() > deadline:
                        return
                    batch = self._batch_events
        finally:
            model.lock.release()

    def _check_rewound(self, model: _OpenModel, namespace: str) -> None:
        """Raise `LogRewound` when the log has gone back behind what was folded; a race with an append looks alike."""
        checkpoint = model.projector.row.checkpoint
        if self.log.head(namespace).version < checkpoint:
            self._open.drop(namespace)
            raise LogRewound(namespace, checkpoint)

    def _progress(self, model: _OpenModel, namespace: str, head: int) -> ProjectionProgress:
        parked = model.projector.parked
        if parked is not None or self._parked:
            with self._open.lock:
                if parked is not None:
                    self._parked[namespace] = parked
                else:
                    self._parked.pop(namespace, None)
        return ProjectionProgress(namespace=namespace, version=model.projector.row.checkpoint, head=head, parked=parked)

    @contextmanager
    def _using(self, namespace: str) -> Generator[_OpenModel]:
        """Lend the open model of `namespace`; a damaged file is replaced at the next use."""
        with self._open.using(namespace, partial(self._open_live, namespace)) as model:
            try:
                yield model
            except (apsw.CorruptError, apsw.NotADBError, ForeignFile) as error:
                # A damaged log is another matter: what was folded from it before is all the more precious.
                if not isinstance(error, ForeignFile) or error.path == model.path:
                    with self._open.lock:
                        self._start_anew(namespace, "it is damaged")
                raise

    def _open_live(self, namespace: str) -> _OpenModel:
        """Open the live generation; begin an empty one when there is none, or none that is ours and whole."""
        folder = namespace_folder(self._data, namespace)
        if not generations(folder):
            self._begin_generation(namespace, folder)
        try:
            return _OpenModel(self.log, namespace, folder)
        except LogRewound as problem:
            self._parked[namespace] = Parked(namespace=namespace, version=problem.version, error=str(problem))
            raise
        except ForeignFile as problem:
            if problem.path not in (None, generation_path(folder, generations(folder)[-1])):
                raise
            self._start_anew(namespace, str(problem))
            return _OpenModel(self.log, namespace, folder)

    def _start_anew(self, namespace: str, problem: str) -> None:
        """Put an empty generation in place of the live one; what it held comes back from the log."""
        _logger.warning("the read model of namespace %r is built anew from the log: %s", namespace, problem)
        self._open.drop(namespace)
        self._begin_generation(namespace, namespace_folder(self._data, namespace))

    def _begin_generation(self, namespace: str, folder: Path) -> None:
        generation = next_generation(folder)
        path = empty_path(folder)
        with storage_errors(path):
            connection = connect(path)
            connection.execute("BEGIN")
            create_tables(connection, log_id=self.log.log_id, namespace=namespace)
            create_indexes(connection)
            create_search(connection)
            connection.execute("COMMIT")
            connection.close()
            # Another process that was faster began the same empty one.
            publish(path, folder, generation, self.log.log_id)

    def _swap_in(self, namespace: str, folder: Path, path: Path) -> None:
        """Fold what came while `path` was built, then make it the live generation."""
        generation = next_generation(folder)
        connection = connect(path)
        with storage_errors(path):
            projector = Projector(self.log, namespace, connection, path)
            while projector.advance(self._batch_events):
                pass
            connection.close()
            with self._open.lock:
                # When another process has replayed at the same time, its model is as good as this one.
                publish(path, folder, generation, self.log.log_id)
                self._open.drop(namespace)
                self._parked.pop(namespace, None)


def _projector_of(log: EventLog, namespace: str, connection: apsw.Connection, path: Path) -> Projector:
    """Return the projector of an open file; raise `ForeignFile` when the file is not this model."""
    try:
        row = read_state(connection)
    except (apsw.SQLError, LookupError, TypeError) as error:
        raise ForeignFile(f"{path} is no read model: {error}") from error
    if (row.schema_version, row.log_id, row.namespace) != (SCHEMA_VERSION, log.log_id, namespace):
        raise ForeignFile(f"{path} is of another schema, log or namespace")
    if row.checkpoint and not _is_history(log, namespace, row):
        raise LogRewound(namespace, row.checkpoint)
    return Projector(log, namespace, connection, path)


def _is_history(log: EventLog, namespace: str, row: ReadModelState) -> bool:
    """Tell whether the log still has what was folded: its hash at the checkpoint stands for all before it."""
    try:
        events = log.read(namespace, after=row.checkpoint - 1, limit=1)
    except StorageError:
        # A damaged log is for `verify` to find; what was folded from it before is all the more precious.
        return True
    return bool(events) and (events[0].version, events[0].hash) == (row.checkpoint, row.checkpoint_hash)


def empty_read_model(log_id: str, namespace: str) -> apsw.Connection:
    """Return a read model without events, in memory."""
    connection = apsw.Connection(":memory:")
    create_tables(connection, log_id=log_id, namespace=namespace)
    create_indexes(connection)
    create_search(connection)
    return connection
