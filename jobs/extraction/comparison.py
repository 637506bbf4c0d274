"""Comparison: the probabilities of what a new sentence does to each older statement of its speaker.

A small network reads the words of the sentence, in which the words of the statement stand as `@`, the features of
`change_features.py`, the kinds of both, what the statement reader thinks of the sentence, and the vectors of both where
an embedding model is ready. It sees the statements together: who gives up one of them leaves the others alone. Of the
pairs that may be a change, an encoder reads statement and sentence as one text, and `change_odds.py` says how probable
a change is by both; of rules, the probabilities of both are averaged. `ops/train/changes` trains them and prints their
figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from io import BytesIO
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from recollect.jobs.extraction.change_features import KINDS, Read, cues, pair_features, prior_text, read_of, stems_of
from recollect.jobs.extraction.change_odds import change_probabilities, odds_inputs
from recollect.jobs.extraction.statement_reader import HEADS, ReadClause, read_clauses
from recollect.projections.embeddings.reading_encoder import ReadPairs
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.statement_lines import fact_line

Floats = NDArray[np.float32]
#: Returns the vectors of texts, one row each; None when no embedding model is ready.
Vectors = Callable[[Sequence[str]], Floats | None]

#: The classes of the statement reader that the network reads, by head.
HINTED: Final = tuple((head, name) for head in ("act", "change") for name in HEADS[head])
#: What a sentence does to a statement: the columns of the probabilities.
RELATIONS: Final = ("none", "repeats", "replaces", "ends", "corrects")
#: Statements that are compared with one sentence.
_COMPARED_MAX = 24
#: Older statements that are looked through for these.
_STATEMENTS_MAX = 300
#: A sentence whose words change anything with a smaller probability is not compared.
_CHANGE_MIN = 0.005
#: Other sentences are compared when they have so many words of one of the latest statements.
_NAMED_MIN = 2
_NAMED_STATEMENTS_MAX = 200
#: Probability of a change from which on the encoder reads a pair: of 788 held-out changes 732 have it, and one in ten
#: of all pairs.
READ_MIN = 0.005
#: The vectors are longer by this factor in the network.
_VECTOR_SCALE = 4.0
_PRODUCT_SCALE = 8.0
_HINT_SCALE = 4.0
_KNOWN_KIND = 0.98
_FEATURE_MAX = 4.0
#: Added to probabilities before their logarithm.
_LEAST = 1e-6
#: The columns of relations that change something.
CHANGES: Final = slice(RELATIONS.index("replaces"), None)


class _Network:
    """The weights of the trained network."""

    def __init__(self, content: bytes) -> None:
        weights: dict[str, Any] = dict(np.load(BytesIO(content)))
        vocabulary = bytes(weights.pop("vocabulary")).decode().split("\n")
        self._places = {cue: place + 1 for place, cue in enumerate(vocabulary)}
        #: The words that the network knows: cues of one word.
        self.lexicon = frozenset(cue for cue in vocabulary if " " not in cue)
        self._weights: dict[str, Floats] = {name: array.astype(np.float32) for name, array in weights.items()}

    def places(self, words: Sequence[str]) -> list[int]:
        """Return the rows of the cues of a text."""
        return [self._places[cue] for cue in words if cue in self._places]

    def _summed(self, table: str, cues: Sequence[int], vector: Floats | None) -> Floats:
        summed = self._weights[f"{table}.weight"][list(cues)].sum(0) + self._weights[f"{table}_vector.bias"]
        return summed if vector is None else summed + self._weights[f"{table}_vector.weight"] @ (vector * _VECTOR_SCALE)

    def kinds(self, cues: Sequence[int], vector: Floats | None) -> Floats:
        """Return the probabilities of the kinds of a text."""
        return _softmax(self._summed("kind", cues, vector))

    def change(self, cues: Sequence[int]) -> float:
        """Return the probability that the words of a sentence change anything."""
        return 1 - float(_softmax(self._linear("change", np.tanh(self._summed("code", cues, None))))[0])

    def relations(
        self,
        features: Floats,
        cues: Sequence[tuple[int, ...]],
        hint: Floats,
        vectors: tuple[Floats, Floats] | None,
        kinds: Floats,
        prior_kinds: Floats,
    ) -> Floats:
        """Return the probabilities of the relations, shape (n, 5).

        Parameters:
            features: shape (n, features).
            cues: of the sentence with the words of each statement marked.
            hint: of the sentence, as `reader_hint` returns it.
            vectors: of the sentence, and of the statements, one row each.
            kinds: of the sentence.
            prior_kinds: of the statements, one row each.
        """
        said = None if vectors is None else vectors[0]
        scaled = np.clip((features - self._weights["mean"]) * self._weights["scale"], -_FEATURE_MAX, _FEATURE_MAX)
        summed = {of_pair: self._summed("code", of_pair, said) for of_pair in dict.fromkeys(cues)}
        codes = np.tanh(np.stack([summed[of_pair] for of_pair in cues]))
        alike = np.zeros((len(features), self._weights["product.weight"].shape[1]), np.float32)
        if vectors is not None:
            alike = vectors[0] * vectors[1] * _PRODUCT_SCALE
        product = np.tanh(self._linear("product", alike))
        affinity = np.log((prior_kinds @ kinds)[:, None] + 1e-3)
        hints = np.broadcast_to(hint * _HINT_SCALE, (len(features), len(hint)))
        of_kinds = np.broadcast_to(kinds, prior_kinds.shape)
        row = np.concatenate([scaled, hints, codes, product, of_kinds, prior_kinds, affinity], axis=1)
        activations = np.maximum(self._linear("hidden", row), 0)
        most = np.broadcast_to(activations.max(axis=0), activations.shape)
        return _softmax(self._linear("output", np.concatenate([activations, most], axis=1)))

    def _linear(self, name: str, inputs: Floats) -> Floats:
        return inputs @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]


def _softmax(scores: Floats) -> Floats:
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


@cache
def network() -> _Network:
    """Return the network of the package."""
    return _Network(files(__package__).joinpath("comparison.npz").read_bytes())


def change_probability(text: str) -> float:
    """Return the probability that the words of a text change anything that was said before."""
    model = network()
    return model.change(model.places(cues(Read(text).words, model.lexicon)))


def reader_hint(read: Sequence[ReadClause]) -> Floats:
    """Return what the statement reader thinks of a sentence: the greatest probability of its clauses for each class."""
    rows = [[part.probabilities[head][name] for head, name in HINTED] for part in read]
    return np.array(rows, np.float32).max(axis=0) if rows else np.zeros(len(HINTED), np.float32)


def compare(
    sentence: str,
    speaker: str,
    before: Sequence[PriorStatement],
    vectors: Vectors | None = None,
    read: Sequence[ReadClause] | None = None,
    read_pairs: ReadPairs | None = None,
) -> list[tuple[PriorStatement, Floats]]:
    """Return the statements that a sentence may change, oldest first, each with the probabilities of `RELATIONS`.

    Parameters:
        sentence: as it is said.
        before: older statements, oldest first; those of other speakers are left out.
        vectors: None: the words decide alone.
        read: the clauses of the sentence; None: they are read by their words.
        read_pairs: returns the vectors of statements that are read together with the sentence; None: the network
            decides alone.
    """
    own = [prior for prior in before[-_STATEMENTS_MAX:] if prior.speaker == speaker]
    if not own:
        return []
    said = Read(sentence)
    model = network()
    words = model.places(cues(said.words, model.lexicon))
    if not said.words or (model.change(words) < _CHANGE_MIN and not _names_one(said, own)):
        return []
    own = [*{(prior.subject, prior.predicate, prior.object): prior for prior in own}.values()]
    near = None if vectors is None else vectors([sentence, *map(embedded_text, own)])
    places = _candidates(said, own, near, model.kinds(words, None if near is None else near[0]))
    own = [own[place] for place in places]
    pair = None if near is None else (near[0], near[1:][places])
    reads = [read_of(prior_text(prior)) for prior in own]
    cosines = np.zeros(len(own), np.float32) if pair is None else pair[1] @ pair[0]
    features, marked = pair_features(said, reads, speaker, None if pair is None else cosines.tolist(), model.lexicon)
    prior_kinds = np.stack(
        [
            _kinds_of(model, prior.kind, read, None if pair is None else pair[1][row])
            for row, (prior, read) in enumerate(zip(own, reads, strict=True))
        ]
    )
    hint = reader_hint(read_clauses(sentence, to_assistant=True) if read is None else read)
    kinds = model.kinds(words, None if pair is None else pair[0])
    of_pairs = np.array(features, np.float32)
    probabilities = model.relations(
        of_pairs, [tuple(model.places(of_pair)) for of_pair in marked], hint, pair, kinds, prior_kinds
    )
    if read_pairs is not None:
        by_encoder = _read_by_encoder(probabilities, sentence, own, read_pairs)
        changed = probabilities[:, CHANGES].sum(axis=1), by_encoder[:, CHANGES].sum(axis=1)
        inputs = odds_inputs(*changed, np.concatenate([hint, kinds]), of_pairs, cosines)
        join_readings(probabilities, by_encoder, own, inputs)
    return [*zip(own, probabilities, strict=True)]


def _read_by_encoder(
    probabilities: Floats, sentence: str, own: Sequence[PriorStatement], read_pairs: ReadPairs
) -> Floats:
    """Return the probabilities of the encoder of the pairs that may be a change, shape (n, 5); NaN of the others."""
    read = np.full_like(probabilities, np.nan)
    places: list[int] = np.flatnonzero(probabilities[:, CHANGES].sum(axis=1) >= READ_MIN).tolist()
    if places:
        weight, bias = _pair_weights()
        vectors = read_pairs([(embedded_text(own[place]), sentence) for place in places])
        read[places] = _softmax(vectors @ weight.T + bias)
    return read


def join_readings(probabilities: Floats, by_encoder: Floats, own: Sequence[PriorStatement], inputs: Floats) -> None:
    """Replace the probabilities of the network, of pairs that the encoder read, by those of both readings together.

    Their geometric mean says which relation it is; whether it is a change at all, of statements, `change_odds.py`.

    Parameters:
        by_encoder: as `_read_by_encoder` returns them.
        inputs: as `odds_inputs` returns them.
    """
    is_read = ~np.isnan(by_encoder[:, 0])
    both = np.log(probabilities[is_read] + _LEAST) + np.log(by_encoder[is_read] + _LEAST)
    probabilities[is_read] = _softmax(np.asarray(both / 2, np.float32))
    is_weighed = is_read & np.array([not prior.is_preference for prior in own])
    change = change_probabilities(inputs[is_weighed])[:, None]
    rows = probabilities[is_weighed]
    share = rows[:, CHANGES].sum(axis=1, keepdims=True)
    rows[:, CHANGES] *= change / share
    rows[:, : CHANGES.start] *= (1 - change) / (1 - share)
    probabilities[is_weighed] = rows


@cache
def _pair_weights() -> tuple[Floats, Floats]:
    """Return the weights of the vectors of a pair, shape (relations, dimensions), and the bias."""
    arrays: dict[str, Any] = dict(np.load(BytesIO(files(__package__).joinpath("pair_weights.npz").read_bytes())))
    return arrays["weight"].astype(np.float32), arrays["bias"].astype(np.float32)


@lru_cache(maxsize=1_024)
def embedded_text(prior: PriorStatement) -> str:
    """Return the sentence of a statement that has a vector."""
    if prior.text or prior.is_preference:
        return prior.text or prior.object
    return fact_line(prior.subject, prior.predicate, prior.object)


def _names_one(said: Read, own: Sequence[PriorStatement]) -> bool:
    """Return whether a sentence has several words of one of the latest statements, such as those of a task."""
    return any(len(said.stems & stems_of(prior_text(prior))) >= _NAMED_MIN for prior in own[-_NAMED_STATEMENTS_MAX:])


def _candidates(said: Read, own: Sequence[PriorStatement], near: Floats | None, kinds: Floats) -> list[int]:
    """Return the places of the statements that a sentence is compared with, in their order.

    They share words with it, are near, of the kind that it changes, or the latest ones.
    """
    scores = np.array([len(said.stems & stems_of(prior_text(prior))) for prior in own], np.float32)
    scores += [float(kinds[KINDS.index(prior.kind)]) if prior.kind in KINDS else 0.0 for prior in own]
    scores += 0.5 / np.arange(len(own), 0, -1)
    if near is not None:
        scores += 2 * (near[1:] @ near[0])
    return sorted(int(place) for place in np.argsort(-scores, kind="stable")[:_COMPARED_MAX])


def _kinds_of(model: _Network, kind: str | None, read: Read, vector: Floats | None) -> Floats:
    """Return the probabilities of the kinds of a statement."""
    if kind not in KINDS:
        return model.kinds(model.places(cues(read.words, model.lexicon)), vector)
    return _known_kinds()[KINDS.index(kind)]


@cache
def _known_kinds() -> Floats:
    """Return the probabilities of the kinds of a statement whose kind is known, one row for each kind."""
    sure = np.full((len(KINDS), len(KINDS)), (1 - _KNOWN_KIND) / len(KINDS), np.float32)
    np.fill_diagonal(sure, _KNOWN_KIND)
    return sure
