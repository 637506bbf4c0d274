"""The vectors in use. What a data folder records names their model, and a change of it is followed while serving."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

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
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.projection_settings import INDEX_BYTES_MAX, RuntimeChoice
from recollect.projections.read_models.read_models import ReadModels

_logger = logging.getLogger(__name__)

#: Tells one content of a file from the next: what a rename puts there has another number.
_Stamp = tuple[int, int] | None


class ActiveModel:
    """The vector space that a data folder uses, and the next one while its model loads. Safe to use from many threads.

    The folder's record names the model (`choice.Choice`), whoever wrote it; `setting` does where nothing is recorded.
    When `setting` is ``none`` there is no model, whatever is recorded.

    Parameters:
        models: the read models that the texts come from.
        setting: ``none``, a model's name or its path.
        runtime: what shall run it.
        index_bytes_max: memory for indexes.

    Raises:
        ForeignFile: the record is damaged. StorageError: it cannot be read.
    """

    def __init__(
        self,
        data: Path,
        read_models: ReadModels,
        setting: str,
        *,
        runtime: RuntimeChoice = "auto",
        index_bytes_max: int = INDEX_BYTES_MAX,
    ) -> None:
        self._data = data
        self._models = read_models
        self._setting = setting
        self._runtime: RuntimeChoice = runtime
        self._index_bytes_max = index_bytes_max
        self._lock = threading.Lock()
        # Looked at before the record is read: what is written in between is noticed as a change.
        self._stamp: _Stamp = None
        self._stamp = self._stamp_now()
        choice = None if self._off else read_model_record(data)
        self._vectors = self.open(self.embedder(setting if choice is None else choice.current.name))
        self._next: Vectors | None = None
        _logger.info("embedding model %r: %s", self._vectors.embedder.name, self._reason(choice))

    def vectors(self) -> Vectors:
        """Return the vectors in use, of a model that may still be loading. Costs one look at a file's date.

        When another model was recorded, it is loaded in the background, and the one before serves until it is ready.
        """
        following = self._next
        if self._stamp_now() != self._stamp or (following is not None and following.embedder.state == "ready"):
            with self._lock:
                self._follow_record()
                self._switch_when_ready()
        return self._vectors

    def model(self) -> RecordedModel | None:
        """Return the model that the folder uses, with the tag of its files as they are; None when there is none.

        Raises:
            ForeignFile: the record is damaged. StorageError: it cannot be read.
        """
        choice = read_model_record(self._data)
        if choice is None and self._off:
            return None
        recorded = RecordedModel(model_name(self._setting), "") if choice is None else choice.current
        try:
            return RecordedModel(recorded.name, model_fingerprint(recorded.name))
        except (OSError, ValueError):
            return recorded if recorded.fingerprint else None

    def embedder(self, name: str) -> Embedder:
        """Return the model `name`, not loaded yet, for the runtime that is set."""
        return open_embedder(name, self._runtime)

    def open(self, embedder: Embedder) -> Vectors:
        """Return the vectors of another model, beside those in use. Close them, unless `take_up` did take them."""
        return Vectors(self._data, self._models, embedder, index_bytes_max=self._index_bytes_max)

    def activate(self, vectors: Vectors, previous: RecordedModel | None) -> None:
        """Record the model of `vectors`, which is ready, and `previous` as the one before it; use it from now on.

        Raises:
            StorageError: it cannot be recorded; nothing has changed.
        """
        new = RecordedModel(vectors.embedder.name, vectors.embedder.fingerprint)
        # Under the lock, so that a retrieval does not see the record first and loads the model once more.
        with self._lock:
            write_model_record(self._data, ModelRecord(new, previous))
            if not self._off:
                self._stamp = self._stamp_now()
                self._use(vectors)

    def status(self) -> dict[str, Any]:
        """Return what health shows: the model in use and, while there is a change, the next one."""
        status = _status(self.vectors())
        following = self._next
        return status if following is None else status | {"next": _status(following)}

    def close(self) -> None:
        """Close every file."""
        with self._lock:
            self._vectors.close()

    @property
    def _off(self) -> bool:
        return self._setting == NO_MODEL

    def _reason(self, choice: ModelRecord | None) -> str:
        if choice is None:
            return "named by RECOLLECT_EMBEDDING_MODEL or its default"
        reason = f"recorded in {model_record_path(self._data)}"
        if self._setting != choice.current.name:
            reason += f", which goes before {self._setting!r} in RECOLLECT_EMBEDDING_MODEL or its default"
        return reason

    def _stamp_now(self) -> _Stamp:
        if self._off:
            return None
        try:
            found = model_record_path(self._data).stat()
        except FileNotFoundError:
            return None
        except OSError:
            # It cannot be looked at for now, which is no change.
            return self._stamp
        return found.st_ino, found.st_mtime_ns

    def _follow_record(self) -> None:
        """When another model is recorded than before, begin to load it, unless it is the one in use."""
        stamp = self._stamp_now()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            choice = read_model_record(self._data)
        except StorageError as error:
            _logger.warning("going on with the model %r: %s", self._vectors.embedder.name, error)
            return
        wanted = RecordedModel(self._setting, "") if choice is None else choice.current
        self._next = None
        if wanted.fingerprint != self._vectors.embedder.fingerprint:
            _logger.info("embedding model %r: %s; loading", wanted.name, self._reason(choice))
            self._next = self.open(self.embedder(wanted.name))
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
