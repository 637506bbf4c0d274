"""Entity names: a trained model that finds the names in a sentence and the types of what they name.

Each word that may be a name gets the probability of each type by a multinomial logit of its form, of its neighbours, of
the lists of first names, places and common words, and of the name before it. `ops/train/entities` learns the weights from
labelled sentences and prints how well it reads those held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction import vocabulary
from recollect.jobs.extraction.name_lexicon import lists_of

#: The classes of a word, in the order of the columns of the weights; `none`: no part of a name.
TYPES = ("none", "person", "location", "organization", "animal", "tool", "work", "event", "other")
#: Rows of the weights.
BUCKETS = 1 << 14
_WEIGHTS = "entity_weights.npz"
#: Words of a sentence that are read; a longer one is a list or code.
_TOKENS_MAX = 120
#: A word, with the signs that names have inside; a title with its full stop; a French article apart; or a sign.
_TOKEN = late_pattern(
    r"\b(?:[DdMm]rs?|[Mm]s|[Pp]rof|[Ss]t)\.(?=\s)|(?:[ldjmnstcLDJMNSTC]|[Qq]u)['’](?=[^\W\d_]{2})|[^\W_](?:\w|[&-](?=[^\W_])|['’.](?=[^\W_]{2}))*|[^\w\s]"
)
#: Words between the words of a name.
_CONNECTORS = frozenset("of the de da do del di la le van von der den bin al".split())
#: Probability that a word is part of a name.
_NAME_MIN = 0.5
#: Share of the best type in it, from which on the name is kept: of 337 held-out names 21 % are lost, and of the types of
#: the others 95 % are right in place of 81 %.
_TYPE_MIN = 0.78
#: Words of a name on each side of a word that are read with it.
_RUN_MAX = 4
_NEIGHBOURS = {
    **dict.fromkeys((*vocabulary.RELATIONS, *vocabulary.FOREIGN_RELATIONS, *vocabulary.SHORT_RELATIONS), "+relation"),
    **dict.fromkeys((*vocabulary.PETS, *vocabulary.FOREIGN_PETS), "+pet"),
}


class RecognisedEntity(NamedTuple):
    """A name in a sentence, with the type of what it names."""

    name: str
    #: An entity type of the catalogue; `other` without evidence.
    type: str
    #: 0 to 1.
    confidence: float


class NameToken(NamedTuple):
    """A word or a sign of a sentence."""

    text: str
    start: int
    #: In lower case.
    word: str
    #: The lists that have it, such as `n` and `w`.
    lists: str


class Words:
    """The words of a sentence, as the model reads them."""

    def __init__(self, text: str, *, before: str = "", language: str = "") -> None:
        """Read a sentence.

        Parameters:
            before: the sentence before it.
            language: of the message, such as `de`; empty: English or unknown.
        """
        matches = list(_TOKEN.finditer(text))[:_TOKENS_MAX]
        self.tokens = [NameToken(it[0], it.start(), it[0].lower(), lists_of(it[0].lower())) for it in matches]
        said = [it.text for it in self.tokens if it.text[0].isalpha()]
        #: How the sentence is typed: `lower`, `upper` or `mixed`.
        self.case = "upper" if "".join(said).isupper() and len(said) > 2 else "mixed"
        if said and said[0][0].islower() and not any(word[0].isupper() for word in said if word != "I"):
            self.case = "lower"
        self.language = language
        spoken = [it.word for it in self.tokens] + [it.lower() for it in _TOKEN.findall(before[-200:])]
        self.has_pet = any(_NEIGHBOURS.get(word.removesuffix("s")) == "+pet" for word in spoken)

    def candidates(self) -> list[int]:
        """Return the numbers of the words that may be part of a name."""
        return [number for number, it in enumerate(self.tokens) if self._is_candidate(it)]

    def _is_candidate(self, it: NameToken) -> bool:
        """Return whether a word may be part of a name; among capitals, one in lower case is mostly no name."""
        if not it.text[0].isalnum() or it.text[-1] == "." or not any(letter.isalpha() for letter in it.text):
            # A sign, a title or a number.
            return False
        if "-" in it.text and "w" in lists_of(it.text.rpartition("-")[2]):
            # `Porto-based`
            return False
        if it.text[0].isupper():
            return True
        if self.case == "mixed":
            return it.lists == "n"
        return "n" in it.lists or "p" in it.lists or (not it.lists and len(it.text) > 2)

    def features(self, number: int, type_before: str, listed: str) -> list[int]:
        """Return the rows of the weights that the features of a word select.

        Parameters:
            type_before: the type of the word before it.
            listed: the type of the last name, with the words since then.
        """
        names = self._names(number, type_before, listed)
        return list({crc32(name.encode("utf-8", "replace")) % BUCKETS for name in names})

    def _names(self, number: int, type_before: str, listed: str) -> Iterator[str]:
        """Yield the features of a word."""
        it, shape = self.tokens[number], self._shape(number)
        form = f"{it.lists}.{shape}"
        p2, p1, n1, n2 = (self._word(number + step) for step in (-2, -1, 1, 2))
        yield "any"
        yield f"shape {shape}"
        yield f"lists {it.lists}"
        yield f"known {form}"
        yield f"language {self.language} {form}"
        yield f"language {self.language} {p1} {shape}"
        yield f"word {it.word}"
        yield f"ends {it.word[-3:]} {shape}"
        yield f"ends {it.word[-2:]}"
        for name, words in (("p", p1), ("n", n1), ("pp", f"{p2} {p1}"), ("nn", f"{n1} {n2}"), ("pn", f"{p1} {n1}")):
            yield f"{name} {words}"
            yield f"{name} {words} {it.lists}"
        yield f"p2 {p2}"
        yield f"n2 {n2}"
        yield f"p3 {self._word(number - 3)} {p2}"
        yield f"pc {self._class(number - 1)} {shape}"
        yield f"pc2 {self._class(number - 2)} {p1}"
        yield f"nc {self._class(number + 1)} {n1 if not n1.isalpha() else ''}"
        yield f"nc2 {n1} {self._class(number + 2)} {self._class(number + 3)}"
        first, last = self._run(number)
        yield f"run {self._word(last)} {min(last - first, 3)}"
        yield f"run {self._lists(first)} {self._lists(last)} {min(last - first, 3)} {min(number - first, 2)}"
        yield f"run of {self._word(first)} {first == last}"
        yield f"before {type_before}"
        yield f"before {type_before} {form}"
        yield f"listed {listed}"
        yield f"pet {self.has_pet} {it.lists}"
        for step in (-1, 1):
            yield f"near {step} {self._shape(number + step)} {shape}"
            yield f"near {step} {self._lists(number + step)} {form}"

    def _run(self, number: int) -> tuple[int, int]:
        """Return the first and the last of the words with capitals around a word, which are mostly one name."""
        first = last = number
        if self.case == "mixed" and self.tokens[number].text[0].isupper():
            while first > 0 and self.tokens[first - 1].text[0].isupper() and number - first < _RUN_MAX:
                first -= 1
            while last + 1 < len(self.tokens) and self.tokens[last + 1].text[0].isupper() and last - number < _RUN_MAX:
                last += 1
        return first, last

    def _shape(self, number: int) -> str:
        """Return the form of a word: how the sentence is typed, capitals, and whether the word begins the sentence."""
        if not 0 <= number < len(self.tokens):
            return "edge"
        text = self.tokens[number].text
        if not text[0].isalnum():
            return "sign"
        kind = "x" if text[0].islower() else "X" if text.isupper() else "Xx" if text[1:].islower() else "XxX"
        before = self._word(number - 1)
        opens = number == 0 or (before in '.!?:"“«(-…*' and len(before) == 1)
        return f"{self.case[0]}{kind}{'^' if opens else ''}{'0' if any(it.isdigit() for it in text) else ''}"

    def _word(self, number: int) -> str:
        """Return a word in lower case; a number as its length."""
        if not 0 <= number < len(self.tokens):
            return "<" if number < 0 else ">"
        word = self.tokens[number].word
        return f"#{len(word)}" if word.isdigit() else word

    def _class(self, number: int) -> str:
        """Return the role that a neighbour word means, such as a relative; otherwise the word."""
        word = self._word(number)
        return _NEIGHBOURS.get(word) or _NEIGHBOURS.get(word.removesuffix("s")) or word

    def _lists(self, number: int) -> str:
        """Return the lists that have a word."""
        return self.tokens[number].lists if 0 <= number < len(self.tokens) else "edge"


def listed_before(words: Words, number: int, last: tuple[int, str] | None) -> str:
    """Return the type of the last name and the words since then, for a name in a list: `Max and Bella`."""
    if last is None or number - last[0] > 3:
        return "no"
    between = " ".join(it.word for it in words.tokens[last[0] + 1 : number])
    return f"{last[1]} {between}"


@cache
def entity_weights() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the weights of the features and the bias of each type."""
    with np.load(BytesIO(files(__package__).joinpath(_WEIGHTS).read_bytes())) as arrays:
        return arrays["weights"].astype(np.float32) * arrays["scale"].astype(np.float32), arrays["bias"].astype(
            np.float32
        )


