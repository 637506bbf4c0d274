"""History: builds the read model of a past version on demand, and keeps a bounded number of them on disk.

The file is in its namespace's folder and never changes. Its marker (`lock_files`), in ``<data>/as-of``, is locked while
the file is built, read or removed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Generator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import apsw

from recollect.events.backends.log import EventLog, version_recorded_by
from recollect.events.envelope import microseconds, now_us
from recollect.events.errors import InvalidInput, StillBuilding, StorageError
from recollect.events.progress import OnProgress
from recollect.events.storage.database import storage_errors
from recollect.events.storage.private_files import make_private_folder
from recollect.projections.projection_settings import AS_OF_BYTES_MAX
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.build_limits import BuildLimits
from recollect.projections.read_models.layout import folder_named, namespace_folder, remove_database
from recollect.projections.read_models.lock_files import latest_first, locked, mark_used
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.read_models.replay import build_read_model
from recollect.projections.schema.schema import SCHEMA_VERSION, empty_read_model, read_state

_logger = logging.getLogger(__name__)

#: Read models of the past on disk, over all namespaces.
_FILES_MAX = 16
#: Builds in the background at once: more of them would only share the processor.
_BUILDERS = 2


class _PastFile(NamedTuple):
    """The file of the read model of one past version, and its marker."""

    namespace: str
    version: int
    path: Path
    marker: Path


class History:
    """The read models of past versions in the data folder `data`. Safe to use from many threads and processes.

    A read model in use is not removed, so the limits may be exceeded until the next build.

    Parameters:
        log: the log to project.
        read_models: the live read models; they serve the newest version.
        files_max: files of past versions, over all namespaces; the least recently used one is removed first.
        bytes_max: bytes of these files on disk; the newest file stays at any size.
    """

    def __init__(
        self,
        data: Path,
        log: EventLog,
        read_models: ReadModels,
        *,
        files_max: int = _FILES_MAX,
        bytes_max: int = AS_OF_BYTES_MAX,
    ) -> None:
        self._data = data
        self._markers = data / "as-of"
        self._log = log
        self._read_models = read_models
        self._files_max = files_max
        self._bytes_max = bytes_max
        self._building: dict[_PastFile, Future[None]] = {}
        self._lock = threading.Lock()
        self._limits = BuildLimits()
        self._pool = ThreadPoolExecutor(_BUILDERS, thread_name_prefix="recollect-history")
        self._closed = False

    def version(self, namespace: str, as_of: int | datetime) -> int:
        """Return `as_of` when it is a version; for a time, the last version recorded by then, 0 before the first.

        Parameters:
            as_of: a version from 0 to the head, or a time with a time zone that is not in the future.

        Raises:
            InvalidInput: the version is over the head, or the time is in the future.
        """
        head = self._log.head(namespace).version
        if isinstance(as_of, int):
            if not 0 <= as_of <= head:
                raise InvalidInput(f"give a version from 0 to {head}, the newest, or a time", field="as_of")
            return as_of
        as_of_us = microseconds(as_of)
        # A recorded event is in the past, even when the clock that recorded it is ahead of this machine's.
        newest = self._log.read(namespace, after=head - 1, limit=1) if head else []
        if as_of_us > max(now_us(), newest[0].recorded_at_us if newest else 0):
            raise InvalidInput("is in the future; give a time up to now", field="as_of")
        return version_recorded_by(self._log, namespace, as_of_us)

    @contextmanager
    def reading(
        self, namespace: str, version: int, *, deadline: float | None = None, on_progress: OnProgress | None = None
    ) -> Generator[Snapshot]:
        """Yield the read model of `namespace` at `version`; build it when it is not on disk.

        Parameters:
            version: from 0 to the head.
            deadline: `time.monotonic()` seconds at which to stop waiting; the build continues in the background. None
                builds in this thread, without a time limit.
            on_progress: called with (events projected, events in all) after each batch of a build in this thread.

        Raises:
            StillBuilding: the build is not complete at the deadline; `TooManyBuilds` when it has not begun.
            ProjectionFailed: an event up to `version` cannot be projected.
            StorageError: the file cannot be written or read.
        """
        if version == 0:
            yield Snapshot(empty_read_model(self._log.log_id, namespace), 0, self._read_models.default_zone)
            return
        head = self._log.head(namespace)
        self._read_models.purges.follow(head, deadline=deadline)
        if version == head.version:
            self._read_models.catch_up(namespace, deadline=deadline)
            with self._read_models.reading(namespace) as live:
                # Later when an event was appended meanwhile, earlier when the namespace is parked.
                if live.version == version:
                    yield live
                    return
        with self._past(self._file(namespace, version), deadline, on_progress) as snapshot:
            yield snapshot

    def build(self, namespace: str, version: int, *, on_progress: OnProgress | None = None) -> tuple[Path, str]:
        """Build the read model of `version` unless it is on disk; return its path and its content hash.

        Parameters:
            version: from 1 to the head.

        Raises:
            ProjectionFailed: an event cannot be projected. StorageError: the file cannot be written or read.
            TooManyBuilds: too many others are built at the same time.
        """
        file = self._file(namespace, version)
        with self._past(file, None, on_progress) as snapshot:
            return file.path, snapshot.content_hash()

    def close(self) -> None:
        """Stop the builds in the background after their current batch."""
        self._closed = True
        self._pool.shutdown(cancel_futures=True)

    def _file(self, namespace: str, version: int) -> _PastFile:
        """Return the file of the read model of `version`; its name hashes everything that determines its content.

        The chain hash is part of it: a log restored from a backup and continued differently gets other files.
        """
        newest = self._log.read(namespace, after=version - 1, limit=1)[0]
        erasure_version = self._log.head(namespace).erasure_version
        source = f"{SCHEMA_VERSION} {self._log.log_id} {newest.hash.hex()} {erasure_version or ''}".rstrip()
        name = f"{version}-{sha256(source.encode()).hexdigest()[:16]}.db"
        folder = namespace_folder(self._data, namespace)
        return _PastFile(namespace, version, folder / "as-of" / name, self._markers / f"{folder.name}-{name}")

    @contextmanager
    def _past(self, file: _PastFile, deadline: float | None, on_progress: OnProgress | None) -> Generator[Snapshot]:
        """Yield the read model in `file`; build it first when it is missing."""
        while True:
            with self._open(file) as snapshot:
                if snapshot is not None:
                    yield snapshot
                    return
            if deadline is None:
                with self._limits.caller(file.namespace, file.version):
                    self._build(file, on_progress)
            else:
                self._await_build(file, deadline)

    @contextmanager
    def _open(self, file: _PastFile) -> Generator[Snapshot | None]:
        """Yield the read model in `file`; None when it is missing, damaged or being built."""
        with locked(file.marker, shared=True, wait=False) as reading:
            connection = self._connect(file) if reading else None
            if connection is None:
                yield None
                return
            try:
                mark_used(file.marker)
                yield Snapshot(connection, file.version, self._read_models.default_zone)
            except (apsw.CorruptError, apsw.NotADBError):
                # Other readers keep their open file; the next reader builds a new one.
                remove_database(file.path)
                raise
            finally:
                connection.close()

    def _connect(self, file: _PastFile) -> apsw.Connection | None:
        """Return a connection to a complete read model of this log; None when the file is missing or another.

        The file is immutable, so SQLite needs neither locks nor a WAL.
        """
        uri = f"file:{quote(str(file.path.resolve()))}?immutable=1"
        try:
            connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        except apsw.CantOpenError:
            return None
        try:
            connection.pragma("temp_store", "MEMORY")
            row = read_state(connection)
            identity = (row.schema_version, row.log_id, row.namespace, row.checkpoint)
            if identity == (SCHEMA_VERSION, self._log.log_id, file.namespace, file.version):
                return connection
        except (apsw.Error, LookupError) as error:
            _logger.warning("%s is damaged and is built again: %s", file.path, error)
        connection.close()
        return None

    def _await_build(self, file: _PastFile, deadline: float) -> None:
        """Build `file` in the background and wait for it until the deadline. Concurrent callers share one build."""
        with self._lock:
            future = self._building.get(file)
            if future is None:
                self._limits.enter(file.namespace, file.version)
                future = self._building[file] = self._pool.submit(self._build_in_background, file)
        try:
            future.result(max(0.0, deadline - time.monotonic()))
        except (FutureTimeout, CancelledError):
            raise StillBuilding(f"the read model of version {file.version} is being built") from None
        except BaseException:
            self._forget(file)
            raise

    def _build_in_background(self, file: _PastFile) -> None:
        # The future of a failed build stays, so that the next caller gets the error: the first may not wait any more.
        try:
            self._build(file, None)
        finally:
            self._limits.leave(file.namespace, file.version)
        self._forget(file)

    def _forget(self, file: _PastFile) -> None:
        with self._lock:
            self._building.pop(file, None)

    def _build(self, file: _PastFile, on_progress: OnProgress | None) -> None:
        """Build `file` unless it is complete, or wait for the build of another thread or process."""
        while True:
            # The shared lock first: it is free as soon as a build ends, even when readers use the file from then on.
            with locked(file.marker, shared=True) as reading:
                if reading and self._is_complete(file):
                    return
            with locked(file.marker) as exclusive:
                if exclusive and not self._is_complete(file):
                    self._build_locked(file, on_progress)
                    self._remove_over_limits()

    def _is_complete(self, file: _PastFile) -> bool:
        connection = self._connect(file)
        if connection is not None:
            connection.close()
        return connection is not None

    def _build_locked(self, file: _PastFile, on_progress: OnProgress | None) -> None:
        """Build `file` under a temporary name, so that the rest of a killed build is never read.

        The caller has the exclusive lock of the marker.
        """
        unfinished = file.path.with_suffix(".building")

        def report(done: int, total: int) -> None:
            if self._closed:
                raise StorageError("the memory was closed before the read model was complete; open it and ask again")
            if on_progress is not None:
                on_progress(done, total)

        with storage_errors(unfinished):
            make_private_folder(file.path.parent)
            # Remove the file of a killed build, and a damaged one.
            remove_database(unfinished)
            remove_database(file.path)
            try:
                version = build_read_model(
                    unfinished, self._log, file.namespace, until=file.version, on_progress=report
                )
                if version != file.version:
                    raise StorageError(
                        f"the log has no event after version {version} of namespace {file.namespace!r}, "
                        f"so version {file.version} cannot be built; check the log with `recollect verify`"
                    )
                unfinished.rename(file.path)
            finally:
                remove_database(unfinished)
            mark_used(file.marker)

    def _remove_over_limits(self) -> None:
        """Remove the least recently used files over the limits, except those in use."""
        size_bytes = 0
        with storage_errors(self._markers):
            for count, marker in enumerate(latest_first(self._markers), start=1):
                path = self._path_of(marker)
                size_bytes += _size_bytes(path)
                if count > self._files_max or size_bytes > self._bytes_max:
                    self._remove(marker, path)

    def _remove(self, marker: Path, path: Path) -> None:
        with locked(marker, wait=False) as unused:
            if unused:
                remove_database(path)
                remove_database(path.with_suffix(".building"))
                marker.unlink()

    def _path_of(self, marker: Path) -> Path:
        folder, _, name = marker.name.partition("-")
        return folder_named(self._data, folder) / "as-of" / name


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
