"""Read models: open the live read model of a namespace, bring it up to date before reading, rebuild it by replay."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path

import apsw

from recollect.events.backends.answer_deadline import answers_by
from recollect.events.backends.log import EventLog
from recollect.events.errors import ForeignFile, LogRewound, LogUnreachable, ProjectionFailed
from recollect.events.progress import OnProgress
from recollect.events.storage.database import connect, storage_errors
from recollect.events.storage.namespace_folder import folder_name
from recollect.projections.projection_settings import OPEN_MODELS_MAX
from recollect.projections.projector.projector import BATCH_EVENTS, FIRST_BATCH_EVENTS, Parked, Projector
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.disk_limit import DiskLimit
from recollect.projections.read_models.generations import built, empty_path, next_generation, publish
from recollect.projections.read_models.layout import generation_path, generations, namespace_folder
from recollect.projections.read_models.open_files import OpenFiles
from recollect.projections.read_models.open_read_model import OpenReadModel
from recollect.projections.read_models.opening import RebuildLog
from recollect.projections.read_models.purges import Purges
from recollect.projections.read_models.replay import BATCH_EVENTS as REPLAY_BATCH_EVENTS
from recollect.projections.read_models.replay import build_read_model
from recollect.projections.schema.content_hash import content_hash
from recollect.projections.schema.schema import add_state, create_file, empty_read_model

_logger = logging.getLogger(__name__)

#: Seconds that the log has to answer when the deadline of a catch-up has passed: one batch is projected all the same.
_LOG_SECONDS_MIN = 0.1
#: Missing events over which a read model is replayed in bulk instead of caught up: some seconds of projecting.
FAR_BEHIND_EVENTS = 20_000
#: Events between two pauses: some 30 ms of projecting, so that three threads can pause for ten times as long.
_PAUSE_EVENTS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionProgress:
    """The progress of a read model along the log."""

    namespace: str
    #: Checkpoint: version of the last projected event.
    version: int
    #: Version of the newest event in the log.
    head: int
    #: The event that cannot be projected; None unless the namespace is parked.
    parked: Parked | None

    @property
    def behind(self) -> int:
        """Return the number of events that are not projected yet."""
        return self.head - self.version


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCheck:
    """The comparison of a live read model with a replay of the same version."""

    namespace: str
    #: Checkpoint of both.
    version: int
    #: Content hash of the live read model.
    live_digest: str
    #: Content hash of the replayed read model.
    replayed_digest: str
    #: Whether the live keyword index matches the live episodes.
    search_equal: bool

    @property
    def is_equal(self) -> bool:
        """Return whether the replayed read model equals the live one."""
        return self.search_equal and self.live_digest == self.replayed_digest


class ReadModels:
    """All read models of the data folder `data`. Safe to use from many threads, and from several processes at once.

    Parameters:
        log: the log to project.
        open_files_max: namespaces whose files stay open; the least recently used one is closed first.
        first_batch_events, batch_events: events in the first transaction of a catch-up, and in those after it.
        replay_batch_events: events in one batch of a replay.
        far_behind_events: missing events over which a read model is replayed in bulk instead of caught up.
        disk_bytes_max: bytes of read models and vectors on disk; 0: no limit.
        default_zone: the zone of the days of users for whom neither events nor the namespace name one.
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
        disk_bytes_max: int = 0,
        default_zone: tzinfo = UTC,
    ) -> None:
        #: As in the parameters.
        self.data, self.log, self.default_zone = data, log, default_zone
        self._first_batch_events = first_batch_events
        self._batch_events = batch_events
        self._replay_batch_events = replay_batch_events
        self._far_behind_events = far_behind_events
        #: Removes read models and vectors that were not used lately.
        self.disk_limit = DiskLimit(data, log, disk_bytes_max)
        self._open_files: OpenFiles[OpenReadModel] = OpenFiles(
            open_files_max, is_current=OpenReadModel.is_live, lease=self.disk_limit.in_use
        )
        #: By namespace; changed under the lock of the open files.
        self._parked: dict[str, Parked] = {}
        self._rebuild_log = RebuildLog()
        #: Follows the erasures of the log.
        self.purges = Purges(data, log, self._rebuild_after_erasure, self._open_files.drop)

    def catch_up(
        self, namespace: str, *, deadline: float | None = None, pause: Callable[[], None] | None = None
    ) -> ProjectionProgress:
        """Project the events after the checkpoint; return the new progress.

        Parameters:
            deadline: `time.monotonic()` seconds after which no further batch begins; None projects up to the head.
            pause: called between two batches, while other threads may use the read model.

        Raises:
            StorageError: the file cannot be written.
            LogRewound: the log ends before the checkpoint; it is an older copy.
            StillBuilding: events were erased, and the read model without them is not built yet.
            LogUnreachable: the log does not answer by the deadline, or soon after one that has passed.
        """
        answer_by = None if deadline is None else max(deadline, time.monotonic() + _LOG_SECONDS_MIN)
        with answers_by(answer_by):
            return self._catch_up(namespace, deadline, pause)

    def _catch_up(self, namespace: str, deadline: float | None, pause: Callable[[], None] | None) -> ProjectionProgress:
        head = self._head(namespace, deadline)
        if head == 0:
            return ProjectionProgress(namespace=namespace, version=0, head=0, parked=None)
        if deadline is None and head > self._far_behind_events:
            self._rebuild_far_behind(namespace, head)
        with self._using(namespace) as read_model:
            if read_model.projector.row.checkpoint < head:
                batch = self._first_batch_events
                while self._project(read_model, head, deadline, batch, is_alone=pause is not None) and pause:
                    pause()
                    batch = min(_PAUSE_EVENTS, self._batch_events)
            elif read_model.projector.row.checkpoint > head:
                self._check_rewound(read_model, namespace)
            return self._progress(read_model, namespace, head)

    @contextmanager
    def reading(self, namespace: str) -> Generator[Snapshot]:
        """Yield a snapshot of the live read model; an empty one for a namespace without events.

        While the log cannot be reached, the file that is there is read as it is.
        """
        if self._has_events(namespace):
            with self._using(namespace) as read_model, read_model.reading(self.default_zone) as snapshot:
                yield snapshot
        else:
            yield Snapshot(empty_read_model(self.log.log_id, namespace), 0, self.default_zone)

    def progress(self, namespace: str) -> ProjectionProgress:
        """Return the progress of the read model, without projecting events."""
        head = self._head(namespace)
        if head == 0:
            return ProjectionProgress(namespace=namespace, version=0, head=0, parked=None)
        with self._using(namespace) as read_model:
            with read_model.lock, storage_errors(read_model.path):
                read_model.projector.refresh()
            return self._progress(read_model, namespace, head)

    def parked(self) -> list[Parked]:
        """Return the parked namespaces that this process has opened since its start, by name."""
        with self._open_files.lock:
            return [self._parked[namespace] for namespace in sorted(self._parked)]

    @property
    def open_count(self) -> int:
        """Return the number of namespaces whose read model is open."""
        return self._open_files.count

    def replay(self, namespace: str, *, on_progress: OnProgress | None = None) -> int:
        """Build the next generation while the live one serves, then publish it; return the number of events projected.

        Parameters:
            on_progress: called with (events projected, events in all) after each batch.

        Raises:
            ProjectionFailed: an event cannot be projected; the live generation stays in use.
        """
        if self.log.head(namespace).version == 0:
            return 0
        folder = namespace_folder(self.data, namespace)

        def build(path: Path) -> int:
            size = self._replay_batch_events
            with storage_errors(path):
                version = build_read_model(path, self.log, namespace, batch_events=size, on_progress=on_progress)
            self._publish(namespace, folder, path, version)
            return version

        return built(folder, build)

    def check(self, namespace: str, *, on_progress: OnProgress | None = None) -> ReplayCheck:
        """Build the read model in a temporary file and compare its content hash with the live one's."""
        self.catch_up(namespace)
        with self.reading(namespace) as live:
            version, live_digest = live.version, live.content_hash()

        def replayed(path: Path) -> str:
            size = self._replay_batch_events
            with storage_errors(path):
                build_read_model(path, self.log, namespace, until=version, batch_events=size, on_progress=on_progress)
                with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
                    return content_hash(connection)

        replayed_digest = built(namespace_folder(self.data, namespace), replayed)
        search_equal = True
        if version:
            with self._using(namespace) as read_model:
                search_equal = read_model.search_matches()
        return ReplayCheck(
            namespace=namespace,
            version=version,
            live_digest=live_digest,
            replayed_digest=replayed_digest,
            search_equal=search_equal,
        )

    def close(self) -> None:
        """Close every file; a file in use is closed by its last reader."""
        self._open_files.drop_all()

    def _has_events(self, namespace: str) -> bool:
        """Return whether the namespace has events; while the log cannot be reached, whether it has a read model."""
        try:
            return self._head(namespace) > 0
        except LogUnreachable:
            if generations(namespace_folder(self.data, namespace)):
                return True
            raise

    def _head(self, namespace: str, deadline: float | None = None) -> int:
        """Return the newest version; first remove what was derived from events that are erased."""
        head = self.log.head(namespace)
        self.purges.follow(head, deadline=deadline)
        return head.version

    def _rebuild_after_erasure(self, namespace: str) -> None:
        """Publish a generation without erased events; an empty one when an event cannot be projected."""
        try:
            self.replay(namespace)
        except ProjectionFailed:
            # The next catch-up projects the events before the failing one and parks the namespace.
            self._begin_generation(namespace, namespace_folder(self.data, namespace))

    def _rebuild_far_behind(self, namespace: str, head: int) -> None:
        """Replay a read model that lacks most of a long log: in bulk, that is much faster than a catch-up."""
        progress = self.progress(namespace)
        if progress.parked is None and progress.behind > self._far_behind_events and progress.behind > head // 2:
            try:
                self.replay(namespace)
            except ProjectionFailed:
                # A catch-up projects the events before the failing one and parks the namespace.
                _logger.warning("namespace %.12s cannot be replayed", folder_name(namespace), exc_info=True)

    def _project(
        self, read_model: OpenReadModel, head: int, deadline: float | None, batch: int, *, is_alone: bool
    ) -> bool:
        """Project events up to `head`, in batches until `deadline` or in one alone; return whether more can follow."""
        timeout = -1 if deadline is None else max(0.0, deadline - time.monotonic())
        if not read_model.lock.acquire(timeout=timeout):
            return False
        try:
            with storage_errors(read_model.path), read_model.busy_until(deadline):
                while read_model.projector.row.checkpoint < head and read_model.projector.advance(batch):
                    if deadline is not None and time.monotonic() > deadline:
                        return False
                    if is_alone:
                        return read_model.projector.row.checkpoint < head
                    batch = self._batch_events
            return False
        finally:
            read_model.lock.release()

    def _check_rewound(self, read_model: OpenReadModel, namespace: str) -> None:
        """Raise `LogRewound` when the log ends before the checkpoint.

        The head is read again: another process may have projected an event appended after the first reading.
        """
        checkpoint = read_model.projector.row.checkpoint
        if self.log.head(namespace).version < checkpoint:
            self._open_files.drop(namespace)
            raise LogRewound(namespace, checkpoint)

    def _progress(self, read_model: OpenReadModel, namespace: str, head: int) -> ProjectionProgress:
        parked = read_model.projector.parked
        if parked is not None or self._parked:
            with self._open_files.lock:
                if parked is not None:
                    self._parked[namespace] = parked
                else:
                    self._parked.pop(namespace, None)
        version = read_model.projector.row.checkpoint
        return ProjectionProgress(namespace=namespace, version=version, head=head, parked=parked)

    @contextmanager
    def _using(self, namespace: str) -> Generator[OpenReadModel]:
        """Yield the open read model of `namespace`; when its file is damaged, replace it for the next use."""
        with self._open_files.using(namespace, partial(self._open_live, namespace)) as read_model:
            try:
                yield read_model
            except apsw.SQLError as error:
                with self._open_files.lock:
                    if read_model.has_own_schema():
                        raise
                    self._replace_live(namespace, "its schema is damaged")
                raise ForeignFile(
                    f"{read_model.path} is damaged ({error}); it is built again from the log, so ask again, or run "
                    "`recollect replay`"
                ) from error
            except (apsw.CorruptError, apsw.NotADBError, ForeignFile) as error:
                # If the log is the damaged file, keep the read model: it may be the only copy of the content.
                if not isinstance(error, ForeignFile) or error.path == read_model.path:
                    with self._open_files.lock:
                        self._replace_live(namespace, "it is damaged")
                raise

    def _open_live(self, namespace: str) -> OpenReadModel:
        """Open the live generation; begin an empty one when none exists, or when it is damaged or of another log."""
        folder = namespace_folder(self.data, namespace)
        if not generations(folder):
            self._begin_generation(namespace, folder)
        try:
            return OpenReadModel(self.log, namespace, folder)
        except LogRewound as problem:
            self._parked[namespace] = Parked(namespace=namespace, version=problem.version, error=str(problem))
            raise
        except ForeignFile as problem:
            if problem.path not in (None, generation_path(folder, generations(folder)[-1])):
                raise
            self._replace_live(namespace, problem)
            return OpenReadModel(self.log, namespace, folder)

    def _replace_live(self, namespace: str, problem: str | ForeignFile) -> None:
        """Publish an empty generation over the live one; the next catch-up projects the log into it."""
        self._rebuild_log.warn(namespace, problem)
        self._open_files.drop(namespace)
        self._begin_generation(namespace, namespace_folder(self.data, namespace))

    def _begin_generation(self, namespace: str, folder: Path) -> None:
        """Publish an empty generation."""
        generation, path = next_generation(folder), empty_path(folder)
        with storage_errors(path):
            create_file(path, indexed=True)
            connection = connect(path)
            add_state(connection, log_id=self.log.log_id, namespace=namespace)
            connection.close()
            # When another process publishes first, its generation is empty too and serves as well.
            publish(path, folder, generation, self.log.log_id)

    def _publish(self, namespace: str, folder: Path, path: Path, version: int) -> None:
        """Publish the file `path`, built up to `version`, as the live generation, with the events appended since."""
        generation = next_generation(folder)
        with storage_errors(path):
            if self.log.head(namespace).version > version:
                with closing(connect(path)) as connection:
                    projector = Projector(self.log, namespace, connection, path)
                    while projector.advance(self._batch_events):
                        pass
            with self._open_files.lock:
                # When another process publishes first, its replay has the same content.
                publish(path, folder, generation, self.log.log_id)
                self._open_files.drop(namespace)
                self._parked.pop(namespace, None)
