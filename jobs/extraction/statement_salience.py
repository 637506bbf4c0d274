"""Statement salience: whether a statement is worth keeping as it is, needs the words before it, or is passing.

`before was 9 thousand cedis` has a lasting value, but no subject. Such a statement is joined to the statement before
it in its message. A logit of what the statement reader says of the clauses and of their place in the message
decides; `ops/train/salience` learns it from statements that people would, or would not, write on a card about a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.jobs.extraction.statement_reader import HEADS, ReadClause

Floats = NDArray[np.float64]
CLASSES: Final = ("good", "context", "passing")
WEIGHTS: Final = "salience_weights.npz"
#: Added to probabilities before their log odds, which are halved so that they weigh no more than the places.
_LEAST, _ODDS_SHARE = 1e-4, 0.5
#: Counts of sentences, words and characters above which more make no difference.
_SENTENCES_MAX, _WORDS_MAX, _CHARS_MAX = 4, 30, 200


class SentencePlace(NamedTuple):
    """The position of a statement in its message."""

    #: Its text.
    text: str
    #: Of its sentence in the message, from 0, and the number of sentences.
    sentence: int
    sentences: int
    #: Whether it begins, and ends, its sentence.
    begins: bool
    ends: bool


class Salience(NamedTuple):
    """The probabilities of `CLASSES`."""

    good: float
    context: float
    passing: float


def salience(parts: Sequence[ReadClause], place: SentencePlace) -> Salience:
    """Return the probability that a statement, made of these clauses, is worth keeping."""
    weight, bias = _weights()["vectors" if parts[0].has_vector else "words"]
    scores = inputs_of(parts, place) @ weight + bias
    shares = np.exp(scores - scores.max())
    return Salience(*(shares / shares.sum()).tolist())


def inputs_of(parts: Sequence[ReadClause], place: SentencePlace) -> Floats:
    """Return the inputs of the logit: the log odds of each class of the reader, and the place."""
    rows = [[part.probabilities[head][name] for head, names in HEADS.items() for name in names] for part in parts]
    best = np.max(np.array(rows), axis=0)
    odds = _ODDS_SHARE * (np.log(best + _LEAST) - np.log(1 - best + _LEAST))
    stands = (
        place.sentence == 0,
        min(place.sentence, _SENTENCES_MAX) / _SENTENCES_MAX,
        place.sentence == place.sentences - 1,
        len(parts) / 3,
        place.begins,
        place.ends,
        min(len(place.text.split()), _WORDS_MAX) / 10,
        min(len(place.text), _CHARS_MAX) / 100,
    )
    return np.concatenate([odds, stands])


@cache
def _weights() -> dict[str, tuple[Floats, Floats]]:
    """Return the weights, shape (inputs, classes), and the biases, by whether the reader had vectors."""
    with np.load(BytesIO(files(__package__).joinpath(WEIGHTS).read_bytes())) as arrays:
        return {name: (arrays[name], arrays[f"{name}_bias"]) for name in ("vectors", "words")}
