"""Semantic search: the query's vector against those of turns, windows and retellings; its pieces against theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.api.retrieval.understanding.query import Query
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.embeddings.embedder import Embedder, TokenEmbedding
from recollect.projections.embeddings.passages import PARTS, Part
from recollect.projections.embeddings.token_codes import TokenCodes, Vector, late_interaction, reduced
from recollect.projections.embeddings.vector_index import VectorIndex
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.search_index.episode_arrays import EpisodeArrays, Ints
from recollect.projections.text.words import STOP_WORDS, WORD

#: Queries whose vectors are kept: users and bots ask again. About 10 KB each.
_CACHED_MAX = 1_024


class QueryVectors:
    """The embeddings of queries, the latest ones remembered, each with the tag of its model."""

    def __init__(self) -> None:
        self._cached: BoundedCache[tuple[str, str], TokenEmbedding] = BoundedCache(_CACHED_MAX)

    def of(self, text: str, embedder: Embedder) -> TokenEmbedding:
        """Return the embedding of `text` in the space of `embedder`."""
        key = (embedder.fingerprint, text)
        embedding = self._cached.get(key)
        if embedding is None:
            embedding = embedder.embed_query(text)
            self._cached.put(key, embedding)
        return embedding


@dataclass(frozen=True, slots=True)
class SemanticScores:
    """How near each episode of a roster is to a query, as cosines; not a number where it has no vector."""

    embedding: TokenEmbedding
    parts: Mapping[Part, Vector]


def semantic_scores(
    index: VectorIndex, embedding: TokenEmbedding, episodes: EpisodeArrays, until: int
) -> SemanticScores:
    """Return how near each episode of `roster` is.

    Parameters:
        until: the version of the read model that is searched; the index may hold what came later.
    """
    return SemanticScores(embedding, {part: _aligned(index, embedding.vector, part, episodes, until) for part in PARTS})


def _aligned(index: VectorIndex, vector: Vector, part: Part, episodes: EpisodeArrays, until: int) -> Vector:
    versions, values = index.cosines(vector, part, until=until)
    # Nearly always the same episodes, which is seen much faster than they are put in order.
    if len(versions) == len(episodes) and np.array_equal(versions, episodes.versions):
        return values
    found = np.full(len(episodes), np.nan, np.float32)
    if len(versions):
        places = np.minimum(np.searchsorted(versions, episodes.versions), len(versions) - 1)
        there = versions[places] == episodes.versions
        found[there] = values[places[there]]
    return found


def late_interaction_scores(
    vectors: Vectors,
    namespace: str,
    snapshot: Snapshot,
    query: Query,
    embedding: TokenEmbedding,
    rarity: Mapping[str, float],
    versions: Ints,
) -> Vector:
    """Return how well each of the episodes `versions`, which rise, answers the query piece by piece.

    Not a number where the model cannot tell. A piece of a rare word counts most, of a stop word not at all.
    """
    found = np.full(len(versions), np.nan, np.float32)
    stored = vectors.codes(namespace, snapshot, versions.tolist())
    if not stored or not len(embedding.tokens):
        return found
    basis = vectors.basis()
    codes, starts, places = _joined(stored, versions, basis.shape[1])
    weights = _piece_weights(query.text, embedding, rarity)
    values = late_interaction(reduced(embedding.tokens, basis), weights, codes, starts)
    np.fmax.at(found, places, values)
    return found


def _joined(stored: Mapping[int, Sequence[bytes]], versions: Ints, width: int) -> tuple[TokenCodes, Ints, Ints]:
    """Return all codes one after the other, where each chunk begins, and the place of its episode."""
    chunks = [chunk for of_one in stored.values() for chunk in of_one]
    codes = np.frombuffer(b"".join(chunks), np.int8).reshape(-1, width)
    ends = np.cumsum(np.fromiter(map(len, chunks), np.int64, len(chunks))) // width
    places = np.searchsorted(versions, np.fromiter(stored, np.int64, len(stored)))
    counts = np.fromiter(map(len, stored.values()), np.int64, len(stored))
    return codes, np.concatenate([[0], ends[:-1]]), np.repeat(places, counts)


def _piece_weights(text: str, embedding: TokenEmbedding, rarity: Mapping[str, float]) -> Vector:
    """Return what each piece of the query counts: the rarity of its word; alike when nothing is known of them."""
    count = len(embedding.tokens)
    weights = np.zeros(count, np.float32)
    common = float(np.mean(list(rarity.values()))) if rarity else 1.0
    words = [(match.start(), match.end(), match.group().casefold()) for match in WORD.finditer(text)]
    for place, (start, _) in enumerate(embedding.spans):
        word = next((word for first, end, word in words if first <= start < end), "")
        if word and word not in STOP_WORDS:
            weights[place] = rarity.get(word, common)
    total = float(weights.sum())
    return weights / np.float32(total) if total > 0 else np.full(count, 1 / count, np.float32)
