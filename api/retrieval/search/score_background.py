"""Score background: compares the scores of a query and a text with those of the query and unrelated texts.

Cosines of two embedding models are not comparable, and neither are those of two queries: a short question is near to
every short statement. The distance to what unrelated statements have, in standard deviations, is.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from recollect.projections.embeddings.content_tokens import content_tokens
from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.embeddings.token_codes import (
    CODE_BYTES,
    TokenCodes,
    Vector,
    decoded,
    encoded,
    late_interaction,
    reduced,
)
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.search_index.episode_arrays import Ints

#: Statements on subjects that have little to do with each other, in the form of facts and of messages: few of them are
#: near to any one query.
_STATEMENTS = (
    "The museum closes at noon on public holidays",
    "user collects old postage stamps",
    "The river froze twice that winter",
    "Anna paints landscapes in oil",
    "The committee postponed the vote on the budget",
    "user keeps three beehives behind the barn",
    "Version two of the library drops support for threads",
    "The train to the coast was an hour late",
    "Paul sings tenor in the church choir",
    "The roof of the shed leaks when it rains",
    "user planted tulips along the fence",
    "The lecture covered the history of printing",
    "The shop on the corner sells good olives",
    "user broke the handle of the blue cup",
    "The comet will be visible again in sixty years",
    "Maria repaired the engine of the tractor",
    "The court rejected the appeal of the company",
    "user watched a documentary on volcanoes",
    "The sofa has to be carried up to the third floor",
    "The printer needs a new black cartridge",
    "Leo won the chess tournament of the district",
    "The tide is lowest in the early morning",
    "user forgot an umbrella in the tram",
    "The recipe asks for two spoons of vinegar",
    "The battery of the watch lasts five years",
    "Sofia translated the letter into Portuguese",
    "The bridge is closed to lorries",
    "user learned to juggle with four balls",
    "The band played until two in the morning",
    "The invoice was sent to the wrong department",
    "The bakery stopped making poppy seed rolls",
    "user saw a fox cross the garden",
)
#: The smallest standard deviation of the scores, so that no score stands out of a model that sees no difference.
_DEVIATION_MIN = 0.02


class _Statements(NamedTuple):
    """The unrelated statements as one model embeds them."""

    fingerprint: str
    #: Shape (statements, dimensions).
    vectors: Vector
    #: Mean and standard deviation of the cosines of two different statements.
    mean: float
    deviation: float
    #: The same of late interaction.
    late_mean: float
    late_deviation: float


class ScoreBackground:
    """What an embedding model scores for unrelated statements. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statements: _Statements | None = None

    def prepare(self, vectors: Vectors) -> None:
        """Embed the statements, which the first retrieval would otherwise do within its time."""
        self._of(vectors)

    def deviations(self, vectors: Vectors, embedding: Vector, cosines: Vector) -> Vector:
        """Return how far each cosine is above those of unrelated statements, in standard deviations, same shape.

        Parameters:
            embedding: the query's vector, shape (dimensions,).
            cosines: the cosines of the query and other texts; NaN stays NaN.
        """
        return _deviations(cosines, self._of(vectors).vectors @ embedding)

    def cosines_over(self, vectors: Vectors, cosines: Vector) -> Vector:
        """Return cosines in standard deviations above two unrelated texts of the same model, same shape; NaN stays."""
        statements = self._of(vectors)
        return ((cosines - statements.mean) / statements.deviation).astype(np.float32)

    def late_over(self, vectors: Vectors, scores: Vector) -> Vector:
        """Return late-interaction scores in standard deviations above two unrelated texts, same shape; NaN stays."""
        statements = self._of(vectors)
        return ((scores - statements.late_mean) / statements.late_deviation).astype(np.float32)

    def _of(self, vectors: Vectors) -> _Statements:
        """Return the statements as the active model embeds them; embedded at the first call."""
        fingerprint = vectors.embedder.fingerprint
        with self._lock:
            if self._statements is None or self._statements.fingerprint != fingerprint:
                self._statements = _embedded_statements(vectors, fingerprint)
            return self._statements


def _embedded_statements(vectors: Vectors, fingerprint: str) -> _Statements:
    embeddings = vectors.embedder.embed_tokens([Stretch(text) for text in _STATEMENTS])
    basis = vectors.basis()
    # A model that does not report its tokens has no late interaction, and no background of it.
    stored = [
        encoded(content_tokens(text, embedding), basis)
        for text, embedding in zip(_STATEMENTS, embeddings, strict=True)
        if len(embedding.tokens)
    ]
    lengths = [len(codes) for codes in stored]
    starts = np.cumsum([0, *lengths])[: len(lengths)].astype(np.int64)
    codes = decoded(np.concatenate([np.empty((0, CODE_BYTES), np.uint8), *stored]))
    late = [
        np.delete(_late_scores(reduced(embedding.tokens, basis), codes, starts), index)
        for index, embedding in enumerate(embeddings)
        if stored
    ]
    late_pairs = np.concatenate([np.zeros(1, np.float32), *late])
    matrix = np.stack([embedding.vector for embedding in embeddings])
    pairs = (matrix @ matrix.T)[np.triu_indices(len(matrix), 1)]
    return _Statements(
        fingerprint,
        matrix,
        float(pairs.mean()),
        max(float(pairs.std()), _DEVIATION_MIN),
        float(late_pairs[1:].mean()) if len(late_pairs) > 1 else 0.0,
        max(float(late_pairs[1:].std()) if len(late_pairs) > 1 else 0.0, _DEVIATION_MIN),
    )


def _late_scores(tokens: Vector, codes: TokenCodes, starts: Ints) -> Vector:
    """Return the late-interaction scores of a statement and all statements, shape (statements,)."""
    return late_interaction(tokens, np.full(len(tokens), 1 / len(tokens), np.float32), codes, starts)


def _deviations(scores: Vector, background: Vector) -> Vector:
    deviation = max(float(background.std()), _DEVIATION_MIN)
    return ((scores - float(background.mean())) / deviation).astype(np.float32)
