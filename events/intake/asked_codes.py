"""Asked codes: the probability that a question asks for a code in a message: `gate?`, `how do i get in at mums`.

A logit over the words of the question, and over those that it shares with the message; `ops/train/codes` learns it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import NamedTuple

from recollect.events.intake.code_numbers import probability
from recollect.events.intake.stated_secrets import SECRET_NAME
from recollect.events.late_pattern import late_pattern

#: The probability from which a code is shown to a question: see the model card.
ASKED_MIN = 0.7
_NAME = late_pattern(rf"{SECRET_NAME.pattern}|\b(?:numbers?|digits|nummer|n[uú]mero|num[eé]ro|combo)\b", re.IGNORECASE)
_WORD = late_pattern(r"[^\W_]+(?:['’][^\W\d_]+)?|[?]")
#: Words of a question that are read; a longer text is a message.
_QUERY_WORDS_MAX = 30
#: The end of a clause.
_CLAUSE_END = late_pattern(r"[.,;:!?\n](?!\d)|\s(?:and|but|und|y|et|e)\s|\s-\s")
#: Characters on each side of a code that are read.
_AROUND_CHARS = 300
#: Words on each side of a code that say what it belongs to, and those next to it.
_NEAR_WORDS, _NEXT_WORDS = 14, 5
#: Letters that two words of one thing share, at least: `schlüssel`, `schlüsselkasten`.
_STEM_CHARS = 5
_COUNT_MAX = 3


def asked_probability(query: str, text: str, start: int, end: int) -> float:
    """Return the probability that a query asks for the code of a text from `start` to `end`."""
    table = asked_table()
    inputs = set(inputs_of(query, text, start, end, table.common))
    return probability(inputs, table.weights) if inputs else 0.0


class AskedTable(NamedTuple):
    """What the training found."""

    #: Words that many questions have.
    common: frozenset[str]
    weights: dict[str, float]


@cache
def asked_table() -> AskedTable:
    """Return the weights, which are read once."""
    table = json.loads(files(__package__).joinpath("asked_code_weights.json").read_text(encoding="utf-8"))
    return AskedTable(frozenset(table["common"]), table["weights"])


def inputs_of(query: str, text: str, start: int, end: int, common: Collection[str]) -> Iterator[str]:
    """Yield the names of the inputs of a question and a code; none of a long one, or one that names nothing of it.

    Parameters:
        common: words that do not identify what the code belongs to.
    """
    query_words = words_of(query)
    if not query_words or len(query_words) > _QUERY_WORDS_MAX:
        return
    text_before, text_after = text[max(0, start - _AROUND_CHARS) : start], text[end : end + _AROUND_CHARS]
    before, after = words_of(text_before)[::-1], words_of(text_after)
    previous, own = _clauses(text_before, text_after)
    near = {*before[:_NEAR_WORDS], *after[:_NEAR_WORDS]}
    things = [word for word in query_words if word not in common and word != "?" and _NAME.fullmatch(word) is None]
    shared = [word for word in things if _has(near, word)]
    counts = {
        "shared": len(shared),
        "next": sum(_has({*before[:_NEXT_WORDS], *after[:_NEXT_WORDS]}, word) for word in shared),
        "clause": sum(_has(own, word) for word in shared),
        "previous": sum(_has(previous, word) for word in shared),
        "missing": sum(not _has({*before, *after}, word) for word in things),
    }
    if counts["missing"] == len(things):
        return
    yield "any"
    yield from (f"q={word}" for word in query_words)
    yield from (f"q={first} {second}" for first, second in pairwise(("^", *query_words, "$")))
    named = "named" if _NAME.search(query) else "unnamed"
    for name, count in counts.items():
        yield f"{name}={min(count, _COUNT_MAX)}"
        yield f"{name}={min(count, _COUNT_MAX)},{named}"
    yield f"shared={min(counts['shared'], 2)},missing={min(counts['missing'], 2)},{named}"
    yield f"clause={min(counts['clause'], 1)},previous={min(counts['previous'], 1)},{named}"


def _clauses(before: str, after: str) -> tuple[set[str], set[str]]:
    """Return the words of the clause before that of a code, and those of its own."""
    *earlier, first = _CLAUSE_END.split(before)
    previous = next((words for part in reversed(earlier) if (words := words_of(part))), list[str]())
    return {*previous}, {*words_of(first), *words_of(_CLAUSE_END.split(after, maxsplit=1)[0])}


def words_of(text: str) -> list[str]:
    """Return the words of a text and its question marks, in lower case."""
    return [match.group().replace("’", "'").removesuffix("'s") for match in _WORD.finditer(text.casefold())]


def _has(words: set[str], wanted: str) -> bool:
    """Return whether words have one, or one that begins or ends like it."""
    stem = wanted.rstrip("s")
    return wanted in words or (
        len(stem) >= _STEM_CHARS
        and any(
            word.startswith(stem) or word.endswith(stem) or (len(word) >= _STEM_CHARS and stem.startswith(word))
            for word in words
        )
    )
