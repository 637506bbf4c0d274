"""LanceDB's hybrid search: vectors and full text, fused by its RRF reranker, with its own filter."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encoder import Encoder
from peer import Message


class LanceDb:
    """By meaning (exact: without a vector index, as for so few rows it advises) and by words."""

    note = ""

    def __init__(self, folder: Path, model: str) -> None:
        library: Any = importlib.import_module("lancedb")
        self._fts: Any = importlib.import_module("lancedb.index").FTS
        self._reranker: Any = importlib.import_module("lancedb.rerankers").RRFReranker()
        self._encoder = Encoder(model)
        self._database: Any = library.connect(str(folder))
        self._tables: dict[str, Any] = {}

    def add(self, collection: str, messages: Sequence[Message]) -> None:
        """Add everything at once, then index the words."""
        vectors = self._encoder.many([message.text for message in messages])
        rows = [
            {"id": message.id, "text": message.text, "occurred_us": message.occurred_us, "vector": vector}
            for message, vector in zip(messages, vectors, strict=True)
        ]
        table = self._database.create_table(collection, rows)
        table.create_index("text", config=self._fts())
        self._tables[collection] = table

    def search(self, collection: str, query: str, until_us: int | None, count: int) -> list[str]:
        """Search with its own filter, which goes before both searches."""
        search = self._tables[collection].search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
        search = search.vector(self._encoder.one(query)).text(query).distance_type("cosine").rerank(self._reranker)
        if until_us is not None:
            search = search.where(f"occurred_us < {until_us}", prefilter=True)
        return list(search.select(["id"]).limit(count).to_arrow()["id"].to_pylist())

    def close(self) -> None:
        """Do nothing: it writes at once."""
