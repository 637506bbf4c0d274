"""Retrieval by stage at 1,000, 10,000 and 50,000 records, beside query embedding + FTS5 + exact scan alone.

Vectors come from the real model for the queries; those of the records are vectors of the demo
conversation with noise, since embedding 100,000 passages takes minutes and search costs the same for any vector.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import texts
from projection_bench import in_batches
from table import heading

from recollect.api.retrieval.keyword import rarest
from recollect.api.retrieval.query import understand
from recollect.api.retrieval.request import RetrieveRequest
from recollect.api.retrieval.retriever import Retriever
from recollect.events.sqlite import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.embedder import SentenceEmbedder, Vector
from recollect.projections.history import History
from recollect.projections.models import ReadModels
from recollect.projections.vectors import Vectors

RECORDS = (1_000, 10_000, 50_000)
QUERIES = 200


class QuickEmbedder(SentenceEmbedder):
    """The real model for queries; for records, real vectors with noise."""

    def embed(self, texts: Sequence[str]) -> Vector:
        if not hasattr(self, "_pool"):
            self._pool = super().embed([event["payload"]["text"] for event in _messages()])
        rng = np.random.default_rng(len(texts))
        vectors = self._pool[rng.integers(0, len(self._pool), len(texts))]
        vectors = vectors + rng.normal(0, 0.02, vectors.shape).astype(np.float32)
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _messages() -> list[dict[str, Any]]:
    return texts.messages()


def questions() -> list[str]:
    """Return queries of about ten words: the beginnings of messages, each one new to the cache."""
    base = texts.messages()
    return [
        " ".join(f"{base[n % len(base)]['payload']['text']} {base[n * 3 % len(base)]['payload']['text']}".split()[:10])
        + f" {n}"
        for n in range(QUERIES)
    ]


def run(folder: Path) -> None:
    heading("Retrieval, ms (floor: query embedding + one FTS5 search + one exact scan)")
    embedder = QuickEmbedder()
    embedder.start()
    assert embedder.wait_ready(300), embedder.reason
    for records in RECORDS:
        home = folder / str(records)
        log = SqliteLog(home / "log.db")
        for batch in in_batches(texts.varied(records)):
            log.append("a", drafts(batch))
        models = ReadModels(home, log)
        models.catch_up("a")
        vectors = Vectors(home, models, embedder)
        vectors.embed_news("a")
        history = History(home, log, models)
        retriever = Retriever(models, history, lambda vectors=vectors: vectors, budget_ms=5_000)
        _measure(records, retriever, models, vectors, embedder)
        retriever.close()
        history.close()
        vectors.close()
        models.close()
        log.close()


def _measure(records: int, retriever: Retriever, models: ReadModels, vectors: Vectors, embedder: QuickEmbedder) -> None:
    retriever.retrieve("a", RetrieveRequest(query="warm up"))
    whole: list[float] = []
    floor: list[float] = []
    stages: dict[str, list[float]] = {}
    for question in questions():
        floor.append(_floor_ms(question, models, vectors, embedder))
        started = time.perf_counter()
        # Another last word, so that the query's vector is not in the cache.
        result = retriever.retrieve("a", RetrieveRequest(query=f"{question}?"))
        whole.append((time.perf_counter() - started) * 1_000)
        assert result.items
        assert not result.degraded, result.degraded
        for stage, took_ms in result.stages_ms.items():
            stages.setdefault(stage, []).append(took_ms)
    ours, least = statistics.median(whole), statistics.median(floor)
    print(
        f"{records:>7,} records   p50 {ours:6.1f}   p99 {_p99(whole):6.1f}   floor p50 {least:6.1f}   "
        f"p99 {_p99(floor):6.1f}   ratio {ours / least:.2f}",
        flush=True,
    )
    print("                  " + "   ".join(f"{name} {statistics.median(ms):.1f}" for name, ms in stages.items()))


def _floor_ms(question: str, models: ReadModels, vectors: Vectors, embedder: QuickEmbedder) -> float:
    search = "SELECT rowid FROM episodes_fts WHERE episodes_fts MATCH ? ORDER BY rank LIMIT 40"
    with models.reading("a") as snapshot:
        words = rarest(snapshot.connection, understand(question, snapshot.connection).words)
        index = vectors.index("a", snapshot)
        started = time.perf_counter()
        vector = embedder.embed_query(question)
        snapshot.connection.execute(search, (" OR ".join(f'"{word}"' for word in words),)).fetchall()
        index.search(vector, "turn", 40)
        return (time.perf_counter() - started) * 1_000


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]
