"""Which embedding model a data folder uses and which it used before: one small file, written as a whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from recollect.events.errors import ForeignFile
from recollect.events.storage.atomic_file import write_atomically
from recollect.events.storage.database import storage_errors


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """An embedding model: what it is loaded by, and the tag of its vectors (`weights.fingerprint`)."""

    name: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """The model of a data folder, and the one that `recollect embed --undo` goes back to."""

    current: RecordedModel
    previous: RecordedModel | None


def model_record_path(data: Path) -> Path:
    """Return the file that holds the choice; a folder whose model was never changed has none."""
    return data / "embedding.json"


def read_model_record(data: Path) -> ModelRecord | None:
    """Return what is recorded in the data folder; None when nothing is.

    Raises:
        ForeignFile: the file is damaged. StorageError: it cannot be read.
    """
    path = model_record_path(data)
    try:
        with storage_errors(path):
            content = path.read_bytes() if path.exists() else None
        return None if content is None else _choice(orjson.loads(content))
    except (ValueError, TypeError, KeyError) as error:
        raise ForeignFile(
            f"{path} is damaged ({type(error).__name__}: {error}); restore it from a backup, or delete it: then "
            "RECOLLECT_EMBEDDING_MODEL names the model, as in a folder whose model was never changed"
        ) from error


def write_model_record(data: Path, choice: ModelRecord) -> None:
    """Record `choice`; after a crash there is the old file or the new one, and nothing in between.

    Raises:
        StorageError: the disk is full or cannot be written; the old file is still there.
    """
    path = model_record_path(data)
    content = orjson.dumps(asdict(choice), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    with storage_errors(path):
        write_atomically(path, content)


def _choice(content: dict[str, Any]) -> ModelRecord:
    previous = content["previous"]
    return ModelRecord(_model(content["current"]), None if previous is None else _model(previous))


def _model(content: dict[str, Any]) -> RecordedModel:
    name, tag = content["name"], content["tag"]
    if not (isinstance(name, str) and isinstance(tag, str) and name and tag):
        raise TypeError("a model has a name and a tag")
    return RecordedModel(name, tag)
