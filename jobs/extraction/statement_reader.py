"""Statement reader: a trained model that decides which clauses of a message state something worth keeping.

Each head is a multinomial logit of the features of a clause and, when the embedding model is ready, of the vectors that
the model gives to the clause and to its sentence. `ops/train/reader` learns the weights from labelled sentences; its
README has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from io import BytesIO
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.jobs.extraction.clause_features import clause_features
from recollect.jobs.extraction.clauses import Clause, clauses
from recollect.projections.embeddings.stretches import TokenEmbedding

Vector = NDArray[np.float32]

#: The classes of each head, in the order of the columns of the weights.
HEADS: dict[str, tuple[str, ...]] = {
    "keep": ("no", "yes"),
    "act": ("states", "asks", "rules", "unrules", "forgets", "jokes", "quotes", "talks"),
    "kind": (
        "identity", "home", "work", "relation", "health", "possession", "habit", "event", "plan", "decision", "task",
        "preference", "rule", "other",
    ),
    "about": ("me", "we", "other", "you", "thing"),
    "change": ("none", "ends", "replaces", "corrects"),
}  # fmt: skip
#: Dimensions of the vectors of the model that the weights were trained with.
DIMENSIONS = 384
_WEIGHTS = "reader_weights.npz"
#: The columns of each head.
_SIZES = [len(classes) for classes in HEADS.values()]
#: The first column of each head.
_STARTS = [0, *accumulate(_SIZES[:-1])]


class ReadClause(NamedTuple):
    """A clause and what the reader thinks of it."""

    clause: Clause
    #: The probability of each class, by head.
    probabilities: dict[str, dict[str, float]]
    #: Whether the vectors of the clause were read, too.
    has_vector: bool = False

    @property
    def keep(self) -> float:
        """Return the probability that it states something worth keeping."""
        return self.probabilities["keep"]["yes"]

    def most_likely(self, head: str) -> str:
        """Return the most likely class of a head."""
        classes = self.probabilities[head]
        return max(classes, key=classes.__getitem__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderWeights:
    """The weights of one model."""

    #: Shape (BUCKETS, columns), int8; a column times its scale is the weight.
    words: NDArray[np.int8]
    scale: Vector
    bias: Vector
    #: Of the vectors of clause and sentence, shape (2 * DIMENSIONS, columns); None: the model reads words alone.
    vectors: Vector | None

    def probabilities(self, rows: Sequence[int], vector: Vector | None) -> dict[str, dict[str, float]]:
        """Return the probability of each class, by head, of a clause with these features."""
        scores = self.words[list(rows)].sum(axis=0, dtype=np.int32) * self.scale + self.bias
        if vector is not None and self.vectors is not None:
            scores = scores + vector @ self.vectors
        # All heads at once: numpy takes longer to be called than to compute so few numbers.
        odds = np.exp(scores - np.repeat(np.maximum.reduceat(scores, _STARTS), _SIZES))
        shares: list[float] = (odds / np.repeat(np.add.reduceat(odds, _STARTS), _SIZES)).tolist()
        return {
            head: dict(zip(classes, shares[start : start + len(classes)], strict=True))
            for (head, classes), start in zip(HEADS.items(), _STARTS, strict=True)
        }


@cache
def reader_weights() -> tuple[ReaderWeights, ReaderWeights]:
    """Return the weights of the model that reads words alone, and of the one that reads vectors, too."""
    data = files(__package__).joinpath(_WEIGHTS).read_bytes()
    with np.load(BytesIO(data)) as arrays:
        return weights_of(arrays, "words"), weights_of(arrays, "both")


def weights_of(arrays: Mapping[str, NDArray[Any]], name: str) -> ReaderWeights:
    """Return one of the models of a file of weights: `words` or `both`."""
    return ReaderWeights(
        words=arrays[f"{name}_words"].astype(np.int8),
        scale=arrays[f"{name}_scale"].astype(np.float32),
        bias=arrays[f"{name}_bias"].astype(np.float32),
        vectors=arrays["both_vectors"].astype(np.float32) if name == "both" else None,
    )


def read_clauses(sentence: str, *, to_assistant: bool, embedding: TokenEmbedding | None = None) -> list[ReadClause]:
    """Return the clauses of a sentence with what the reader thinks of them.

    Parameters:
        to_assistant: whether an assistant takes part in the conversation.
        embedding: of the sentence; None: words decide alone.
    """
    by_words, by_both = reader_weights()
    read: list[ReadClause] = []
    for clause, rows in _clauses_and_rows(sentence, to_assistant):
        vector = None if embedding is None else clause_vector(embedding, clause)
        weights = by_words if vector is None else by_both
        read.append(ReadClause(clause, weights.probabilities(rows, vector), vector is not None))
    return read


# A sentence that may matter is read twice: by its words, and with its vectors.
@lru_cache(maxsize=64)
def _clauses_and_rows(sentence: str, to_assistant: bool) -> list[tuple[Clause, list[int]]]:
    """Return the clauses of a sentence, each with the rows of its features."""
    return [
        (
            clause,
            clause_features(clause.text, sentence[: clause.start], sentence[clause.end :], to_assistant=to_assistant),
        )
        for clause in clauses(sentence)
    ]


def clause_vector(embedding: TokenEmbedding, clause: Clause) -> Vector | None:
    """Return the mean of the token vectors of a clause and the vector of its sentence; None for another model's."""
    if embedding.tokens.shape[1:] != (DIMENSIONS,) or embedding.vector.shape != (DIMENSIONS,):
        return None
    inside = [row for row, (start, end) in enumerate(embedding.spans) if start < clause.end and clause.start < end]
    mean = embedding.tokens[inside].mean(axis=0) if inside else embedding.vector
    return np.concatenate((mean, embedding.vector))
