"""Purges: remove what was derived from erased events, in the data folder of each machine that reads the log.

A file in the folder of a namespace has the version of the last erasure that the folder has followed. A newer erasure in
the log builds the read model again from what is left, then removes every older generation, the read models of past
versions, and what listeners derived.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from recollect.events.backends.log import EventLog
from recollect.events.envelope import Head
from recollect.events.errors import StillBuilding
from recollect.events.storage.atomic_file import write_atomically
from recollect.events.storage.database import storage_errors
from recollect.events.storage.file_lock import file_lock
from recollect.projections.read_models.layout import generation_path, generations, namespace_folder, remove_database
from recollect.projections.read_models.lock_files import locked

#: The file with the version of the last erasure that a folder has followed, and its lock.
_MARKER, _LOCK = "erasure", "erasure.lock"


#: What was removed from a store, as a receipt says it.
Target = dict[str, Any]
#: Removes files of the data folder; called with (namespace, version of the erasure).
FolderListener = Callable[[str, int], Sequence[Target]]


class Purges:
    """The purges of one data folder. Safe to use from many threads and processes.

    Parameters:
        rebuild: builds the next generation of a namespace from the log.
        drop: closes the open file of a namespace.
    """

    def __init__(self, data: Path, log: EventLog, rebuild: Callable[[str], None], drop: Callable[[str], None]) -> None:
        self._data = data
        self._log = log
        self._rebuild = rebuild
        self._drop = drop
        #: By namespace, the erasure that this process has followed.
        self._followed: dict[str, int] = {}
        self._lock = threading.RLock()
        self._on_folder: list[FolderListener] = []
        #: By namespace, what the last purge of this process removed.
        self.targets: dict[str, list[Target]] = {}
        self._on_process: list[Callable[[str], None]] = []

    def listen(self, *, folder: FolderListener | None = None, process: Callable[[str], None] | None = None) -> None:
        """Call the listeners after each purge.

        Parameters:
            folder: called once for the folder, to remove files.
            process: called with the namespace in each process, to drop what it has in memory.
        """
        if folder is not None:
            self._on_folder.append(folder)
        if process is not None:
            self._on_process.append(process)

    def follow(self, head: Head, *, deadline: float | None = None) -> None:
        """Purge what was derived before the last erasure of a namespace, unless this process has seen that done.

        Parameters:
            deadline: `time.monotonic()` seconds until which to wait; the purge continues in the background.

        Raises:
            StillBuilding: the purge is not complete at the deadline. StorageError: the disk failed.
        """
        if not head.erasure_version or self._followed.get(head.namespace, -1) >= head.erasure_version:
            return
        if deadline is None:
            self._follow(head)
            return
        done = threading.Thread(target=self._follow_in_background, args=(head,), daemon=True, name="recollect-purge")
        done.start()
        done.join(max(0.0, deadline - time.monotonic()))
        if self._followed.get(head.namespace, -1) < head.erasure_version:
            raise StillBuilding(
                f"the read model of namespace {head.namespace!r} is being built without what was erased"
            )

    def _follow_in_background(self, head: Head) -> None:
        # The next reader tries again, and gets the error when it waits without a deadline.
        with suppress(Exception):
            self._follow(head)

    def _follow(self, head: Head) -> None:
        with self._lock:
            # A reader in this thread comes here again while listeners read what is left.
            if self._followed.get(head.namespace, -1) >= head.erasure_version:
                return
            folder = namespace_folder(self._data, head.namespace)
            with storage_errors(folder):
                mark = self._mark(head)
                if _marked(folder) != mark:
                    with file_lock(folder / _LOCK):
                        if _marked(folder) != mark:
                            self._purge(head, folder, mark)
                self._drop(head.namespace)
                self._followed[head.namespace] = head.erasure_version
            for listener in self._on_process:
                listener(head.namespace)

    def _mark(self, head: Head) -> str:
        """Return the version and the hash of the last erasure: a restored log may have another one at its version."""
        events = self._log.read_stored(head.namespace, after=head.erasure_version - 1, limit=1)
        return f"{head.erasure_version} {events[0].hash.hex()}"

    def _purge(self, head: Head, folder: Path, mark: str) -> None:
        """Build the read model again, remove the older files, and mark the folder."""
        namespace = head.namespace
        if generations(folder):
            self._rebuild(namespace)
        self._drop(namespace)
        olds = generations(folder)[:-1]
        for old in olds:
            remove_database(generation_path(folder, old))
        removed = len(olds) + self._remove_past(folder)
        before = self._followed.get(namespace, -1)
        # Listeners read the new read model, which calls `follow` again.
        self._followed[namespace] = head.erasure_version
        try:
            targets = [_read_model_target(removed)]
            for listener in self._on_folder:
                targets += listener(namespace, head.erasure_version)
            self.targets[namespace] = targets
            write_atomically(folder / _MARKER, mark.encode())
        except BaseException:
            self._followed[namespace] = before
            raise

    def _remove_past(self, folder: Path) -> int:
        """Remove the read models of past versions; a build that began before the erasure ends first."""
        removed = 0
        for marker in (self._data / "as-of").glob(f"{folder.name}-*"):
            with locked(marker) as exclusive:
                if exclusive:
                    path = folder / "as-of" / marker.name.partition("-")[2]
                    remove_database(path)
                    remove_database(path.with_suffix(".building"))
                    marker.unlink(missing_ok=True)
                    removed += 1
        if (folder / "as-of").is_dir():
            # Files without a marker were left by a process that was killed.
            for file in (folder / "as-of").iterdir():
                file.unlink(missing_ok=True)
        for name in ("building-*", "empty-*"):
            for file in folder.glob(name):
                file.unlink(missing_ok=True)
        return removed


def _marked(folder: Path) -> str:
    """Return the mark of the last erasure that `folder` has followed; empty when it has followed none."""
    try:
        return (folder / _MARKER).read_text(encoding="ascii")
    except (FileNotFoundError, ValueError):
        return ""


def _read_model_target(removed: int) -> Target:
    method = "built again from the log; older files removed"
    return {"store": "read models and keyword index", "method": method, "files_removed": removed}
