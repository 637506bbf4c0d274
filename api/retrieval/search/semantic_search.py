"""Semantic search: cosines of the query's vector with those of episodes, and late interaction of token vectors."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Final, Literal

import numpy as np
from msgspec import Struct

from recollect.api.retrieval.search.score_background import ScoreBackground
from recollect.api.retrieval.understanding.query import Query
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.embeddings.model_runtime import PendingEmbedding
from recollect.projections.embeddings.stretches import TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector, late_interaction, reduced
from recollect.projections.embeddings.vector_index import VectorIndex
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.projection_settings import MULTILINGUAL_MODEL
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.search_index.episode_arrays import EpisodeArrays, Ints
from recollect.projections.text.words import STOP_WORDS, WORD

#: `turn`: the cosine of the episode's vector; `window`: the mean of those of the turns around it.
Part = Literal["turn", "window"]
TURN: Final = "turn"
WINDOW: Final = "window"
#: Tables of `weights.toml` and `gate.toml`: for searches with vectors, and by keywords alone. A model whose scores are
#: distributed otherwise has tables of its name.
HYBRID: Final = "hybrid"
KEYWORD: Final = "keyword"
_MODELS_WITH_WEIGHTS = frozenset((MULTILINGUAL_MODEL,))
#: Weights of the turns before and after a turn in its window, by distance.
_WINDOW_WEIGHTS = (0.5, 0.25)

#: Queries whose embeddings stay in memory, since users and bots repeat queries. About 5 KB each, of tokens mostly.
_QUERIES_MAX = 256


class QueryEmbeddings:
    """A cache of query embeddings, by fingerprint of the embedding model and text. Safe to use from many threads.

    The token vectors of its embeddings are reduced to the basis of the token codes that they are compared with.
    """

    def __init__(self) -> None:
        self._embeddings: BoundedCache[tuple[str, str], TokenEmbedding] = BoundedCache(_QUERIES_MAX)

    def get(self, text: str, vectors: Vectors) -> TokenEmbedding:
        """Return the embedding of `text` by the model of `vectors`, with reduced tokens."""
        embedding = self._embeddings.get(_key(text, vectors))
        return embedding or self._put(text, vectors, vectors.embedder.embed_query(text))

    def start(self, text: str, vectors: Vectors, on_end: Callable[[], None]) -> PendingEmbedding | None:
        """Begin to embed `text` in parallel with this thread; None: `get` has to do it.

        Parameters:
            on_end: called when the embedding is there.
        """
        if (cached := self._embeddings.get(_key(text, vectors))) is not None:
            on_end()
            return _OnceFinished(lambda _: cached)
        started = vectors.embedder.start_query(text)
        if started is None:
            return None

        def finish(timeout: float | None) -> TokenEmbedding:
            embedding = self._put(text, vectors, started.result(timeout))
            on_end()
            return embedding

        return _OnceFinished(finish)

    def _put(self, text: str, vectors: Vectors, whole: TokenEmbedding) -> TokenEmbedding:
        # Copies, since the vectors may be views of the model's output.
        tokens = reduced(whole.tokens, vectors.basis()) if len(whole.tokens) else whole.tokens
        embedding = TokenEmbedding(whole.vector.copy(), tokens, whole.spans)
        self._embeddings.put(_key(text, vectors), embedding)
        return embedding


def _key(text: str, vectors: Vectors) -> tuple[str, str]:
    return vectors.embedder.fingerprint, text


class _OnceFinished:
    """An embedding that the thread which asks for it first finishes."""

    def __init__(self, finish: Callable[[float | None], TokenEmbedding]) -> None:
        self._finish = finish
        self._embedding: TokenEmbedding | None = None
        self._lock = threading.Lock()

    def result(self, timeout: float | None = None) -> TokenEmbedding:
        """Return the embedding; raise `TimeoutError` when it is not there after `timeout` seconds."""
        with self._lock:
            if self._embedding is None:
                self._embedding = self._finish(timeout)
            return self._embedding


class SemanticScores(Struct, frozen=True):
    """How near a query is to every episode, by part, shape (episodes,) each; NaN without a vector.

    The values are cosines in standard deviations above unrelated texts, so that they mean the same for any model.
    """

    embedding: TokenEmbedding
    parts: Mapping[Part, Vector]
    #: The tables of `weights.toml` and `gate.toml` for the model of the vectors.
    weights: str = HYBRID


def weights_name(semantics: SemanticScores | None) -> str:
    """Return the name of the tables of `weights.toml` and `gate.toml` for a search."""
    return KEYWORD if semantics is None else semantics.weights


def semantic_scores(
    vectors: Vectors,
    index: VectorIndex,
    embedding: TokenEmbedding,
    episodes: EpisodeArrays,
    version_max: int,
    background: ScoreBackground,
) -> SemanticScores:
    """Return how near the query is to every episode.

    Parameters:
        version_max: the version of the read model; the index may hold vectors of later versions.
    """
    turn = background.cosines_over(vectors, _cosines(index, embedding.vector, episodes, version_max))
    model = vectors.embedder.name
    weights = model if model in _MODELS_WITH_WEIGHTS else HYBRID
    return SemanticScores(embedding, {TURN: turn, WINDOW: window_means(turn, episodes)}, weights)


def window_means(values: Vector, episodes: EpisodeArrays) -> Vector:
    """Return the weighted mean of the values of each turn and the turns around it in its session, shape (episodes,).

    A turn whose own value is NaN has none; of a summary and of a turn without a session it is its own value.
    """
    missing = np.isnan(values)
    numbers = np.where(missing, np.float32(0), values)
    valid = (~missing).astype(np.float32)
    sums, weights = numbers.copy(), valid.copy()
    linked = follows = episodes.follows
    for distance, weight in enumerate(_WINDOW_WEIGHTS, start=1):
        share = linked * np.float32(weight)
        sums[distance:] += share * numbers[:-distance]
        weights[distance:] += share * valid[:-distance]
        sums[:-distance] += share * numbers[distance:]
        weights[:-distance] += share * valid[distance:]
        linked = linked[1:] & follows[:-distance]
    return np.where(valid > 0, sums / np.maximum(weights, 1), np.nan).astype(np.float32)


def _cosines(index: VectorIndex, vector: Vector, episodes: EpisodeArrays, version_max: int) -> Vector:
    """Return the cosines in the order of `episodes`; NaN for an episode without a vector."""
    versions, values = index.cosines(vector, until=version_max)
    # The index usually has exactly these episodes, and comparing is much faster than aligning.
    if len(versions) == len(episodes) and np.array_equal(versions, episodes.versions):
        return values
    aligned = np.full(len(episodes), np.nan, np.float32)
    if len(versions) < len(episodes) and np.array_equal(versions, episodes.versions[: len(versions)]):
        # Only the newest episodes have no vectors yet.
        aligned[: len(versions)] = values
    elif len(versions):
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
    background: ScoreBackground,
) -> Vector:
    """Return the late-interaction score of each of `versions`, shape (len(versions),); NaN without token codes.

    The unit is the standard deviation of unrelated texts.

    A token of a rare word has the highest weight; tokens of stop words have none.

    Parameters:
        embedding: of the query, with reduced tokens.
        idf: the inverse document frequency of each word of the query.
        versions: versions of episodes, ascending.
    """
    scores = np.full(len(versions), np.nan, np.float32)
    stored = vectors.codes(namespace, snapshot, versions.tolist(), embedding.vector)
    if not stored.parts or not len(embedding.tokens):
        return scores
    weights = _token_weights(query.text, embedding, idf)
    keys = np.concatenate([part.keys for part in stored.parts])
    of_keys = np.concatenate(
        [late_interaction(embedding.tokens, weights, part.codes, part.starts) for part in stored.parts]
    )
    order = np.argsort(keys)
    places = order[np.minimum(np.searchsorted(keys, stored.keys, sorter=order), len(order) - 1)]
    coded = keys[places] == stored.keys
    # The best passage of a turn counts.
    np.fmax.at(scores, np.searchsorted(versions, stored.versions[coded]), of_keys[places[coded]])
    return background.late_over(vectors, scores)


def _token_weights(text: str, embedding: TokenEmbedding, idf: Mapping[str, float]) -> Vector:
    """Return the weight of each token of the query, summing to 1: the IDF of its word, or equal weights."""
    count = len(embedding.tokens)
    weights = np.zeros(count, np.float32)
    mean_idf = float(np.mean(list(idf.values()))) if idf else 1.0
    words = [*WORD.finditer(text)]
    firsts = [word.start() for word in words]
    for index, (start, _) in enumerate(embedding.spans):
        place = bisect_right(firsts, start) - 1
        if place >= 0 and start < words[place].end():
            word = words[place].group().casefold()
            weights[index] = 0.0 if word in STOP_WORDS else idf.get(word, mean_idf)
    total = float(weights.sum())
    return weights / np.float32(total) if total > 0 else np.full(count, 1 / count, np.float32)
