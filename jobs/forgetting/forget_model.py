"""Forget model: how likely a sentence asks to forget something, and which earlier sentences it names.

A logit of its words and an encoder, which reads it with the sentence before it, say whether a sentence asks. A small
network compares the request with each earlier sentence, by the vectors of their words and by its own table of words;
the same encoder reads both as one text. `ops/train/forgetting` learns the weights; its README has the figures.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from functools import cache
from importlib.resources import files
from io import BytesIO
from itertools import chain, groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.change_features import stems_of, tokens
from recollect.jobs.extraction.clause_features import BUCKETS, WORD_ROWS, run_hashes, word_features, words_of
from recollect.projections.embeddings.embedder import Embedder
from recollect.projections.embeddings.matrix_product import product
from recollect.projections.embeddings.reading_encoder import Embed, ReadPairs, pair_reader
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.projection_settings import FORGETTING_MODEL

Floats = NDArray[np.float32]
#: What a sentence asks: nothing, to forget what it names, or to forget what was said just before.
ASKS = ("nothing", "named", "previous")
#: Tokens of a sentence that are compared.
TOKENS_MAX = 32
#: Features of a pair next to its similarities.
FEATURES = 11
#: Features of the likeliest sentence.
MEANING = 5
#: A similarity of words is below this, a probability of one half at it.
SIMILARITY_BIAS = 0.6
#: Share of the table of words next to the vectors: the share of 0 finds more and forgets more wrongly.
_WORDS_SHARE = 0.3
#: Rows of the weights of asking.
ASK_ROWS = BUCKETS + WORD_ROWS
_START, _GAP, _END = words_of("<_>")
#: Neighbouring words of the frame of a sentence that are read together.
_FRAME_WORDS_MAX = 4
_FAMILY_CHARS = 5
_CODE_DIGITS = 4
_FIRST = late_pattern(
    r"\b(?:i|i'm|i've|i'd|me|my|mine|we|our|us|ich|mein\w{0,2}|wir|uns\w{0,2}|yo|mis?|je|j'\w{1,20}|mon|ma|mes|mio|mia|miei)\b|[我私僕俺]",
    re.IGNORECASE,
)
_CAPITAL = late_pattern(r"(?<=[\s(])[A-Z][\w-]{1,30}")
_WORD = late_pattern(r"\w{1,40}")


class Encoders(NamedTuple):
    """What reads the sentences of a request and of earlier messages."""

    #: By the default embedding model.
    embed: Embed
    #: The vectors of an earlier sentence and a request, read together.
    read_pairs: ReadPairs


def encoders_of(embedder: Embedder, seconds_max: float) -> Encoders | None:
    """Return what reads requests and messages; None where `embedder` is not the default model, or not ready.

    Parameters:
        seconds_max: seconds to wait until the models are loaded.
    """
    read_pairs = pair_reader(FORGETTING_MODEL, embedder, seconds_max)
    if read_pairs is None:
        return None

    def embed(sentences: Sequence[str]) -> list[TokenEmbedding]:
        return embedder.embed_tokens([Stretch(sentence) for sentence in sentences])

    return Encoders(embed, read_pairs)


class Model:
    """The trained weights."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._ask_words = arrays["ask_words"]
        self._scales = arrays["ask_scales"].astype(np.float32)
        #: Directions of the vectors that are compared, shape (dimensions, directions).
        self._basis = arrays["basis"].astype(np.float32)
        #: Stems of the ways to ask, which name nothing.
        self._asking = frozenset(bytes(arrays["asking"]).decode().split("\n"))
        self._frame = frozenset(bytes(arrays["frame"]).decode().split("\n"))
        vocabulary = bytes(arrays["vocabulary"]).decode().split("\n")
        self._places = {word: place + 1 for place, word in enumerate(vocabulary)}
        self._table = arrays["words.table"].astype(np.float32)
        self._layers = {name: _Layer(arrays, name) for name in ("pair", "asks")}
        self._networks = {name: _Network(arrays, name) for name in ("words", "vectors")}

    def asks(self, sentences: Sequence[str]) -> Floats:
        """Return the probabilities of `ASKS` for sentences, by their words, shape (sentences, classes)."""
        rows = [ask_rows(sentence, self._frame) for sentence in sentences]
        ends = np.cumsum([len(of_sentence) for of_sentence in rows])
        words = self._ask_words[np.fromiter(chain.from_iterable(rows), np.intp, ends[-1])]
        sums = np.add.reduceat(words, [0, *ends[:-1]], axis=0, dtype=np.int32)
        scores = sums * self._scales[0] + self._scales[1]
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True), np.float32)

    def asks_by_pair(self, pair: tuple[str, str], read_pairs: ReadPairs) -> float:
        """Return the log odds that a sentence asks; `pair`: the one before it in its message, or none, and itself."""
        return float(self._layers["asks"].log_odds(read_pairs([pair]))[0])

    def named(self, request: str, said: Sequence[str], encoders: Encoders) -> tuple[Floats, Floats]:
        """Return the log odds that a request names each of some sentences, and the similarities of their vectors."""
        features = pair_features(request, said, self._asking)
        rows = [self._table[word_rows(text, self._places)] for text in (request, *said)]
        by_words = self._networks["words"].scores(rows[0], rows[1:], features)
        embedded = encoders.embed([request, *said])
        rows = [product(np.concatenate((it.vector[None], it.tokens))[:TOKENS_MAX], self._basis) for it in embedded]
        by_vectors = self._networks["vectors"].scores(rows[0], rows[1:], features)
        near = np.array([it.vector @ embedded[0].vector for it in embedded[1:]], np.float32)
        compared = np.asarray(_WORDS_SHARE * by_words + (1 - _WORDS_SHARE) * by_vectors, np.float32)
        read = self._layers["pair"].log_odds(encoders.read_pairs([(text, request) for text in said]))
        # The mean of both log odds.
        return np.asarray((compared + read) / 2, np.float32), near

    def means(self, features: Sequence[float]) -> float:
        """Return the probability that a message asks to forget its likeliest sentence; `leader` has the features."""
        *weights, bias = self._arrays["means"].tolist()
        odds = sum(weight * feature for weight, feature in zip(weights, features, strict=True)) + bias
        return 1 / (1 + math.exp(-odds))

    def content(self, request: str) -> frozenset[str]:
        """Return the stems of a request that name something."""
        return stems_of(request) - self._asking


