"""Cosine background: compares the cosine of a query and a text with the cosines of the query and unrelated texts.

Cosines of two embedding models are not comparable, and neither are those of two queries: a short question is near to
every short statement. The distance to what unrelated statements have, in standard deviations, is.
"""

from __future__ import annotations

import threading

import numpy as np

from recollect.projections.embeddings.embedder import Embedder
from recollect.projections.embeddings.token_codes import Vector

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
#: The smallest standard deviation of the cosines, so that a model that sees no difference makes no cosine stand out.
_DEVIATION_MIN = 0.02


class CosineBackground:
    """The vectors of unrelated statements, by embedding model. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vectors: tuple[str, Vector] = ("", np.empty((0, 0), np.float32))

    def deviations(self, embedder: Embedder, embedding: Vector, cosines: Vector) -> Vector:
        """Return how far each cosine is above those of unrelated statements, in standard deviations, same shape.

        Parameters:
            embedding: the query's vector, shape (dimensions,).
            cosines: the cosines of the query and other texts; NaN stays NaN.
        """
        background = self._statement_vectors(embedder) @ embedding
        deviation = max(float(background.std()), _DEVIATION_MIN)
        return ((cosines - float(background.mean())) / deviation).astype(np.float32)

    def _statement_vectors(self, embedder: Embedder) -> Vector:
        """Return the vectors of the statements, shape (statements, dimensions); embedded at the first call."""
        fingerprint, vectors = self._vectors
        if fingerprint == embedder.fingerprint:
            return vectors
        with self._lock:
            if self._vectors[0] != embedder.fingerprint:
                self._vectors = embedder.fingerprint, embedder.embed(_STATEMENTS)
            return self._vectors[1]
