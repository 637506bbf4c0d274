"""Settings: what can be set by ``RECOLLECT_*`` in the environment, each with its default."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from recollect.api.retrieval.answer.trace_store import TRACES_BYTES_MAX
from recollect.api.retrieval.ranking.relevance_gate import ANSWER_MIN, ITEM_MIN, KEYWORD_ANSWER_MIN, PASSIVE_ITEM_MIN
from recollect.api.retrieval.retriever import BUDGET_MS
from recollect.events.errors import InvalidInput, first_problem
from recollect.jobs.policy import Policy
from recollect.projections.embeddings.model_files import DEFAULT_MODEL
from recollect.projections.embeddings.model_runtime import RuntimeChoice
from recollect.projections.embeddings.vectors import INDEX_BYTES_MAX
from recollect.projections.read_models.history import AS_OF_BYTES_MAX, AS_OF_FILES_MAX
from recollect.projections.read_models.read_models import OPEN_MODELS_MAX


class Settings(Policy, BaseSettings):
    """The settings of one process. ``RECOLLECT_PORT=9000`` sets `port`."""

    model_config = SettingsConfigDict(env_prefix="RECOLLECT_", frozen=True, extra="forbid")

    #: The data folder.
    data: Path = Path("recollect-data")
    #: Where the log is, ``sqlite:///…``; log.db in the data folder when None.
    log: str | None = None
    #: What carries messages to workers: ``memory://`` or ``redis://host:port/0``.
    broker: str = "memory://"
    #: A name, a path, or ``none``. Once its model was changed, a folder's own record names the model instead.
    embedding_model: str = DEFAULT_MODEL
    #: What runs it. ``auto`` is OpenVINO where that is installed and takes the model, PyTorch elsewhere.
    embedding_runtime: RuntimeChoice = "auto"
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8787
    #: How long one retrieval may take.
    retrieval_budget_ms: Annotated[float, Field(gt=0)] = BUDGET_MS
    #: A cross-encoder that looks at the first items again, by name or path; none when empty.
    reranker: str = ""
    #: From which probability on memory answers: with vectors, and by keywords alone.
    gate_answer_min: Annotated[float, Field(ge=0, le=1)] = ANSWER_MIN
    gate_keyword_answer_min: Annotated[float, Field(ge=0, le=1)] = KEYWORD_ANSWER_MIN
    #: From which probability on an item belongs to the answer: when it was asked for, and in a passive retrieval.
    gate_item_min: Annotated[float, Field(ge=0, le=1)] = ITEM_MIN
    gate_passive_item_min: Annotated[float, Field(ge=0, le=1)] = PASSIVE_ITEM_MIN
    #: Namespaces whose files are open at once.
    open_models_max: Annotated[int, Field(ge=1)] = OPEN_MODELS_MAX
    #: Memory for vectors.
    index_bytes_max: Annotated[int, Field(ge=0)] = INDEX_BYTES_MAX
    #: Read models of the past that are kept on disk, over all namespaces.
    as_of_files_max: Annotated[int, Field(ge=1)] = AS_OF_FILES_MAX
    #: What they may take there.
    as_of_bytes_max: Annotated[int, Field(ge=0)] = AS_OF_BYTES_MAX

    #: Disk for traces of retrievals; 0 keeps none.
    traces_bytes_max: Annotated[int, Field(ge=0)] = TRACES_BYTES_MAX

    @property
    def log_url(self) -> str:
        """Return the log's URL."""
        return self.log or f"sqlite:///{self.data / 'log.db'}"


def load_settings(*, data: Path | None = None) -> Settings:
    """Return the settings of the environment, `data` over them when it is given.

    Raises:
        InvalidInput: a setting has a value that it cannot have.
    """
    try:
        return Settings() if data is None else Settings(data=data)
    except ValidationError as error:
        problem = first_problem(error)
        raise InvalidInput(problem.reason, field=f"RECOLLECT_{problem.field.replace('.', '_').upper()}") from None