class _Layer:
    """What reads the vectors of pairs."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], name: str) -> None:
        self._weight, self._bias = (arrays[f"{name}.{it}"].astype(np.float32) for it in ("weight", "bias"))

    def log_odds(self, vectors: Floats) -> Floats:
        """Return the log odds of the second class."""
        scores = vectors @ self._weight.T + self._bias
        return np.asarray(scores[:, 1] - scores[:, 0], np.float32)


class _Network:
    """The comparison of a request with sentences."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], name: str) -> None:
        self._of = {
            key.removeprefix(f"{name}."): array.astype(np.float32)
            for key, array in arrays.items()
            if key.startswith(f"{name}.")
        }

    def scores(self, request: Floats, said: Sequence[Floats], features: Floats) -> Floats:
        """Return the log odds of each sentence; the first row of a text is of the whole."""
        projected, weights = self._projected(request, "asked")
        whole = _unit(weights @ projected)
        raw = _unit(weights @ request)
        similarities = np.zeros((len(said), 4), np.float32)
        for place, rows in enumerate(said):
            stated, shares = self._projected(rows, "stated")
            similarities[place] = (
                whole @ _unit(shares @ stated),
                weights @ (projected @ stated.T).max(1),
                raw @ _unit(shares @ rows),
                request[0] @ rows[0],
            )
        inputs = np.concatenate([features, 3 * similarities, 3 * gaps(similarities)], axis=1)
        hidden = np.tanh(inputs @ self._of["hidden.weight"].T + self._of["hidden.bias"])
        scores = (hidden @ self._of["output.weight"].T + self._of["output.bias"])[:, 0]
        scores = scores + 6 * (similarities[:, 0] + similarities[:, 1] - SIMILARITY_BIAS)
        return np.asarray(scores, np.float32)

    def _projected(self, rows: Floats, side: str) -> tuple[Floats, Floats]:
        """Return the projections of the words of a sentence, and their shares in its meaning."""
        scores = rows @ self._of[f"{side}.gate"]
        shares = np.exp(scores - scores.max())
        return _unit(rows @ self._of[f"{side}.projection"]), shares / shares.sum()


def ask_rows(sentence: str, frame: Container[str]) -> list[int]:
    """Return the rows of the weights of asking: of its words and of its frame.

    The frame has a gap in place of what the sentence speaks of, so that `forget _` is read with any thing.
    """
    words = words_of(sentence)
    framed = (word if word.form in frame or not word.form[0].isalnum() else _GAP for word in words)
    line = [_START, *(word for word, _ in groupby(framed)), _END]
    rows = [BUCKETS + value % WORD_ROWS for value in run_hashes("frame ", line, _FRAME_WORDS_MAX)]
    return word_features(words, to_assistant=True) + rows


def gaps(similarities: Floats) -> Floats:
    """Return how far each similarity is above the best one of the other sentences, by column."""
    if len(similarities) == 1:
        return similarities + 0.2
    best = np.sort(similarities, axis=0)[-2:]
    is_best = similarities == best[1]
    others = is_best * best[0] + ~is_best * best[1]
    return np.asarray(similarities - np.maximum(others, -0.2), np.float32)


def word_rows(text: str, places: Mapping[str, int]) -> list[int]:
    """Return the rows of the known words of a text, after the row of any text."""
    words = ("#" if word[0].isdigit() else word for word in tokens(text))
    return [0, *(places[word] for word in words if word in places)][:TOKENS_MAX]


def pair_features(request: str, said: Sequence[str], asking: frozenset[str]) -> Floats:
    """Return what a request and each sentence have in common, shape (sentences, FEATURES)."""
    named = stems_of(request) - asking
    stems = [stems_of(text) for text in said]
    frequency = Counter(stem for of_text in stems for stem in of_text)
    families = _families(named)
    capitals = {word.casefold() for word in _CAPITAL.findall(request)}
    rows = [
        (
            min(len(shared := named & of_text), 3) / 3,
            len(shared) / max(1, len(named)),
            max((1 / frequency[stem] for stem in shared), default=0.0),
            not families.isdisjoint(_families(of_text)),
            bool(capitals) and not capitals.isdisjoint(word.casefold() for word in _WORD.findall(text)),
            any(char.isdigit() for char in text),
            sum(char.isdigit() for char in text) >= _CODE_DIGITS,
            _FIRST.search(text) is not None,
            min(len(text), 120) / 120,
            _FIRST.search(request) is not None,
            bool(named),
        )
        for text, of_text in zip(said, stems, strict=True)
    ]
    return np.array(rows, np.float32).reshape(len(said), FEATURES)


def _families(stems: frozenset[str]) -> set[str]:
    return {stem[:_FAMILY_CHARS] for stem in stems if len(stem) >= _FAMILY_CHARS}


def _unit(rows: Floats) -> Floats:
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-9)


@cache
def model() -> Model:
    """Return the model of the package."""
    data = files(__package__).joinpath("forget_weights.npz").read_bytes()
    with np.load(BytesIO(data)) as arrays:
        return Model(dict(arrays))
