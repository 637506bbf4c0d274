"""Semantic search: the query as a vector against the vectors of turns and windows."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from recollect.api.retrieval.scope import Scope
from recollect.projections.embedder import Embedder, Vector
from recollect.projections.index import VectorIndex
from recollect.projections.passages import Part

#: Query vectors kept: users and bots ask again. 1.5 KB each.
_CACHED_MAX = 1_024


class QueryVectors:
    """The vectors of queries, the latest ones remembered, each with the tag of its model."""

    def __init__(self) -> None:
        self._cached: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, text: str, embedder: Embedder) -> Vector:
        """Return the vector of `text` in the space of `embedder`."""
        key = (embedder.model_tag, text)
        with self._lock:
            vector = self._cached.get(key)
            if vector is not None:
                self._cached.move_to_end(key)
                return vector
        vector = embedder.embed_query(text)
        with self._lock:
            self._cached[key] = vector
            if len(self._cached) > _CACHED_MAX:
                self._cached.popitem(last=False)
        return vector


def semantic_matches(
    index: VectorIndex, query: Vector, until: int, allowed: NDArray[np.int64] | None, depth: int
) -> dict[str, list[int]]:
    """Return the lists ``semantic`` and ``semantic_window``: up to `depth` episodes each, nearest first.

    Parameters:
        until: the version of the read model that is searched; the index may hold what came later.
    """
    parts: dict[str, Part] = {"semantic": "turn", "semantic_window": "window"}
    return {
        name: [version for version, _ in index.search(query, part, depth, until=until, among=allowed)]
        for name, part in parts.items()
    }


def allowed_versions(connection: apsw.Connection, scope: Scope) -> NDArray[np.int64] | None:
    """Return the episodes in `scope` that are there and active, in rising order; None when all are."""
    removal: Any = connection.execute("SELECT removal FROM model").fetchall()[0][0]
    if not scope.condition and not removal:
        return None
    rows = connection.execute(
        f"SELECT version FROM episodes WHERE status = 'active'{scope.condition} ORDER BY version", scope.values
    )
    return np.fromiter((row[0] for row in rows), np.int64)
