"""Projection settings: define the limits of read models and vectors, with their defaults and reasons."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

#: Namespaces whose files are open at once: each costs 150 KiB and 3 descriptors, and more while many threads read it.
OPEN_MODELS_MAX = 64
#: Bytes of the read models of the past on disk.
AS_OF_BYTES_MAX = 1 << 30
#: Bytes of shared vectors in the database: 2 million messages, some 4 KB each.
SHARED_VECTORS_BYTES_MAX = 8 << 30
#: Days of shared vectors in the database: a machine that comes a month later embeds what it reads.
SHARED_VECTORS_DAYS_MAX = 30
#: Name of the default embedding model.
DEFAULT_MODEL = "all-MiniLM-L6-v2"
#: Name of the default model with the adapter of the statement reader, which is for reading sentences alone.
READING_MODEL = f"{DEFAULT_MODEL} reading"
#: The same with the adapters of the date reading, of the comparison of statements, of messages, of requests to forget,
#: and of the statements of language models.
DATES_MODEL = f"{DEFAULT_MODEL} dates"
CHANGES_MODEL = f"{DEFAULT_MODEL} changes"
MESSAGES_MODEL = f"{DEFAULT_MODEL} messages"
FORGETTING_MODEL = f"{DEFAULT_MODEL} forgetting"
CLAIMS_MODEL = f"{DEFAULT_MODEL} claims"
#: Name of the model for other languages than English, whose weights are in the package of the extra `multilingual`.
MULTILINGUAL_MODEL = "multilingual-e5-small"

RuntimeChoice = Literal["auto", "openvino", "torch"]
DeviceChoice = Literal["auto", "cpu", "gpu"]


class ReadModelSettings(BaseModel):
    """Settings of the read models."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: Namespaces whose files are open at once.
    open_models_max: Annotated[int, Field(ge=1)] = OPEN_MODELS_MAX
    #: Bytes of read models and vectors on disk, which are then a cache of the log: those of the namespaces used least
    #: recently are removed, and built again when asked for. 0: no limit. All processes of a folder need the same.
    read_models_bytes_max: Annotated[int, Field(ge=0)] = 0
    #: Bytes of the read models of the past (`as_of`) on disk; the least recently used one of all namespaces is removed
    #: first.
    as_of_bytes_max: Annotated[int, Field(ge=0)] = AS_OF_BYTES_MAX


class EmbeddingSettings(BaseModel):
    """Settings of the embedding model and its runtime."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: A name, a path, or `none` for keyword search only; `multilingual-e5-small` reads 100 languages (the extra
    #: `multilingual`). A model chosen by `recollect embed --model` takes precedence.
    embedding_model: str = DEFAULT_MODEL
    #: Runtime of the model: `auto` is OpenVINO where it is installed and supports the model, PyTorch elsewhere.
    embedding_runtime: RuntimeChoice = "auto"
    #: Device of the model: `auto` is a GPU that PyTorch can use, else the CPU; `gpu` fails where there is none.
    embedding_device: DeviceChoice = "auto"
    #: Bytes of the vectors that machines on a log in PostgreSQL share in its database; the oldest are removed first.
    #: 0: each machine embeds all texts itself.
    shared_vectors_bytes_max: Annotated[int, Field(ge=0)] = SHARED_VECTORS_BYTES_MAX
    #: Days after which a shared vector is removed from the database; machines that have read it keep theirs.
    shared_vectors_days_max: Annotated[int, Field(ge=1, le=3_650)] = SHARED_VECTORS_DAYS_MAX
