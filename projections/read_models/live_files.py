"""Live files: open the live generation of each namespace, replace a damaged one, and publish the next one."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import apsw

from recollect.events.backends.log import EventLog
from recollect.events.errors import ForeignFile, LogRewound
from recollect.events.storage.database import connect, storage_errors
from recollect.projections.projector.projector import BATCH_EVENTS, Parked, Projector
from recollect.projections.read_models.disk_limit import DiskLimit
from recollect.projections.read_models.generations import empty_path, next_generation, publish
from recollect.projections.read_models.layout import generation_path, generations, namespace_folder
from recollect.projections.read_models.open_files import OpenFiles
from recollect.projections.read_models.open_read_model import OpenReadModel
from recollect.projections.read_models.opening import RebuildLog
from recollect.projections.schema.schema import add_state, create_file


class LiveFiles:
    """The open live generations of the namespaces. Safe to use from many threads, and from several processes at once.

    Parameters:
        log: the log that they are projected from.
        open_files_max: namespaces whose files stay open; the least recently used one is closed first.
    """

    def __init__(self, data: Path, log: EventLog, disk_limit: DiskLimit, *, open_files_max: int) -> None:
        self._data, self._log = data, log
        self._open_files: OpenFiles[OpenReadModel] = OpenFiles(
            open_files_max, is_current=OpenReadModel.is_live, lease=disk_limit.in_use
        )
        #: By namespace; changed under the lock of the open files.
        self._parked: dict[str, Parked] = {}
        self._rebuild_log = RebuildLog()

    @property
    def count(self) -> int:
        """Return the number of namespaces whose read model is open."""
        return self._open_files.count

    def parked(self) -> list[Parked]:
        """Return the parked namespaces that this process has opened since its start, by name."""
        with self._open_files.lock:
            return [self._parked[namespace] for namespace in sorted(self._parked)]

    def note_parked(self, namespace: str, parked: Parked | None) -> None:
        """Remember at which event a namespace is parked; None: at none."""
        if parked is not None or self._parked:
            with self._open_files.lock:
                if parked is not None:
                    self._parked[namespace] = parked
                else:
                    self._parked.pop(namespace, None)

    def drop(self, namespace: str) -> None:
        """Close the file of a namespace; its last reader closes one in use."""
        self._open_files.drop(namespace)

    def close(self) -> None:
        """Close every file; its last reader closes one in use."""
        self._open_files.drop_all()

    @contextmanager
    def using(self, namespace: str) -> Generator[OpenReadModel]:
        """Yield the open read model of `namespace`; when its file is damaged, replace it for the next use."""
        with self._open_files.using(namespace, partial(self._open, namespace)) as read_model:
            try:
                yield read_model
            except apsw.SQLError as error:
                with self._open_files.lock:
                    if read_model.has_own_schema():
                        raise
                    self._replace(namespace, "its schema is damaged")
                raise ForeignFile(
                    f"{read_model.path} is damaged ({error}); it is built again from the log, so ask again, or run "
                    "`recollect replay`"
                ) from error
            except (apsw.CorruptError, apsw.NotADBError, ForeignFile) as error:
                # If the log is the damaged file, keep the read model: it may be the only copy of the content.
                if not isinstance(error, ForeignFile) or error.path == read_model.path:
                    with self._open_files.lock:
                        self._replace(namespace, "it is damaged")
                raise

    def begin_generation(self, namespace: str) -> None:
        """Publish an empty generation, into which the next catch-up projects the log."""
        folder = namespace_folder(self._data, namespace)
        generation, path = next_generation(folder), empty_path(folder)
        with storage_errors(path):
            create_file(path, indexed=True)
            connection = connect(path)
            add_state(connection, log_id=self._log.log_id, namespace=namespace)
            connection.close()
            # When another process publishes first, its generation is empty too and serves as well.
            publish(path, folder, generation, self._log.log_id)

    def publish(self, namespace: str, path: Path, version: int) -> None:
        """Publish the file `path`, built up to `version`, as the live generation, with the events appended since."""
        folder = namespace_folder(self._data, namespace)
        generation = next_generation(folder)
        with storage_errors(path):
            if self._log.head(namespace).version > version:
                with closing(connect(path)) as connection:
                    projector = Projector(self._log, namespace, connection, path)
                    while projector.advance(BATCH_EVENTS):
                        pass
            with self._open_files.lock:
                # When another process publishes first, its replay has the same content.
                publish(path, folder, generation, self._log.log_id)
                self._open_files.drop(namespace)
                self._parked.pop(namespace, None)

    def _open(self, namespace: str) -> OpenReadModel:
        """Open the live generation; begin an empty one when none exists, or when it is damaged or of another log."""
        folder = namespace_folder(self._data, namespace)
        if not generations(folder):
            self.begin_generation(namespace)
        try:
            return OpenReadModel(self._log, namespace, folder)
        except LogRewound as problem:
            self._parked[namespace] = Parked(namespace=namespace, version=problem.version, error=str(problem))
            raise
        except ForeignFile as problem:
            if problem.path not in (None, generation_path(folder, generations(folder)[-1])):
                raise
            self._replace(namespace, problem)
            return OpenReadModel(self._log, namespace, folder)

    def _replace(self, namespace: str, problem: str | ForeignFile) -> None:
        """Publish an empty generation over the live one."""
        self._rebuild_log.warn(namespace, problem)
        self._open_files.drop(namespace)
        self.begin_generation(namespace)
