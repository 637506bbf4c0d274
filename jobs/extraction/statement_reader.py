"""Statement reader: a trained model that decides which clauses of a message state something worth keeping.

Each head is a multinomial logit of the features of a clause and, when the embedding model is ready, of the vectors that
the model gives to the clause and to its sentence. `ops/train/reader` learns the weights from labelled sentences; its
README has the figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from io import BytesIO
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recollect.jobs.extraction.clause_features import clause_features
from recollect.jobs.extraction.clauses import Clause, clauses
from recollect.projections.embeddings.matrix_product import product
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


class ReaderWeights(Struct, frozen=True, kw_only=True):
    """The weights of one model."""

    #: Shape (BUCKETS, columns), int8; a column times its scale is the weight.
    words: NDArray[np.int8]
    scale: Vector
    bias: Vector
    #: Of the vectors of clause and sentence, shape (2 * DIMENSIONS, columns); None: the model reads words alone.
    vectors: Vector | None

    def probabilities(
        self, clauses: Sequence[Sequence[int]], vectors: Sequence[Vector] | None = None
    ) -> list[dict[str, dict[str, float]]]:
        """Return the probability of each class, by head, of clauses with the rows of their features."""
        # The sums are whole numbers below 2^24, which float32 holds exactly; numpy adds them in a third of the time.
        sums: list[Vector] = [
            np.ones(len(rows), np.float32) @ self.words.take(rows, axis=0).astype(np.float32) for rows in clauses
        ]
        scores = np.stack(sums) * self.scale + self.bias
        if vectors is not None and self.vectors is not None:
            scores = scores + product(np.array(vectors), self.vectors)
        # All heads of all clauses at once: numpy takes longer to be called than to compute so few numbers.
        odds = np.exp(scores - np.repeat(np.maximum.reduceat(scores, _STARTS, axis=1), _SIZES, axis=1))
        shares: list[list[float]] = (odds / np.repeat(np.add.reduceat(odds, _STARTS, axis=1), _SIZES, axis=1)).tolist()
        return [
            {
                head: dict(zip(classes, row[start : start + len(classes)], strict=True))
                for (head, classes), start in zip(HEADS.items(), _STARTS, strict=True)
            }
            for row in shares
        ]


@cache
def reader_weights() -> tuple[ReaderWeights, ReaderWeights]:
    """Return the weights of the model for words alone, and of the model for words and vectors."""
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
    """Return the clauses of a sentence with what the reader thinks of them; see `read_each`."""
    return read_each([sentence], None if embedding is None else [embedding], to_assistant=to_assistant)[0]


def read_each(
    sentences: Sequence[str], embeddings: Sequence[TokenEmbedding] | None = None, *, to_assistant: bool
) -> list[list[ReadClause]]:
    """Return the clauses of each sentence with what the reader thinks of them.

    Parameters:
        embeddings: of the sentences; None, or those of another model: words decide alone.
        to_assistant: whether an assistant takes part in the conversation.
    """
    by_words, by_both = reader_weights()
    read = [_clauses_and_rows(sentence, to_assistant) for sentence in sentences]
    rows = [of_clause for parts in read for _, of_clause in parts]
    if not rows:
        return [[] for _ in sentences]
    vectors: list[Vector] | None = None
    if embeddings is not None and all(_is_known(embedding) for embedding in embeddings):
        vectors = [
            clause_vector(embedding, clause)
            for parts, embedding in zip(read, embeddings, strict=True)
            for clause, _ in parts
        ]
    probabilities = iter((by_words if vectors is None else by_both).probabilities(rows, vectors))
    return [[ReadClause(clause, next(probabilities), vectors is not None) for clause, _ in parts] for parts in read]


# A sentence that may matter is read twice: by its words, and with its vectors.
@lru_cache(maxsize=256)
def _clauses_and_rows(sentence: str, to_assistant: bool) -> list[tuple[Clause, list[int]]]:
    """Return the clauses of a sentence, each with the rows of its features."""
    return [
        (
            clause,
            clause_features(clause.text, sentence[: clause.start], sentence[clause.end :], to_assistant=to_assistant),
        )
        for clause in clauses(sentence)
    ]


def _is_known(embedding: TokenEmbedding) -> bool:
    """Return whether an embedding has the form of the model that the weights were trained with."""
    return embedding.tokens.shape[1:] == (DIMENSIONS,) and embedding.vector.shape == (DIMENSIONS,)


def clause_vector(embedding: TokenEmbedding, clause: Clause) -> Vector:
    """Return the mean of the token vectors of a clause and the vector of its sentence."""
    inside = [row for row, (start, end) in enumerate(embedding.spans) if start < clause.end and clause.start < end]
    mean = embedding.tokens[inside].mean(axis=0) if inside else embedding.vector
    return np.concatenate((mean, embedding.vector))