def named_entities(text: str, *, before: str = "", language: str = "") -> Iterator[RecognisedEntity]:
    """Yield the names in a sentence, in order; see `Words` for the parameters."""
    words = Words(text, before=before, language=language)
    candidates = words.candidates()
    if not candidates:
        return
    read = _read(words, candidates)
    for numbers in _joined(words, read):
        probabilities = np.mean([read[number] for number in numbers if number in read], axis=0)
        best = int(probabilities[1:].argmax()) + 1
        if probabilities[best] >= _TYPE_MIN * (1 - probabilities[0]):
            first, last = words.tokens[numbers[0]], words.tokens[numbers[-1]]
            name = text[first.start : last.start + len(last.text)]
            yield RecognisedEntity(
                _shown(name, words.case), TYPES[best], round(min(float(probabilities[best]), 0.95), 2)
            )


def _read(words: Words, candidates: Sequence[int]) -> dict[int, NDArray[np.float32]]:
    """Return the probabilities of the words that are part of a name, by their numbers."""
    weights, bias = entity_weights()
    read: dict[int, NDArray[np.float32]] = {}
    last: tuple[int, str] | None = None
    for number in candidates:
        type_before = last[1] if last is not None and last[0] == number - 1 else "none"
        rows = words.features(number, type_before, listed_before(words, number, last))
        scores = np.exp(weights[rows].sum(axis=0) + bias)
        probabilities = scores / scores.sum()
        if 1 - probabilities[0] >= _NAME_MIN:
            read[number] = probabilities
            last = number, TYPES[int(probabilities[1:].argmax()) + 1]
    return read


