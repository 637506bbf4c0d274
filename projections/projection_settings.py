"""Projection settings: the limits of read models and vectors, each with its default and the reason of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

#: Namespaces whose files are open at once. One costs 150 KiB and 3 descriptors, more while many threads read it.
OPEN_MODELS_MAX = 64
#: Read models of the past that are kept on disk, over all namespaces.
AS_OF_FILES_MAX = 16
#: Bytes that they may take there.
AS_OF_BYTES_MAX = 1 << 30
#: Bytes of vectors in memory, over all namespaces: 350,000 vectors of 384 numbers.
INDEX_BYTES_MAX = 512 << 20
#: The embedding model when none is named.
DEFAULT_MODEL = "all-MiniLM-L6-v2"

RuntimeChoice = Literal["auto", "openvino", "torch"]


class ReadModelSettings(BaseModel):
    """Limits of read models."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: Namespaces whose files are open at once.
    open_models_max: Annotated[int, Field(ge=1)] = OPEN_MODELS_MAX
    #: Read models of the past (`as_of`) that are kept on disk, over all namespaces.
    as_of_files_max: Annotated[int, Field(ge=1)] = AS_OF_FILES_MAX
    #: Bytes that they may take on disk.
    as_of_bytes_max: Annotated[int, Field(ge=0)] = AS_OF_BYTES_MAX


class EmbeddingSettings(BaseModel):
    """The embedding model and its runtime."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: A name, a path, or `none` for keywords alone. A model that `recollect embed --model` has chosen comes first.
    embedding_model: str = DEFAULT_MODEL
    #: What runs the model: `auto` is OpenVINO where it is installed and supports the model, PyTorch elsewhere.
    embedding_runtime: RuntimeChoice = "auto"
    #: Bytes of vectors in memory, over all namespaces; the least recently used index is dropped first.
    index_bytes_max: Annotated[int, Field(ge=0)] = INDEX_BYTES_MAX
