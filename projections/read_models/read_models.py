"""Read models: bring the read model of a namespace up to date with the log before it is read."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, tzinfo
from pathlib import Path

from msgspec import Struct

from recollect.events.backends.answer_deadline import answers_by
from recollect.events.backends.log import EventLog
from recollect.events.errors import LogRewound, LogUnreachable, ProjectionFailed
from recollect.events.progress import OnProgress
from recollect.events.storage.database import storage_errors
from recollect.events.storage.namespace_folder import folder_name
from recollect.projections.projection_settings import OPEN_MODELS_MAX
from recollect.projections.projector.projector import BATCH_EVENTS, FIRST_BATCH_EVENTS, Parked
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.disk_limit import DiskLimit
from recollect.projections.read_models.layout import generations, namespace_folder
from recollect.projections.read_models.live_files import LiveFiles
from recollect.projections.read_models.open_read_model import OpenReadModel
from recollect.projections.read_models.purges import Purges
from recollect.projections.read_models.replay import BATCH_EVENTS as REPLAY_BATCH_EVENTS
from recollect.projections.read_models.replays import ReplayCheck, Replays
from recollect.projections.schema.schema import empty_read_model

_logger = logging.getLogger(__name__)

#: Seconds that the log has to answer when the deadline of a catch-up has passed: one batch is projected all the same.
_LOG_SECONDS_MIN = 0.1
#: Missing events over which a read model is replayed in bulk instead of caught up: some seconds of projecting.
FAR_BEHIND_EVENTS = 20_000
#: Events between two pauses: some 30 ms of projecting, so that three threads can pause for ten times as long.
_PAUSE_EVENTS = 500


class ProjectionProgress(Struct, frozen=True, kw_only=True):
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
        self._far_behind_events = far_behind_events
        #: Removes read models and vectors that were not used lately.
        self.disk_limit = DiskLimit(data, log, disk_bytes_max)
        #: Namespaces whose files stay open; the same holds for their vectors.
        self.open_files_max = open_files_max
        #: The open files of the live generations.
        self.live = LiveFiles(data, log, self.disk_limit, open_files_max=open_files_max)
        self._replays = Replays(data, log, self.live, batch_events=replay_batch_events)
        #: Follows the erasures of the log.
        self.purges = Purges(data, log, self._replays.publish_without_erased, self.live.drop)

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
        with self.live.using(namespace) as read_model:
            if read_model.projector.row.checkpoint < head:
                batch = self._first_batch_events
                while self._project(read_model, head, deadline, batch, is_alone=pause is not None) and pause:
                    pause()
                    batch = min(_PAUSE_EVENTS, self._batch_events)
            elif read_model.projector.row.checkpoint > head:
                self._check_rewound(read_model, namespace)
            return self._progress(read_model, namespace, head)

    @contextmanager
    def reading(self, namespace: str, *, has_events: bool = False) -> Generator[Snapshot]:
        """Yield a snapshot of the live read model; an empty one for a namespace without events.

        While the log cannot be reached, the file that is there is read as it is.

        Parameters:
            has_events: whether the caller has just caught up with a log that has events, which is then not asked again.
        """
        if has_events or self._has_events(namespace):
            with self.live.using(namespace) as read_model, read_model.reading(self.default_zone) as snapshot:
                yield snapshot
        else:
            yield Snapshot(empty_read_model(self.log.log_id, namespace), 0, self.default_zone)

    def progress(self, namespace: str) -> ProjectionProgress:
        """Return the progress of the read model, without projecting events."""
        head = self._head(namespace)
        if head == 0:
            return ProjectionProgress(namespace=namespace, version=0, head=0, parked=None)
        with self.live.using(namespace) as read_model:
            with read_model.lock, storage_errors(read_model.path):
                read_model.projector.refresh()
            return self._progress(read_model, namespace, head)

    def retry(self, namespace: str) -> ProjectionProgress:
        """Project again from the event at which a namespace is parked; return the new progress."""
        if self._head(namespace):
            with self.live.using(namespace) as read_model, read_model.lock, storage_errors(read_model.path):
                read_model.projector.retry()
        return self.catch_up(namespace)

    def replay(self, namespace: str, *, parks: bool = False, on_progress: OnProgress | None = None) -> int:
        """Build the next generation while the live one serves, then publish it; return the number of events projected.

        Parameters:
            parks: whether an event that cannot be projected ends the new generation, which is parked there, in place of
                the replay.
            on_progress: called with (events projected, events in all) after each batch.

        Raises:
            ProjectionFailed: an event cannot be projected; the live generation stays in use.
        """
        try:
            return self._replays.publish(namespace, on_progress=on_progress)
        except ProjectionFailed as failed:
            if not parks:
                raise
            self._replays.publish(namespace, until=failed.version - 1, on_progress=on_progress)
            return self.catch_up(namespace).version

    def check(self, namespace: str, *, on_progress: OnProgress | None = None) -> ReplayCheck:
        """Compare the live read model, brought up to date, with one that is built from the log in a temporary file."""
        self.catch_up(namespace)
        with self.reading(namespace) as live:
            return self._replays.compared(namespace, live, on_progress)

    def close(self) -> None:
        """Close every file; a file in use is closed by its last reader."""
        self.live.close()

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
        except LogRewound:
            # Opened again, it is refused to readers, too.
            self.live.drop(read_model.projector.namespace)
            raise
        finally:
            read_model.lock.release()

    def _check_rewound(self, read_model: OpenReadModel, namespace: str) -> None:
        """Raise `LogRewound` when the log ends before the checkpoint.

        The head is read again: another process may have projected an event appended after the first reading.
        """
        checkpoint = read_model.projector.row.checkpoint
        if self.log.head(namespace).version < checkpoint:
            self.live.drop(namespace)
            raise LogRewound(namespace, checkpoint)

    def _progress(self, read_model: OpenReadModel, namespace: str, head: int) -> ProjectionProgress:
        parked, version = read_model.projector.parked, read_model.projector.row.checkpoint
        self.live.note_parked(namespace, parked)
        return ProjectionProgress(namespace=namespace, version=version, head=head, parked=parked)
