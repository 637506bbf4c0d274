"""A whole memory in a folder, with whatever embedder, for tests of retrieval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from support.embedders import HashingEmbedder
from support.events import Event

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.retrieval.retriever import Retriever
from recollect.api.retrieval.understanding.query import utc_now
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.embeddings.embedder import Embedder, NoEmbedder
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels


class Memory:
    """A log, its read models, and retrievals with any number of embedders, in one folder."""

    def __init__(
        self, folder: Path, *, budget_ms: float = 30_000, clock: Callable[[], datetime] = utc_now, **models: Any
    ) -> None:
        self.folder = folder
        self.budget_ms = budget_ms
        self._clock = clock
        self.log = SqliteLog(folder / "log.db")
        self.models = ReadModels(folder, self.log, **models)
        self.history = History(folder, self.log, self.models)
        self._parts: list[Retriever | Vectors] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for part in [*self._parts, self.history, self.models, self.log]:
            part.close()

    def add(self, events: Sequence[Event], namespace: str = "a") -> None:
        """Append and fold."""
        self.log.append(namespace, drafts(events))
        self.models.catch_up(namespace)

    def vectors(self, embedder: Embedder) -> Vectors:
        """Return the vectors of an embedder."""
        vectors = Vectors(self.folder, self.models, embedder)
        self._parts.append(vectors)
        return vectors

    def embed(self, *namespaces: str) -> None:
        """Embed everything with the embedder that hashes."""
        vectors = self.vectors(HashingEmbedder())
        for namespace in namespaces or ("a",):
            vectors.embed_new(namespace)

    def retriever(self, embedder: Embedder | Vectors | None = None) -> Retriever:
        """Return a new retriever; without an embedder by keywords alone."""
        vectors = embedder if isinstance(embedder, Vectors) else self.vectors(embedder or NoEmbedder())
        retriever = Retriever(
            self.models,
            self.history,
            lambda: vectors,
            budget_ms=self.budget_ms,
            clock=self._clock,
            fence_key=b"the same for all retrievers",
        )
        self._parts.append(retriever)
        return retriever

    def ask(
        self, query: str, embedder: Embedder | Vectors | None = None, namespace: str = "a", **options: Any
    ) -> RetrieveResult:
        """Ask a new retriever."""
        return self.retriever(embedder).retrieve(namespace, RetrieveRequest(query=query, **options))


def comparable(result: RetrieveResult) -> dict[str, Any]:
    """Return everything but the time it took, the trace's id, and what it says about missing parts."""
    answer = result.as_json()
    return {name: answer[name] for name in answer if name not in ("latency_ms", "trace_id", "degraded")}
