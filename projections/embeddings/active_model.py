"""Active model: opens the vectors of the recorded embedding model and follows a change of the record while serving."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.events.errors import StorageError
from recollect.projections.embeddings.embedder import NO_MODEL, Embedder, open_embedder
from recollect.projections.embeddings.model_files import model_fingerprint, model_name
from recollect.projections.embeddings.model_record import (
    ModelRecord,
    RecordedModel,
    model_record_path,
    read_model_record,
    write_model_record,
)
from recollect.projections.embeddings.vector_pruning import texts_in_use
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.projection_settings import DeviceChoice, RuntimeChoice
from recollect.projections.read_models.purges import Target
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.search_index.index_cache import IndexCache

if TYPE_CHECKING:
    from recollect.projections.embeddings.shared_vectors import SharedVectors

_logger = logging.getLogger(__name__)

#: Inode and modification time of the record: a rename replaces the file, so each version has another inode.
_Stamp = tuple[int, int] | None
#: Seconds between two looks at the record: a retrieval asks three times, and a look took a tenth of it.
_LOOK_SECONDS = 0.1


class ActiveModel:
    """The vectors in use, and those of the next model while it loads. Safe to use from many threads.

    The data folder's `ModelRecord` names the model; any process may write it. Without a record, `setting` names the
    model. When `setting` is ``none``, no model is used and the record is ignored.

    Parameters:
        read_models: the source of the texts.
        setting: ``none``, the model's name or its path.
        runtime: the runtime of the model.
        device: the device that the runtime uses.
        shared: the vectors of all machines of the log, if they share them. `close` closes it.
        indexes: as of `Vectors`.

    Raises:
        ForeignFile: the record is damaged. StorageError: the record cannot be read.
    """

    def __init__(
        self,
        data: Path,
        read_models: ReadModels,
        setting: str,
        *,
        runtime: RuntimeChoice = "auto",
        device: DeviceChoice = "auto",
        shared: SharedVectors | None = None,
        indexes: IndexCache | None = None,
    ) -> None:
        self._data = data
        self._read_models = read_models
        self._setting = setting
        self._runtime: RuntimeChoice = runtime
        self._device: DeviceChoice = device
        self._shared = shared
        self._indexes = indexes
        self._lock = threading.Lock()
        #: When to look at the record again, in monotonic seconds.
        self._look_at = 0.0
        # The stamp is read before the record, so that a record written in between is noticed as a change.
        self._stamp: _Stamp = None
        self._stamp = self._stamp_now()
        record = None if self._off else read_model_record(data)
        self._vectors = self.open_vectors(self.new_embedder(setting if record is None else record.current.name))
        self._next: Vectors | None = None
        read_models.purges.listen(
            folder=self._prune,
            # The vectors in use change, so the method is looked up for each call.
            process=lambda namespace: self._vectors.drop(namespace),  # noqa: PLW0108
        )
        _logger.info("embedding model %r: %s", self._vectors.embedder.name, self._reason(record))

    def vectors(self) -> Vectors:
        """Return the vectors in use; their model may still be loading. The record is looked at every `_LOOK_SECONDS`.

        When another model was recorded, it loads in the background; the previous model serves until it is ready.
        """
        following = self._next
        if self._has_changed() or (following is not None and following.embedder.state == "ready"):
            with self._lock:
                self._follow_record()
                self._switch_when_ready()
        return self._vectors

    def model(self) -> RecordedModel | None:
        """Return the folder's model with the fingerprint of its present files.

        Returns:
            None when no model is used, or when its files are not on this machine and nothing is recorded.

        Raises:
            ForeignFile: the record is damaged. StorageError: the record cannot be read.
        """
        record = read_model_record(self._data)
        if record is None and self._off:
            return None
        recorded = RecordedModel(model_name(self._setting), "") if record is None else record.current
        try:
            return RecordedModel(recorded.name, model_fingerprint(recorded.name))
        except (OSError, ValueError):
            return recorded if recorded.fingerprint else None

    def new_embedder(self, name: str) -> Embedder:
        """Return an embedder of the model `name`, not loaded yet, on the configured runtime and device."""
        return open_embedder(name, self._runtime, self._device)

    def open_vectors(self, embedder: Embedder) -> Vectors:
        """Return the vectors of another model. The caller closes them, unless it passes them to `activate`."""
        return Vectors(self._data, self._read_models, embedder, shared=self._shared, indexes=self._indexes)

    def activate(self, vectors: Vectors, previous: RecordedModel | None) -> None:
        """Record the model of `vectors` as the current model and use it from now on.

        Parameters:
            vectors: of a model that is ready; `close` closes them.
            previous: the model to record as the previous one.

        Raises:
            StorageError: the record cannot be written; nothing has changed.
        """
        new = RecordedModel(vectors.embedder.name, vectors.embedder.fingerprint)
        # Under the lock: a retrieval that saw the new record first would load the model a second time.
        with self._lock:
            write_model_record(self._data, ModelRecord(new, previous))
            if not self._off:
                self._stamp = self._stamp_now()
                self._use(vectors)

    def status(self) -> dict[str, Any]:
        """Return the state of the model in use and, during a change, of the next one, for the health report."""
        status = _status(self.vectors())
        following = self._next
        return status if following is None else status | {"next": _status(following)}

    def close(self) -> None:
        """Close the vectors in use."""
        with self._lock:
            self._vectors.close()
            if self._shared is not None:
                self._shared.close()

    def _prune(self, namespace: str, version: int) -> list[Target]:
        """Remove the vectors of erased texts: those of this machine, then those that machines share."""
        targets = [self._vectors.prune(namespace, version)]
        if self._shared is not None:
            kept = texts_in_use(self._data, self._read_models, namespace)
            rows = self._shared.prune(namespace, version, kept)
            method = (
                "rows deleted from the database; its tables are in no WAL, replica or base backup; "
                "PostgreSQL overwrites deleted rows after its next vacuum"
            )
            targets.append({"store": "shared vectors and token codes", "method": method, "rows": rows})
        return targets

    @property
    def _off(self) -> bool:
        return self._setting == NO_MODEL

    def _reason(self, record: ModelRecord | None) -> str:
        """Return why this model is used, for the log."""
        if record is None:
            return "named by RECOLLECT_EMBEDDING_MODEL or its default"
        reason = f"recorded in {model_record_path(self._data)}"
        if self._setting != record.current.name:
            reason += f", which takes precedence over {self._setting!r} in RECOLLECT_EMBEDDING_MODEL or its default"
        return reason

    def _has_changed(self) -> bool:
        """Return whether another model was recorded; False until it is time to look again."""
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + _LOOK_SECONDS
        return self._stamp_now() != self._stamp

    def _stamp_now(self) -> _Stamp:
        if self._off:
            return None
        try:
            status = model_record_path(self._data).stat()
        except FileNotFoundError:
            return None
        except OSError:
            # An unreadable record counts as unchanged.
            return self._stamp
        return status.st_ino, status.st_mtime_ns

    def _follow_record(self) -> None:
        """Read a changed record, and begin to load its model unless that model is in use."""
        stamp = self._stamp_now()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            record = read_model_record(self._data)
        except StorageError as error:
            _logger.warning("the embedding model %r stays in use: %s", self._vectors.embedder.name, error)
            return
        wanted = RecordedModel(self._setting, "") if record is None else record.current
        self._next = None
        if wanted.fingerprint != self._vectors.embedder.fingerprint:
            _logger.info("embedding model %r: %s; loading", wanted.name, self._reason(record))
            self._next = self.open_vectors(self.new_embedder(wanted.name))
            self._next.embedder.start()

    def _switch_when_ready(self) -> None:
        if self._next is not None and self._next.embedder.state == "ready":
            self._use(self._next)
            _logger.info("embedding model %r: ready, and in use from now on", self._vectors.embedder.name)

    def _use(self, vectors: Vectors) -> None:
        before, self._vectors, self._next = self._vectors, vectors, None
        before.close()


def _status(vectors: Vectors) -> dict[str, Any]:
    embedder = vectors.embedder
    return {
        "model": embedder.name,
        "state": embedder.state,
        "reason": embedder.reason,
        "runtime": embedder.runtime,
    }
