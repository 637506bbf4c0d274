"""Comparison: which of the older statements of a speaker a new sentence may replace, end or correct.

The features of `change_features.py`, and what the statement reader thinks of the sentence, say which pairs may be a
change at all. An encoder reads statement and sentence of these as one text; `change_odds.py` says by all of it how
probable a change is. `ops/train/changes` trains them and prints their figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.jobs.extraction.change_features import Read, pair_features, prior_text, read_of, stems_of
from recollect.jobs.extraction.change_odds import first_odds, odds
from recollect.jobs.extraction.statement_reader import HEADS, ReadClause, read_clauses
from recollect.projections.embeddings.reading_encoder import ReadPairs
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.statement_lines import fact_line

Floats = NDArray[np.float32]
#: Returns the vectors of texts, one row each; None when no embedding model is ready.
Vectors = Callable[[Sequence[str]], Floats | None]

#: The classes of the statement reader that are inputs, by head.
HINTED: Final = tuple((head, name) for head in ("act", "change", "kind") for name in HEADS[head])
#: What a sentence does to a statement: the columns of the encoder.
RELATIONS: Final = ("none", "repeats", "replaces", "ends", "corrects")
#: The columns of relations that change something.
CHANGES: Final = slice(RELATIONS.index("replaces"), None)
#: Statements that are compared with one sentence.
_COMPARED_MAX = 24
#: Older statements that are looked through for these.
_STATEMENTS_MAX = 300
#: First probability of a change from which on the encoder reads a pair.
READ_MIN = 0.03


class Compared(NamedTuple):
    """A statement with what a sentence may do to it."""

    prior: PriorStatement
    #: The most likely one of those that change it.
    relation: str
    #: That it changes the statement at all.
    probability: float


class Pairs(NamedTuple):
    """A sentence with the statements that are compared to it, oldest first."""

    sentence: str
    own: Sequence[PriorStatement]
    #: Of the sentence, as `reader_hint` returns it.
    hint: Floats
    #: Shape (n, inputs): without what the encoder says.
    inputs: Floats
    has_vectors: bool

    @property
    def is_rule(self) -> NDArray[np.bool_]:
        """Return which statements are preferences, shape (n,)."""
        return np.array([prior.is_preference for prior in self.own], np.bool_)

    @property
    def is_plain(self) -> NDArray[np.bool_]:
        """Return which statements are facts with a predicate of their own, not the words of a speaker, shape (n,)."""
        return np.array([prior.predicate not in ("", SAYS) for prior in self.own], np.bool_)


def compare(
    sentence: str,
    speaker: str,
    before: Sequence[PriorStatement],
    vectors: Vectors | None = None,
    read: Sequence[ReadClause] | None = None,
    read_pairs: ReadPairs | None = None,
) -> list[Compared]:
    """Return the statements that a sentence may change, oldest first.

    Parameters:
        sentence: as it is said.
        before: older statements, oldest first; those of other speakers are left out.
        vectors: None: the words decide alone.
        read: the clauses of the sentence; None: they are read by their words.
        read_pairs: returns the vectors of statements that are read together with the sentence; None: there is no
            encoder.
    """
    pairs = pairs_of(sentence, speaker, before, vectors, read)
    return [] if pairs is None else compared(pairs, None if read_pairs is None else pair_probabilities(read_pairs))


def pairs_of(
    sentence: str,
    speaker: str,
    before: Sequence[PriorStatement],
    vectors: Vectors | None,
    read: Sequence[ReadClause] | None,
) -> Pairs | None:
    """Return the pairs of a sentence, parameters as in `compare`; None when there are none."""
    own = [prior for prior in before[-_STATEMENTS_MAX:] if prior.speaker == speaker]
    said = Read(sentence)
    if not own or not said.words:
        return None
    own = [*{(prior.subject, prior.predicate, prior.object): prior for prior in own}.values()]
    near = None if vectors is None else vectors([sentence, *map(embedded_text, own)])
    hint = reader_hint(read_clauses(sentence, to_assistant=True) if read is None else read)
    places = _candidates(said, own, near, hint)
    own = [own[place] for place in places]
    cosines = None if near is None else near[1:][places] @ near[0]
    features = pair_features(said, [read_of(prior_text(prior)) for prior in own], speaker, cosines)
    of_sentence = np.broadcast_to(hint, (len(own), len(hint)))
    return Pairs(sentence, own, hint, np.concatenate([features, of_sentence], axis=1), near is not None)


def compared(pairs: Pairs, by_encoder: Callable[[Sequence[tuple[str, str]]], Floats] | None) -> list[Compared]:
    """Return what a sentence may do to the statements that it is compared with.

    Parameters:
        by_encoder: returns the probabilities of `RELATIONS` of statements and sentences, one row each.
    """
    is_rule = pairs.is_rule
    probabilities = first_odds(pairs.inputs, is_rule, has_vectors=pairs.has_vectors)
    relations = np.broadcast_to(_of_hint(pairs.hint), (len(is_rule), len(RELATIONS))).copy()
    if by_encoder is not None:
        places: list[int] = np.flatnonzero(probabilities >= READ_MIN).tolist()
        if places:
            relations[places] = by_encoder([(embedded_text(pairs.own[place]), pairs.sentence) for place in places])
            read = np.full(len(is_rule), np.nan, np.float32)
            read[places] = relations[places, CHANGES].sum(axis=1)
            probabilities[places] = odds(pairs.inputs, read, is_rule, pairs.is_plain)[places]
    likeliest: list[int] = relations[:, CHANGES].argmax(axis=1).tolist()
    names = [RELATIONS[CHANGES][place] for place in likeliest]
    return [Compared(*row) for row in zip(pairs.own, names, probabilities.tolist(), strict=True)]


def pair_probabilities(
    read_pairs: ReadPairs, weights: str = "pair_weights.npz"
) -> Callable[[Sequence[tuple[str, str]]], Floats]:
    """Return the reading of pairs by an encoder: the probabilities of `RELATIONS`, one row a pair.

    Parameters:
        weights: the file of what reads its vectors.
    """

    def read(pairs: Sequence[tuple[str, str]]) -> Floats:
        weight, bias = _pair_weights(weights)
        scores = read_pairs(pairs) @ weight.T + bias
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    return read


def reader_hint(read: Sequence[ReadClause]) -> Floats:
    """Return what the statement reader thinks of a sentence: the greatest probability of its clauses for each class."""
    rows = [[part.probabilities[head][name] for head, name in HINTED] for part in read]
    return np.array(rows, np.float32).max(axis=0) if rows else np.zeros(len(HINTED), np.float32)


@cache
def _pair_weights(name: str) -> tuple[Floats, Floats]:
    """Return the weights of the vectors of a pair, shape (relations, dimensions), and the bias."""
    arrays: dict[str, Any] = dict(np.load(BytesIO(files(__package__).joinpath(name).read_bytes())))
    return arrays["weight"].astype(np.float32), arrays["bias"].astype(np.float32)


@lru_cache(maxsize=1_024)
def embedded_text(prior: PriorStatement) -> str:
    """Return the sentence of a statement that has a vector."""
    if prior.text or prior.is_preference:
        return prior.text or prior.object
    return fact_line(prior.subject, prior.predicate, prior.object)


def _candidates(said: Read, own: Sequence[PriorStatement], near: Floats | None, hint: Floats) -> list[int]:
    """Return the places of the statements that a sentence is compared with, in their order.

    They share words with it, are near, of the kind that it changes, or the latest ones.
    """
    kinds = {name: float(value) for (head, name), value in zip(HINTED, hint, strict=True) if head == "kind"}
    scores = np.array([len(said.stems & stems_of(prior_text(prior))) for prior in own], np.float32)
    scores += [kinds.get(prior.kind or "", 0.0) for prior in own]
    scores += 0.5 / np.arange(len(own), 0, -1)
    if near is not None:
        scores += 2 * (near[1:] @ near[0])
    return sorted(int(place) for place in np.argsort(-scores, kind="stable")[:_COMPARED_MAX])


def _of_hint(hint: Floats) -> Floats:
    """Return the relations by what the statement reader thinks of the sentence alone."""
    changes = {name: float(value) for (head, name), value in zip(HINTED, hint, strict=True) if head == "change"}
    return np.array([changes.get(name, 0.0) for name in RELATIONS], np.float32)
