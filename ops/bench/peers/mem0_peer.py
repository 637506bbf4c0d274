"""mem0 without its language model (`infer=False`): the messages as they are, in Qdrant on disk."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from encoder import model_settings
from peer import Message

_DIMENSIONS_KEY = "embedding_model_dims"


class Mem0:
    """Its own embedder with the same model, its own scoring and its own filter."""

    def __init__(self, folder: Path, model: str) -> None:
        mem0: Any = importlib.import_module("mem0")
        settings = {"model": model, "model_kwargs": {"model_kwargs": model_settings()}}
        dimensions = self._dimensions(settings)
        store = {
            "path": str(folder / "qdrant"),
            "on_disk": True,
            "collection_name": "none",
            _DIMENSIONS_KEY: dimensions,
        }
        self._memory: Any = mem0.Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "embedder": {"provider": "huggingface", "config": settings | {"embedding_dims": dimensions}},
                # It must have one; with infer=False nothing is ever sent to it.
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._dimensions_stored = dimensions
        self._stores: dict[str, Any] = {}

    @property
    def note(self) -> str:
        """Say whether it searches by keywords."""
        if self._memory.vector_store.keyword_search("word") is None:
            return "by meaning alone: its BM25 needs fastembed and a file from the model hub"
        return ""

    def add(self, collection: str, messages: Sequence[Message]) -> None:
        """Add one by one: metadata are those of a call, and without inference it embeds one by one anyway."""
        # A store over the same client: a Memory of its own would load the model again.
        shared = self._memory.vector_store
        self._stores[collection] = type(shared)(
            client=shared.client,
            collection_name=collection,
            on_disk=True,
            **{_DIMENSIONS_KEY: self._dimensions_stored},
        )
        self._memory.vector_store = self._stores[collection]
        for message in messages:
            self._memory.add(
                [{"role": "user", "content": message.text}],
                user_id=collection,
                infer=False,
                metadata={"event": message.id, "occurred_us": message.occurred_us},
            )

    def search(self, collection: str, query: str, until_us: int | None, count: int) -> list[str]:
        """Search without its threshold of similarity, which would only leave things out."""
        self._memory.vector_store = self._stores[collection]
        filters: dict[str, Any] = {"user_id": collection}
        if until_us is not None:
            filters["occurred_us"] = {"lt": until_us}
        found = self._memory.search(query, filters=filters, top_k=count, threshold=0.0)
        return [item["metadata"]["event"] for item in found["results"]]

    def close(self) -> None:
        """Close the history and Qdrant."""
        self._memory.close()
        self._memory.vector_store.client.close()

    @staticmethod
    def _dimensions(settings: dict[str, Any]) -> int:
        transformers: Any = importlib.import_module("transformers")
        return int(transformers.AutoConfig.from_pretrained(settings["model"]).hidden_size)
