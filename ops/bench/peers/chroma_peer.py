"""Chroma, persistent: its HNSW index over cosine, and its own filter."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encoder import Encoder
from peer import Message


class Chroma:
    """By meaning alone."""

    note = ""

    def __init__(self, folder: Path, model: str) -> None:
        chromadb: Any = importlib.import_module("chromadb")
        self._encoder = Encoder(model)
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        self._client: Any = chromadb.PersistentClient(path=str(folder), settings=settings)
        self._collections: dict[str, Any] = {}

    def add(self, collection: str, messages: Sequence[Message]) -> None:
        """Add in batches as large as it takes them."""
        self._collections[collection] = self._client.create_collection(
            collection, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        size = self._client.get_max_batch_size()
        for start in range(0, len(messages), size):
            batch = messages[start : start + size]
            texts = [message.text for message in batch]
            self._collections[collection].add(
                ids=[message.id for message in batch],
                embeddings=self._encoder.many(texts),
                documents=texts,
                metadatas=[{"occurred_us": message.occurred_us} for message in batch],
            )

    def search(self, collection: str, query: str, until_us: int | None, count: int) -> list[str]:
        """Search with its own filter."""
        where = {} if until_us is None else {"where": {"occurred_us": {"$lt": until_us}}}
        vectors = [self._encoder.one(query)]
        found = self._collections[collection].query(
            query_embeddings=vectors, n_results=count, include=["distances"], **where
        )
        return list(found["ids"][0])

    def close(self) -> None:
        """Close the client."""
        self._client.close()
