"""Change features: numbers that compare a new sentence with an older statement.

Words, their stems, numbers with units, days, the persons spoken of, and the place of the statement among the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.events.catalogue.knowledge_events import SAYS
from recollect.events.late_pattern import late_pattern
from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.stems import content_stems

#: Characters of a sentence that are compared.
CHARS_MAX = 400
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})
_SHORT = (
    (late_pattern(r"\bcan't\b"), "cannot"),
    (late_pattern(r"\bwon't\b"), "will not"),
    (late_pattern(r"n't\b"), " not"),
    (late_pattern(r"'m\b"), " am"),
    (late_pattern(r"'re\b"), " are"),
    (late_pattern(r"'ve\b"), " have"),
    (late_pattern(r"'ll\b"), " will"),
    (late_pattern(r"\b(he|she|it|that|there|here|what|who|where)'s\b"), r"\1 is"),
)
#: Chinese and Japanese signs are words of their own.
_SIGN = "\u3040-\u30ff\u3400-\u9fff"
_TOKEN = late_pattern(rf"\d+(?:[.,]\d+)*|[{_SIGN}]|[^\W\d_{_SIGN}]+|'s\b|[?!\"]")
_SIGNS = late_pattern(r"[\u30a0-\u30ff\u3400-\u9fff]{2,}")
_NUMBER = late_pattern(r"(?P<sign>[$€£]?)(?P<number>\d{1,9}(?:[.,:]\d{1,3}){0,3})\s?(?P<unit>%|[$€£]|[^\W\d_]{1,12})?")
_COUNTS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty".split()
    )
    if number > 0
} | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90"}
#: Words after a number that are not units.
_NO_UNIT = frozenset(
    "to from and a an per in on at now by last this since because for so but of with as am pm o the is was if or not".split()
)
_DAYS = {
    name: number
    for number, names in enumerate(
        (
            "monday mondays montag montags lunes lundi",
            "tuesday tuesdays dienstag dienstags martes mardi",
            "wednesday wednesdays mittwoch mittwochs miércoles mercredi",
            "thursday thursdays donnerstag donnerstags jueves jeudi",
            "friday fridays freitag freitags viernes vendredi",
            "saturday saturdays samstag samstags sábado sábados samedi",
            "sunday sundays sonntag sonntags domingo domingos dimanche",
        )
    )
    for name in names.split()
}
_MONTHS = {
    name: number
    for number, names in enumerate(
        "january|february|march|april|may|june|july|august|september|october|november|december".split("|"), 1
    )
    for name in names.split()
}
_FIRST = frozenset("i we my our me us mine ich wir mein meine yo mi nos je j nous mon ma on mes".split())
_THIRD = frozenset("he she they his her their him them er sie ihr ihre él ella il elle ils elles".split())
_THING = frozenset("it that this them one es das lo la le ça ce".split())
_OWNERS = frozenset("my our his her their your the".split())
_NEGATIONS = frozenset("not no never without none nicht kein keine keinen nie no ya nunca ne pas plus jamais".split())
_DETERMINERS = (
    frozenset("the this that der die das den el la le les los las".split()),
    frozenset("my our mein meine meinen mi mis ma mon mes".split()),
    frozenset("a an some another one ein eine einen un una une".split()),
    frozenset(("not", "no", "without", "kein", "keine", "keinen", "sin", "pas")),
    frozenset(("'s", "his", "her", "their", "your")),
)
_LIST = late_pattern(r",| and | & | und | y | et |、|と")
#: A longer word is a sentence of a language without spaces.
_WORD_CHARS_MAX = 25
#: A word with a capital letter that does not begin the text.
_CAPITAL = late_pattern(r"(?<!^)\b[^\W\d_a-z][^\W\d_]{1,30}")
#: The features of a determiner without a shared word.
_UNDETERMINED = [0.0] * (len(_DETERMINERS) + 1)
#: Prefix by which words of one family are alike: retire and retirement.
_FAMILY_CHARS = 5


def tokens(text: str) -> list[str]:
    """Return the words and signs of a text in lower case, with short forms in full and numbers as they are."""
    text = text[:CHARS_MAX].translate(_QUOTES).lower()
    if "'" in text:
        for pattern, full in _SHORT:
            text = pattern.sub(full, text)
    return _TOKEN.findall(text)


class Amount(NamedTuple):
    """A number with its unit, which may be empty."""

    number: str
    unit: str
    start: int
    end: int


def amounts(text: str) -> list[Amount]:
    """Return the numbers of a text, those in words aside."""
    values: list[Amount] = []
    for match in _NUMBER.finditer(text[:CHARS_MAX]):
        unit = (match["unit"] or "").lower()
        is_unit = unit not in _NO_UNIT and unit not in _MONTHS
        values.append(Amount(match["number"], match["sign"] or (unit if is_unit else ""), *match.span("number")))
    return values


def _counts(words: Sequence[str]) -> set[str]:
    return {_COUNTS[word] for word in words if word in _COUNTS}


# The same older statements are compared with each sentence.
@lru_cache(maxsize=2_048)
def stems_of(text: str) -> frozenset[str]:
    """Return the stems of the words of a text, and pairs of signs of a text without spaces."""
    stems = {word for word in content_stems(text[:CHARS_MAX]) if not word[0].isdigit() and len(word) < _WORD_CHARS_MAX}
    runs = _SIGNS.findall(text[:CHARS_MAX])
    pairs = {run[first : first + 2] for run in runs for first in range(len(run) - 1)}
    return frozenset((stems | pairs) - _DAYS.keys())


class Read:
    """A text with what is compared of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        #: As `tokens` returns them.
        self.words = tokens(text)
        self.stems = stems_of(text)
        self.amounts = amounts(text)
        #: The numbers, also those in words.
        self.counts = {amount.number for amount in self.amounts} | _counts(self.words)
        self.days = {_DAYS[word] for word in self.words if word in _DAYS}
        self.months = {_MONTHS[word] for word in self.words if word in _MONTHS}
        capitals = {word.casefold() for word in _CAPITAL.findall(text[:CHARS_MAX])}
        #: Stems of words with a capital letter that do not begin the text.
        self.names = stems_of(" ".join(capitals))
        self.is_list = _LIST.search(text) is not None
        #: Whether it is about who speaks, or does not begin with what is owned.
        self.is_of_speaker = not self.words or self.words[0] in _FIRST or self.words[0] not in ("my", "our")


