"""Model change: embeds missing episodes, and changes the embedding model while other processes keep serving."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from recollect.api.folder_locks import model_change_lock
from recollect.events.backends.log import EventLog, each_head
from recollect.events.errors import InvalidInput, StorageError
from recollect.events.progress import OnPartProgress
from recollect.projections.embeddings.active_model import ActiveModel
from recollect.projections.embeddings.embedder import NO_MODEL, Embedder
from recollect.projections.embeddings.model_files import model_fingerprint, model_name
from recollect.projections.embeddings.model_record import (
    ModelRecord,
    RecordedModel,
    read_model_record,
    write_model_record,
)
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models.read_models import ReadModels

_logger = logging.getLogger(__name__)

#: Passes over all namespaces, each of which embeds the events appended during the pass before and is shorter. The limit
#: lets the change complete while a bot keeps appending; the events that are left are embedded after it.
_PASSES_MAX = 10


def wait_for_model(embedder: Embedder, on_progress: OnPartProgress) -> None:
    """Wait until the model is loaded, without a time limit, because it may have to be downloaded.

    Raises:
        InvalidInput: the model cannot be loaded, or embeddings are turned off.
    """
    embedder.start()
    on_progress(f"loading {embedder.name}", 0, None)
    while not embedder.wait_ready(1.0):
        if embedder.state != "loading":
            raise InvalidInput(embedder.reason, field="model")


def embed_missing(
    read_models: ReadModels, vectors: Vectors, namespaces: Iterable[str], on_progress: OnPartProgress
) -> int:
    """Catch up with the log and embed the episodes of `namespaces` without vectors; return the number of episodes.

    Parameters:
        vectors: vectors whose model is loaded.
    """
    episodes = 0
    for namespace in namespaces:
        read_models.catch_up(namespace)
        episodes += vectors.embed_new(namespace, on_progress=partial(on_progress, namespace))
    return episodes


def change_model(
    data: Path,
    log: EventLog,
    read_models: ReadModels,
    active_model: ActiveModel,
    name: str,
    on_progress: OnPartProgress,
) -> int:
    """Embed every namespace with the model `name` while the old model serves, then make it the model in use.

    Returns:
        The number of episodes embedded.

    Raises:
        InvalidInput: the model cannot be loaded; nothing has changed. FolderInUse: another process changes it.
    """
    if name in ("", NO_MODEL):
        raise InvalidInput(
            "name a model or its path; to turn embeddings off, set RECOLLECT_EMBEDDING_MODEL to none", field="model"
        )
    with model_change_lock(data):
        embedder = active_model.new_embedder(model_name(name))
        wait_for_model(embedder, on_progress)
        vectors = active_model.open_vectors(embedder)
        try:
            episodes = _embed_all(log, read_models, vectors, on_progress)
            _swap(data, log, active_model, vectors)
        finally:
            if active_model.vectors() is not vectors:
                vectors.close()
    return episodes


def undo_change(data: Path) -> str:
    """Make the model before the last change the model in use again; return its name.

    Raises:
        InvalidInput: the model was never changed, or its files have changed. FolderInUse: another process changes the
            model.
    """
    with model_change_lock(data):
        record = read_model_record(data)
        if record is None or record.previous is None:
            raise InvalidInput("no earlier model is recorded: the model was never changed", field="undo")
        previous = record.previous
        try:
            fingerprint = model_fingerprint(previous.name)
        except (OSError, ValueError) as error:
            raise InvalidInput(f"the files of {previous.name} cannot be read: {error}", field="undo") from error
        if fingerprint != previous.fingerprint:
            raise InvalidInput(
                f"the files of {previous.name} have changed, so its vectors do not fit any more; restore the files, or "
                "embed with it as a new model (--model)",
                field="undo",
            )
        write_model_record(data, ModelRecord(current=previous, previous=record.current))
    return previous.name


def _embed_all(log: EventLog, read_models: ReadModels, vectors: Vectors, on_progress: OnPartProgress) -> int:
    """Embed every namespace, in passes until nothing was appended during one; return the number of episodes."""
    episodes = 0
    for _ in range(_PASSES_MAX):
        embedded = embed_missing(read_models, vectors, (head.namespace for head in each_head(log)), on_progress)
        episodes += embedded
        if not embedded:
            break
    return episodes


def _swap(data: Path, log: EventLog, active_model: ActiveModel, vectors: Vectors) -> None:
    """Make the model of `vectors` the model in use, and remove vectors of models older than the previous one."""
    new = RecordedModel(vectors.embedder.name, vectors.embedder.fingerprint)
    recorded, before = read_model_record(data), active_model.model()
    if recorded is not None and recorded.current == new:
        return
    if before is not None and before.fingerprint == new.fingerprint:
        # The same model under another name, or recorded for the first time: the previous model stays the same.
        before = None if recorded is None else recorded.previous
    active_model.activate(vectors, before)
    # The first change removes nothing: before it the environment named the model, and a running server may have
    # another environment than this process.
    if recorded is not None:
        _remove_others(log, vectors, {new.fingerprint} if before is None else {new.fingerprint, before.fingerprint})


def _remove_others(log: EventLog, vectors: Vectors, kept: set[str]) -> None:
    """Remove the vectors of all models but those with the fingerprints `kept`."""
    try:
        for head in each_head(log):
            vectors.remove_other_models(head.namespace, kept)
    except StorageError:
        _logger.warning("vectors of earlier models could not be removed; the next change removes them", exc_info=True)
