"""Disk limit: removes the read model and the vectors of the namespaces used least recently, over a number of bytes.

Both can be rebuilt: the next reader of such a namespace builds them again. Nothing else is removed: locks, the version
of the last erasure, read models of the past, files of a replaced log, and every file of a namespace whose log does not
have the projected events any longer.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import apsw

from recollect.events.backends.log import EventLog
from recollect.events.envelope import Head
from recollect.events.errors import RecollectError, StorageError
from recollect.events.storage.atomic_file import write_atomically
from recollect.events.storage.database import connect, storage_errors
from recollect.events.storage.file_lock import file_lock
from recollect.projections.read_models.layout import (
    EVICTED_NAME,
    VECTORS_FILE,
    generation_path,
    generations,
    namespace_folder,
    remove_database,
    remove_vectors,
)
from recollect.projections.read_models.lock_files import mark_used
from recollect.projections.read_models.log_checkpoint import has_checkpoint
from recollect.projections.schema.schema import ReadModelState, read_state

_logger = logging.getLogger(__name__)

#: The lock of a namespace's folder: shared while a file is open, exclusive while files are removed. Its time is that
#: of the last use.
_LOCK = "in-use.lock"
#: Share of the limit that is left after files were removed, so that this happens now and then only.
_KEPT_SHARE = 0.9
#: Seconds between two looks at all folders, at least, and as a multiple of the time that the last one took: 5 % of a
#: core at most. A look at 100,000 folders takes some seconds.
_SCAN_SECONDS_MIN = 10.0
_SCAN_PAUSE_FACTOR = 20.0


#: Namespaces whose events cannot be read, after which the log counts as unavailable.
_FAILURES_MAX = 3


class _Folder(NamedTuple):
    """The folder of a namespace with files that can be removed."""

    used_at_ns: int
    size_bytes: int
    path: Path


class DiskLimit:
    """The limit of one data folder. Safe to use from many threads; all processes of the folder need the same limit.

    Files that are open stay, so the limit may be exceeded by those of `open_models_max` namespaces for each process.

    Parameters:
        bytes_max: bytes of read models and vectors on disk; 0: no limit.
    """

    def __init__(self, data: Path, log: EventLog, bytes_max: int) -> None:
        self._data = data
        self._log = log
        self.bytes_max = bytes_max
        self._lock = threading.Lock()
        #: `time.monotonic()` seconds of the next look at all folders.
        self._next_scan = 0.0

    @contextmanager
    def in_use(self, namespace: str) -> Generator[None]:
        """Keep the files of `namespace`; without a limit, nothing is ever removed."""
        if not self.bytes_max:
            yield
            return
        marker = namespace_folder(self._data, namespace) / _LOCK
        with file_lock(marker, shared=True):
            mark_used(marker)
            self._trim_when_due()
            try:
                yield
            finally:
                with suppress(OSError):
                    mark_used(marker)

    def is_cold(self, namespace: str) -> bool:
        """Return whether there is a limit, and this machine has no read model of the namespace."""
        return bool(self.bytes_max) and not generations(namespace_folder(self._data, namespace))

    def is_evicted(self, head: Head) -> bool:
        """Return whether the read model was removed when it had all events up to `head`."""
        if not self.is_cold(head.namespace):
            return False
        try:
            evicted = (namespace_folder(self._data, head.namespace) / EVICTED_NAME).read_text(encoding="ascii")
        except (OSError, ValueError):
            return False
        return evicted.split()[-1:] == [str(head.version)]

    def trim(self) -> int:
        """Remove the files of the namespaces used least recently while there are too many bytes; return their number.

        Raises:
            StorageError: the log cannot be read, so that nothing could be rebuilt; or the disk fails.
        """
        if not self.bytes_max:
            return 0
        with storage_errors(self._data):
            folders = sorted(self._folders())
        excess = sum(folder.size_bytes for folder in folders)
        if excess <= self.bytes_max:
            return 0
        excess -= int(_KEPT_SHARE * self.bytes_max)
        removed = failures = 0
        for folder in folders:
            if excess <= 0:
                break
            try:
                if self._remove(folder.path):
                    removed += 1
                    excess -= folder.size_bytes
            except RecollectError:
                # One namespace of the log may be damaged; its files stay.
                failures += 1
                if failures >= _FAILURES_MAX:
                    raise
        return removed

    def _trim_when_due(self) -> None:
        """Look at all folders in the background, unless that was done a short time ago."""
        with self._lock:
            if time.monotonic() < self._next_scan:
                return
            self._next_scan = float("inf")
        threading.Thread(target=self._trim_in_background, daemon=True, name="recollect-disk-limit").start()

    def _trim_in_background(self) -> None:
        started = time.monotonic()
        try:
            self.trim()
        except RecollectError:
            _logger.warning("read models over the limit of the disk could not be removed", exc_info=True)
        finally:
            ended = time.monotonic()
            self._next_scan = ended + max(_SCAN_SECONDS_MIN, _SCAN_PAUSE_FACTOR * (ended - started))

    def _folders(self) -> Iterator[_Folder]:
        """Yield the folders of all namespaces with files that can be removed."""
        for parent in _subfolders(self._data / "namespaces"):
            for path in _subfolders(parent):
                used_at_ns = size_bytes = 0
                with suppress(FileNotFoundError), os.scandir(path) as entries:
                    for entry in entries:
                        with suppress(FileNotFoundError):
                            status = entry.stat()
                            size_bytes += status.st_size if entry.name.partition("-")[0].endswith(".db") else 0
                            if entry.name == _LOCK or not used_at_ns:
                                used_at_ns = status.st_mtime_ns
                if size_bytes:
                    yield _Folder(used_at_ns, size_bytes, path)

    def _remove(self, folder: Path) -> bool:
        """Remove the files of a namespace; return False when they are in use, or cannot be rebuilt."""
        with file_lock(folder / _LOCK, wait=False) as unused:
            numbers = generations(folder)
            if unused is None or not numbers:
                return False
            states = [_state(generation_path(folder, number)) for number in numbers]
            if not all(state is not None and self._can_rebuild(state) for state in states):
                return False
            newest = states[-1]
            version = 0 if newest is None else newest.checkpoint
            with storage_errors(folder):
                # The next generation gets the next number: no two files have had the same name.
                write_atomically(folder / EVICTED_NAME, f"{numbers[-1]} {version}\n".encode())
                for number in numbers:
                    remove_database(generation_path(folder, number))
                # A rebuild keeps the vectors; only this module removes them with the read model.
                remove_vectors(folder / VECTORS_FILE)
        _logger.info("the read model of namespace %.12s was removed from this disk: not used lately", folder.name)
        return True

    def _can_rebuild(self, state: ReadModelState) -> bool:
        """Return whether the log has all events of a read model.

        Raises:
            StorageError: the log cannot be read.
        """
        return state.log_id == self._log.log_id and (
            not state.checkpoint or has_checkpoint(self._log, state.namespace, state)
        )


def _state(path: Path) -> ReadModelState | None:
    """Return the state of a read model; None when the file is not a read model."""
    try:
        with closing(connect(path, create=False)) as connection:
            return read_state(connection)
    except (StorageError, apsw.Error, LookupError):
        return None


def _subfolders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    with os.scandir(folder) as entries:
        return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
