"""Embedding what is missing, and the change to another embedding model while others go on serving."""

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

#: Looks for what was appended while the look before was embedded. Each is shorter than the one before; a bot that
#: never stops writing must not keep the change from coming, and what is left then is embedded after it.
_LOOKS_MAX = 10


def no_progress(_what: str, _done: int, _total: int | None) -> None:
    """Show nothing."""


def wait_for_model(embedder: Embedder, on_progress: OnPartProgress) -> None:
    """Wait until the model is ready, however long it is fetched.

    Raises:
        InvalidInput: it cannot be loaded, or embeddings are turned off.
    """
    embedder.start()
    on_progress(f"loading {embedder.name}", 0, None)
    while not embedder.wait_ready(1.0):
        if embedder.state != "loading":
            raise InvalidInput(embedder.reason, field="model")


def embed_missing(
    read_models: ReadModels, vectors: Vectors, namespaces: Iterable[str], on_progress: OnPartProgress
) -> int:
    """Fold and embed what `namespaces` have and `vectors` have not; return how many episodes. The model is ready."""
    done = 0
    for namespace in namespaces:
        read_models.catch_up(namespace)
        done += vectors.embed_new(namespace, on_progress=partial(on_progress, namespace))
    return done


def change_model(
    data: Path,
    log: EventLog,
    read_models: ReadModels,
    active_model: ActiveModel,
    name: str,
    on_progress: OnPartProgress,
) -> int:
    """Embed everything with the model `name` beside the one in use, then make it the one in use.

    Returns:
        The episodes embedded.

    Raises:
        InvalidInput: the model cannot be loaded; nothing has changed. FolderInUse: another process changes it.
    """
    if name in ("", NO_MODEL):
        raise InvalidInput(
            "name a model or its path; to turn embeddings off, set RECOLLECT_EMBEDDING_MODEL to none", field="model"
        )
    with model_change_lock(data):
        embedder = active_model.embedder(model_name(name))
        wait_for_model(embedder, on_progress)
        vectors = active_model.open(embedder)
        try:
            done = _embed_all(log, read_models, vectors, on_progress)
            _swap(data, log, active_model, vectors)
        finally:
            if active_model.vectors() is not vectors:
                vectors.close()
    return done


def undo_change(data: Path) -> str:
    """Make the model before the last change the one in use again; return its name.

    Raises:
        InvalidInput: there is none, or its files are not what they were. FolderInUse: another process changes it.
    """
    with model_change_lock(data):
        choice = read_model_record(data)
        if choice is None or choice.previous is None:
            raise InvalidInput("the model was never changed, or there was none before", field="undo")
        previous = choice.previous
        try:
            tag = model_fingerprint(previous.name)
        except (OSError, ValueError) as error:
            raise InvalidInput(f"the files of {previous.name} cannot be read: {error}", field="undo") from error
        if tag != previous.fingerprint:
            raise InvalidInput(
                f"{previous.name} is another model now, whose vectors would not fit; put back its files, or embed "
                "with it as with any new one (--model)",
                field="undo",
            )
        write_model_record(data, ModelRecord(current=previous, previous=choice.current))
    return previous.name


def _embed_all(log: EventLog, read_models: ReadModels, vectors: Vectors, on_progress: OnPartProgress) -> int:
    """Embed every namespace, and again what came meanwhile, until nothing did; return how many episodes."""
    done = 0
    for _ in range(_LOOKS_MAX):
        embedded = embed_missing(read_models, vectors, (head.namespace for head in each_head(log)), on_progress)
        done += embedded
        if not embedded:
            break
    return done


def _swap(data: Path, log: EventLog, active_model: ActiveModel, vectors: Vectors) -> None:
    """Make the model of `vectors` the one in use, and remove the vectors that nobody can go back to."""
    new = RecordedModel(vectors.embedder.name, vectors.embedder.fingerprint)
    recorded, before = read_model_record(data), active_model.model()
    if recorded is not None and recorded.current == new:
        return
    if before is not None and before.fingerprint == new.fingerprint:
        # The same model by another name, or named for the first time: what came before it stays so.
        before = None if recorded is None else recorded.previous
    active_model.activate(vectors, before)
    # Nothing is removed at the first change: until then the environment named the model, and a server may have
    # another environment than this process.
    if recorded is not None:
        _remove_others(log, vectors, {new.fingerprint} if before is None else {new.fingerprint, before.fingerprint})


def _remove_others(log: EventLog, vectors: Vectors, kept: set[str]) -> None:
    try:
        for head in each_head(log):
            vectors.remove_other_models(head.namespace, kept)
    except StorageError:
        _logger.warning("vectors of earlier models are still there; the next change removes them", exc_info=True)