def _joined(words: Words, read: dict[int, NDArray[np.float32]]) -> Iterator[list[int]]:
    """Yield the numbers of the words of each name: neighbours of one type, with small words between capitals."""
    numbers: list[int] = []
    for number in read:
        between = words.tokens[numbers[-1] + 1 : number] if numbers else []
        if numbers and _is_one_name(words, numbers, number, read, between):
            numbers.extend(range(numbers[-1] + 1, number + 1))
            continue
        if numbers:
            yield numbers
        numbers = [number]
    if numbers:
        yield numbers


def _is_one_name(
    words: Words,
    numbers: Sequence[int],
    number: int,
    read: dict[int, NDArray[np.float32]],
    between: Sequence[NameToken],
) -> bool:
    """Return whether a word goes on with a name: neighbours with capitals, or of one type, or after a small word."""
    type, other = read[numbers[0]][1:].argmax() + 1, read[number][1:].argmax() + 1
    if not between:
        return words.case == "mixed" or type == other
    is_connected = len(between) <= 2 and all(it.text in _CONNECTORS for it in between)
    return is_connected and TYPES[type] != "person" and words.tokens[number].text[0].isupper()


def _shown(name: str, case: str) -> str:
    """Return a name with capitals when the sentence has none, or nothing else."""
    return name if case == "mixed" and name[0].isupper() else name.title()
