"""Model record: stores the embedding model of a data folder, and the model before it, in one small file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

from recollect.events.errors import ForeignFile
from recollect.events.storage.atomic_file import write_atomically
from recollect.events.storage.database import storage_errors


class RecordedModel(Struct, frozen=True):
    """An embedding model as the record names it."""

    #: A name on the model hub, or the path of a folder.
    name: str
    #: Fingerprint of the model's files (`model_files.model_fingerprint`); the file's field is ``tag``.
    fingerprint: str


class ModelRecord(Struct, frozen=True):
    """The embedding models of a data folder."""

    current: RecordedModel
    #: The model that `recollect embed --undo` returns to; None when the model was changed once only.
    previous: RecordedModel | None


def model_record_path(data: Path) -> Path:
    """Return the path of the record. A folder whose model was never changed has no such file."""
    return data / "embedding.json"


def read_model_record(data: Path) -> ModelRecord | None:
    """Return the record of the data folder; None when it has no record.

    Raises:
        ForeignFile: the file is damaged. StorageError: the file cannot be read.
    """
    path = model_record_path(data)
    try:
        with storage_errors(path):
            content = path.read_bytes() if path.exists() else None
        return None if content is None else _record_from_json(orjson.loads(content))
    except (ValueError, TypeError, KeyError) as error:
        raise ForeignFile(
            f"{path} is damaged ({type(error).__name__}: {error}); restore it from a backup, or delete it: then "
            "RECOLLECT_EMBEDDING_MODEL names the model, as in a folder whose model was never changed"
        ) from error


def write_model_record(data: Path, record: ModelRecord) -> None:
    """Write `record` atomically: a crash leaves the old file or the new one.

    Raises:
        StorageError: the disk is full or cannot be written; the old file is unchanged.
    """
    path = model_record_path(data)
    previous = None if record.previous is None else _model_to_json(record.previous)
    content = {"current": _model_to_json(record.current), "previous": previous}
    with storage_errors(path):
        write_atomically(path, orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _record_from_json(content: dict[str, Any]) -> ModelRecord:
    previous = content["previous"]
    return ModelRecord(_model_from_json(content["current"]), None if previous is None else _model_from_json(previous))


def _model_from_json(content: dict[str, Any]) -> RecordedModel:
    name, fingerprint = content["name"], content["tag"]
    if not (isinstance(name, str) and isinstance(fingerprint, str) and name and fingerprint):
        raise TypeError("a model has a name and a tag")
    return RecordedModel(name, fingerprint)


def _model_to_json(model: RecordedModel) -> dict[str, str]:
    # The field is `tag` in released files.
    return {"name": model.name, "tag": model.fingerprint}