@lru_cache(maxsize=1_024)
def read_of(text: str) -> Read:
    """Return what is compared of an older statement; it is compared with each sentence."""
    return Read(text)


def prior_text(prior: PriorStatement) -> str:
    """Return the words of an older statement, without the speaker who makes it."""
    if prior.is_preference or prior.predicate == SAYS:
        return prior.object
    subject = "" if prior.subject == prior.speaker else prior.subject
    return f"{subject} {prior.predicate} {prior.object}".strip()


def _family(stems: frozenset[str]) -> set[str]:
    return {word[:_FAMILY_CHARS] for word in stems if len(word) >= _FAMILY_CHARS}


#: Features at the end of a row that are 0 without vectors.
VECTOR_FEATURES = 4


def pair_features(
    sentence: Read, priors: Sequence[Read], speaker: str, cosines: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """Return the features of each older statement, oldest first, compared with a sentence, shape (n, features).

    Parameters:
        cosines: of the vectors of sentence and statements, shape (n,); None without vectors.
    """
    speaker_stems = stems_of(speaker)
    said = sentence.stems - speaker_stems
    own = [prior.stems - speaker_stems for prior in priors]
    shared = [said & stems for stems in own]
    shares = [len(common) / max(1, len(said)) for common in shared]
    family = _family(said)
    families = [len(family & _family(stems)) for stems in own]
    changed = [_changed_amount(sentence, prior) for prior in priors]
    frequency = Counter(stem for stems in own for stem in stems)
    near: list[float] = [0.0] * len(priors) if cosines is None else cosines.tolist()
    other_shares, other_nears, other_families = _best_others(shares), _best_others(near), _best_others(families)
    of_sentence = _persons(sentence)
    of_words = {has_common: _of_words(sentence, has_common=has_common) for has_common in (False, True)}
    determined, owned = [*_determined(sentence.words)], _owned_stems(sentence.words)
    rows: list[list[float]] = []
    for row, prior in enumerate(priors):
        common = shared[row]
        best_other, nearest_other = other_shares[row], other_nears[row]
        rows.append(
            [
                min(len(common), 3) / 3,
                len(common) / max(1, len(own[row])),
                shares[row],
                max((1 / frequency[stem] for stem in common), default=0.0),
                shares[row] - best_other,
                bool(common) and best_other == 0,
                not common,
                not any(shared),
                min(families[row], 2) / 2,
                families[row] - other_families[row],
                not sentence.names.isdisjoint(own[row]),
                bool(sentence.names - own[row] - speaker_stems),
                *_of_numbers(changed, row),
                *_of_values(sentence, prior),
                row == len(priors) - 1,
                1 / (len(priors) - row),
                min(len(priors), 30) / 30,
                prior.is_list,
                *of_words[bool(common)],
                owned is not None and owned.isdisjoint(own[row]),
                prior.is_of_speaker,
                *of_sentence,
                *(next((features for stems, features in determined if not stems.isdisjoint(common)), _UNDETERMINED)),
                cosines is not None,
                near[row],
                near[row] - nearest_other,
                near[row] > nearest_other,
            ]
        )
    return np.array(rows, np.float32)


def _best_others(values: Sequence[float]) -> list[float]:
    """Return for each row the greatest value of the others, at least 0 of none."""
    ordered = sorted(values, reverse=True)
    best, second = ordered[0], ordered[1] if len(ordered) > 1 else 0.0
    return [second if value == best else best for value in values]


def _persons(sentence: Read) -> list[bool]:
    """Return the grammatical person that the sentence mentions first."""
    words, head = sentence.words, sentence.words[:3]
    return [
        any(word in _FIRST for word in head),
        any(word in _THIRD for word in head),
        any(word in _THING for word in head),
        "you" in words,
        "my" in words[:2],
    ]


def _of_numbers(changed: Sequence[int], row: int) -> list[bool]:
    """Return whether the sentence gives a statement, and only this one, another amount or number."""
    is_amount, is_number = changed[row] == 2, changed[row] >= 1
    return [
        is_amount,
        is_number,
        is_amount and changed.count(2) == 1,
        is_number and sum(value >= 1 for value in changed) == 1,
    ]


def _of_values(sentence: Read, prior: Read) -> list[bool]:
    """Return which numbers, days and months both have."""
    return [
        bool(sentence.counts & prior.counts),
        bool(sentence.counts),
        bool(prior.counts),
        bool(sentence.days and prior.days) and not sentence.days & prior.days,
        bool(sentence.days & prior.days),
        bool(sentence.days or sentence.months),
        bool(prior.days or prior.months),
        bool(sentence.months and prior.months) and not sentence.months & prior.months,
    ]


def _of_words(sentence: Read, *, has_common: bool) -> list[float]:
    """Return pronouns that may mean a statement without shared words, signs of negation and question, and the length."""
    words = sentence.words
    return [
        not has_common and any(word in _THING or word in ("him", "her", "there") for word in words[1:]),
        not has_common and any(word in _THIRD for word in words),
        any(word in _NEGATIONS for word in words),
        "?" in words,
        '"' in words,
        min(len(words), 24) / 24,
    ]


def _changed_amount(sentence: Read, prior: Read) -> int:
    """Return 2 when both have an amount of one unit with other numbers, 1 for other numbers without units, 0 else."""
    best = 0
    for new in sentence.amounts:
        for old in prior.amounts:
            if new.number != old.number:
                best = max(best, 2 if new.unit and new.unit == old.unit else 1 if not new.unit or not old.unit else 0)
    if not best and sentence.counts and prior.counts and not sentence.counts & prior.counts:
        best = 1
    return best


def _owned_stems(words: Sequence[str]) -> frozenset[str] | None:
    """Return the stems of the first noun that a sentence says is owned: `my sister quit`; None without one."""
    for owner, noun in pairwise(words[:6]):
        if owner in _OWNERS or owner == "'s":
            return content_stems(noun)
    return None


def _determined(words: Sequence[str]) -> Iterator[tuple[frozenset[str], Sequence[float]]]:
    """Yield the stems of each word, with which determiner precedes it and where in the sentence it is."""
    for place, word in enumerate(words):
        if stems := content_stems(word):
            before = words[max(0, place - 2) : place]
            yield stems, [*(any(word in group for word in before) for group in _DETERMINERS), (place + 1) / len(words)]
