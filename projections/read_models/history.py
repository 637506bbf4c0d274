"""Read models of the past: what a memory held at a version, built when it is asked for and kept within a bound.

Each lies in its namespace's folder and never changes. Its marker (`markers`), in ``<data>/as-of``, is locked while it
is built, read or removed.
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
from recollect.projections.projection_settings import AS_OF_BYTES_MAX, AS_OF_FILES_MAX
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.layout import folder_named, namespace_folder, remove_database
from recollect.projections.read_models.lock_files import latest_first, locked, mark_used
from recollect.projections.read_models.read_models import ReadModels, empty_read_model
from recollect.projections.read_models.replay import build_read_model
from recollect.projections.schema.schema import SCHEMA_VERSION, read_state

_logger = logging.getLogger(__name__)

#: Builds in the background at once; more would only share the processor.
_BUILDERS = 2


class _PastFile(NamedTuple):
    """Where the read model of one moment lies."""

    namespace: str
    version: int
    path: Path
    marker: Path


class History:
    """The read models of the past of the data folder `data`. Safe to use from many threads and processes.

    A read model that is in use is never removed; so more than the bounds allow can be there until the next build.

    Parameters:
        log: the log they are built from.
        models: the read models of now, which serve for the newest version.
        files_max: read models kept, over all namespaces; the least recently used goes first.
        bytes_max: bytes that they take on disk; the newest one stays whatever its size.
    """

    def __init__(
        self,
        data: Path,
        log: EventLog,
        read_models: ReadModels,
        *,
        files_max: int = AS_OF_FILES_MAX,
        bytes_max: int = AS_OF_BYTES_MAX,
    ) -> None:
        self._data = data
        self._markers = data / "as-of"
        self._log = log
        self._models = read_models
        self._files_max = files_max
        self._bytes_max = bytes_max
        self._building: dict[_PastFile, Future[None]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_BUILDERS, thread_name_prefix="recollect-history")
        self._closed = False

    def version(self, namespace: str, as_of: int | datetime) -> int:
        """Return the version that `as_of` means: itself, or the last one that was recorded by then; 0 before the first.

        Parameters:
            as_of: a version from 0 to the head, or an aware time that is not in the future.

        Raises:
            InvalidInput: there is no such version yet, or the time is in the future.
        """
        head = self._log.head(namespace).version
        if isinstance(as_of, int):
            if not 0 <= as_of <= head:
                raise InvalidInput(f"give a version from 0 to {head}, the newest, or a time", field="as_of")
            return as_of
        moment_us = microseconds(as_of)
        # What is in the log counts as past, even when the clock that recorded it runs ahead of ours.
        newest = self._log.read(namespace, after=head - 1, limit=1) if head else []
        if moment_us > max(now_us(), newest[0].recorded_at_us if newest else 0):
            raise InvalidInput("is in the future, which nobody remembers; give a time up to now", field="as_of")
        return version_recorded_by(self._log, namespace, moment_us)

    @contextmanager
    def reading(
        self, namespace: str, version: int, *, deadline: float | None = None, on_progress: OnProgress | None = None
    ) -> Generator[Snapshot]:
        """Lend the read model of `namespace` as it was at `version`, built now when it is not there.

        Parameters:
            version: from `version`.
            deadline: `time.monotonic()` seconds until when to wait for the build, which goes on in the background
                after that; None builds at once, however long it takes.

        Raises:
            StillBuilding: it is not there by the deadline. ProjectionFailed: an event up to `version` cannot be folded.
            StorageError: the disk does not let us.
        """
        if version == 0:
            yield Snapshot(empty_read_model(self._log.log_id, namespace), 0)
            return
        if version == self._log.head(namespace).version:
            self._models.catch_up(namespace, deadline=deadline)
            with self._models.reading(namespace) as live:
                # It may be ahead of the head of a moment ago by now, or behind it when it is parked.
                if live.version == version:
                    yield live
                    return
        with self._past(self._file(namespace, version), deadline, on_progress) as snapshot:
            yield snapshot

    def build(self, namespace: str, version: int, *, on_progress: OnProgress | None = None) -> tuple[Path, str]:
        """Build the read model of `version`, from 1 to the head, unless it is there; return its file and its digest.

        Raises:
            ProjectionFailed: an event cannot be folded. StorageError: the disk does not let us.
        """
        file = self._file(namespace, version)
        with self._past(file, None, on_progress) as snapshot:
            return file.path, snapshot.content_hash()

    def close(self) -> None:
        """End the builds in the background after the batch at hand."""
        self._closed = True
        self._pool.shutdown(cancel_futures=True)

    def _file(self, namespace: str, version: int) -> _PastFile:
        """Return where the read model of `version` lies: named by all that decides what is in it.

        A log that was restored from a backup and went on differently has other hashes, so never another's past.
        """
        newest = self._log.read(namespace, after=version - 1, limit=1)[0]
        source = f"{SCHEMA_VERSION} {self._log.log_id} {newest.hash.hex()}"
        name = f"{version}-{sha256(source.encode()).hexdigest()[:16]}.db"
        folder = namespace_folder(self._data, namespace)
        return _PastFile(namespace, version, folder / "as-of" / name, self._markers / f"{folder.name}-{name}")

    @contextmanager
    def _past(self, file: _PastFile, deadline: float | None, on_progress: OnProgress | None) -> Generator[Snapshot]:
        """Lend the read model in `file`, once it is built."""
        while True:
            with self._opened(file) as snapshot:
                if snapshot is not None:
                    yield snapshot
                    return
            if deadline is None:
                self._build(file, on_progress)
            else:
                self._await_build(file, deadline)

    @contextmanager
    def _opened(self, file: _PastFile) -> Generator[Snapshot | None]:
        """Lend the read model in `file`; None when it is not there, not whole, or just being built."""
        with locked(file.marker, shared=True, wait=False) as reading:
            connection = self._connection(file) if reading else None
            if connection is None:
                yield None
                return
            try:
                mark_used(file.marker)
                yield Snapshot(connection, file.version)
            except (apsw.CorruptError, apsw.NotADBError):
                # Who has it open keeps it; the next one builds it anew.
                remove_database(file.path)
                raise
            finally:
                connection.close()

    def _connection(self, file: _PastFile) -> apsw.Connection | None:
        """Open a read model that is whole and ours, which never changes again: without locks or a WAL."""
        uri = f"file:{quote(str(file.path.resolve()))}?immutable=1"
        try:
            connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        except apsw.CantOpenError:
            return None
        try:
            connection.pragma("temp_store", "MEMORY")
            row = read_state(connection)
            if row[:4] == (SCHEMA_VERSION, self._log.log_id, file.namespace, file.version):
                return connection
        except (apsw.Error, LookupError, TypeError) as error:
            _logger.warning("%s is damaged and built anew: %s", file.path, error)
        connection.close()
        return None

    def _await_build(self, file: _PastFile, deadline: float) -> None:
        """Build `file` in the background, once however many ask, and wait for it until the deadline."""
        with self._lock:
            future = self._building.get(file)
            if future is None:
                future = self._building[file] = self._pool.submit(self._build_in_background, file)
        try:
            future.result(max(0.0, deadline - time.monotonic()))
        except (FutureTimeout, CancelledError):
            raise StillBuilding(f"the read model of version {file.version} is being built") from None
        except BaseException:
            self._forget(file)
            raise

    def _build_in_background(self, file: _PastFile) -> None:
        # When it fails, that is kept for the next one who asks: nobody may be waiting any more.
        self._build(file, None)
        self._forget(file)

    def _forget(self, file: _PastFile) -> None:
        with self._lock:
            self._building.pop(file, None)

    def _build(self, file: _PastFile, on_progress: OnProgress | None) -> None:
        """Build `file` unless it is there, or wait until somebody else has."""
        while True:
            # Shared first: it is free as soon as the one who builds is done, though others read from then on.
            with locked(file.marker, shared=True) as reading:
                if reading and self._is_whole(file):
                    return
            with locked(file.marker) as alone:
                if alone and not self._is_whole(file):
                    self._build_alone(file, on_progress)
                    self._keep_within_bounds()

    def _is_whole(self, file: _PastFile) -> bool:
        connection = self._connection(file)
        if connection is not None:
            connection.close()
        return connection is not None

    def _build_alone(self, file: _PastFile, on_progress: OnProgress | None) -> None:
        """Build `file` while its marker is held: under another name, so that what a kill leaves is never read."""
        unfinished = file.path.with_suffix(".building")

        def report(done: int, total: int) -> None:
            if self._closed:
                raise StorageError("the memory was closed before the read model was built")
            if on_progress is not None:
                on_progress(done, total)

        with storage_errors(unfinished):
            file.path.parent.mkdir(parents=True, exist_ok=True)
            # What was begun and killed before, or is damaged.
            remove_database(unfinished)
            remove_database(file.path)
            try:
                version = build_read_model(
                    unfinished, self._log, file.namespace, until=file.version, on_progress=report
                )
                if version != file.version:
                    raise StorageError(
                        f"the log gives no event after version {version} of namespace {file.namespace!r}"
                    )
                unfinished.rename(file.path)
            finally:
                remove_database(unfinished)
            mark_used(file.marker)

    def _keep_within_bounds(self) -> None:
        """Remove what is over the bounds and not in use, the least recently used first."""
        size_bytes = 0
        with storage_errors(self._markers):
            for kept, marker in enumerate(latest_first(self._markers), start=1):
                path = self._path_of(marker)
                size_bytes += _size_bytes(path)
                if kept > self._files_max or size_bytes > self._bytes_max:
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
