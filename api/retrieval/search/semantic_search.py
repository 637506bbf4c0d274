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
_QUERIES_MAX = 1_024


class QueryEmbeddings:
    """The embeddings of queries, the latest ones remembered, each with the tag of its model."""

    def __init__(self) -> None:
        self._embeddings: BoundedCache[tuple[str, str], TokenEmbedding] = BoundedCache(_QUERIES_MAX)

    def get(self, text: str, embedder: Embedder) -> TokenEmbedding:
        """Return the embedding of `text` in the space of `embedder`."""
        key = (embedder.fingerprint, text)
        embedding = self._embeddings.get(key)
        if embedding is None:
            embedding = embedder.embed_query(text)
            self._embeddings.put(key, embedding)
        return embedding


@dataclass(frozen=True, slots=True)
class SemanticScores:
    """How near each episode of a roster is to a query, as cosines; not a number where it has no vector."""

    embedding: TokenEmbedding
    parts: Mapping[Part, Vector]


def semantic_scores(
    index: VectorIndex, embedding: TokenEmbedding, episodes: EpisodeArrays, version_max: int
) -> SemanticScores:
    """Return how near each episode of `roster` is.

    Parameters:
        until: the version of the read model that is searched; the index may hold what came later.
    """
    return SemanticScores(
        embedding, {part: _cosines(index, embedding.vector, part, episodes, version_max) for part in PARTS}
    )


def _cosines(index: VectorIndex, vector: Vector, part: Part, episodes: EpisodeArrays, version_max: int) -> Vector:
    versions, values = index.cosines(vector, part, until=version_max)
    # Nearly always the same episodes, which is seen much faster than they are put in order.
    if len(versions) == len(episodes) and np.array_equal(versions, episodes.versions):
        return values
    aligned = np.full(len(episodes), np.nan, np.float32)
    if len(versions):
        positions = np.minimum(np.searchsorted(versions, episodes.versions), len(versions) - 1)
        indexed = versions[positions] == episodes.versions
        aligned[indexed] = values[positions[indexed]]
    return aligned


def late_interaction_scores(
    vectors: Vectors,
    namespace: str,
    snapshot: Snapshot,
    query: Query,
    embedding: TokenEmbedding,
    idf: Mapping[str, float],
    versions: Ints,
) -> Vector:
    """Return how well each of the episodes `versions`, which rise, answers the query piece by piece.

    Not a number where the model cannot tell. A piece of a rare word counts most, of a stop word not at all.
    """
    scores = np.full(len(versions), np.nan, np.float32)
    stored = vectors.codes(namespace, snapshot, versions.tolist())
    if not stored or not len(embedding.tokens):
        return scores
    basis = vectors.basis()
    codes, starts, rows = _concatenated_codes(stored, versions, basis.shape[1])
    weights = _token_weights(query.text, embedding, idf)
    values = late_interaction(reduced(embedding.tokens, basis), weights, codes, starts)
    np.fmax.at(scores, rows, values)
    return scores


def _concatenated_codes(
    stored: Mapping[int, Sequence[bytes]], versions: Ints, width: int
) -> tuple[TokenCodes, Ints, Ints]:
    """Return all codes one after the other, where each chunk begins, and the place of its episode."""
    chunks = [chunk for episode_chunks in stored.values() for chunk in episode_chunks]
    codes = np.frombuffer(b"".join(chunks), np.int8).reshape(-1, width)
    ends = np.cumsum(np.fromiter(map(len, chunks), np.int64, len(chunks))) // width
    rows = np.searchsorted(versions, np.fromiter(stored, np.int64, len(stored)))
    counts = np.fromiter(map(len, stored.values()), np.int64, len(stored))
    return codes, np.concatenate([[0], ends[:-1]]), np.repeat(rows, counts)


def _token_weights(text: str, embedding: TokenEmbedding, idf: Mapping[str, float]) -> Vector:
    """Return what each piece of the query counts: the rarity of its word; alike when nothing is known of them."""
    count = len(embedding.tokens)
    weights = np.zeros(count, np.float32)
    mean_idf = float(np.mean(list(idf.values()))) if idf else 1.0
    words = [(match.start(), match.end(), match.group().casefold()) for match in WORD.finditer(text)]
    for index, (start, _) in enumerate(embedding.spans):
        word = next((word for first, end, word in words if first <= start < end), "")
        if word and word not in STOP_WORDS:
            weights[index] = idf.get(word, mean_idf)
    total = float(weights.sum())
    return weights / np.float32(total) if total > 0 else np.full(count, 1 / count, np.float32)
