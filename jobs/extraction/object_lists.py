"""Object lists: splits `tea and coffee` into its elements, and drops elements that name nothing by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from recollect.jobs.extraction.phrases import trimmed

Item = dict[str, Any]

#: The separators of a list.
_LIST = re.compile(r",\s++(?:and\s++)?|(?<!\s)\s++(?:and|or)\s++")
#: Predicates and values whose objects may be lists.
_LIST_PREDICATES = frozenset(("likes", "dislikes", "speaks", "plays", "allergic to", "owns"))
#: A name after what it names.
_APPOSITION = re.compile(r"[A-ZÀ-Þ][\w'-]{1,40}(?: [A-ZÀ-Þ][\w'-]{1,40})?")
#: A comma, but not those of `April 1, 2024, for the first sprint`.
_COMMA = re.compile(r"(?<!\d), |(?<=\d), (?!\d{4}\b)(?<!\b\d{4}, )|(?<=\b\d{4}), (?!for\b|to\b|with\b|at\b|in\b)")
#: Words of an element of a list; a longer one is a clause.
_ELEMENT_WORDS_MAX = 3
#: First words of an object that may precede a word of `_EMPTY`: `a thing`.
_ARTICLES = frozenset(("a", "an", "the", "my", "our"))
#: A verb after a relative clause: `the job that I chose is in Rome`.
_VERB_OF_OTHER = re.compile(r"(?:is|are|was|were|has|had|will|would|can|could)\b")
#: A thing that an earlier sentence tells of: `we settled on the budget`.
_KNOWN_THING = re.compile(r"the [a-z-]+$")
#: Pronouns that refer to an earlier sentence.
_POINTING = re.compile(r"(?:them|this|that|it|these|those|him|her)\b")
#: Words that cannot end a complete phrase.
_DANGLING = frozenset("to about of with for and the a an that in on at my by from fully or".split())
#: Objects of passing interest: they refer to the present situation or to things of other people.
_PASSING = re.compile(
    r"^(?:your|this|that|these|those|his|her|their|its|the (?:thought|sound|look|way|idea|fact|part|feeling|vibe|view))\b"
    r"|\b(?:them|it|this|that|here|I|you|your)\b",
)
#: Words that name nothing by themselves.
_EMPTY = frozenset(
    "it that this them him her you me us one ones those these so too there here everything something anything nothing how "
    "what when where why who all both much lot way idea sound look feel thing things stuff the a an my your his their its "
    "our to seeing hearing having being getting".split()
)
#: Characters of an object; the event catalogue allows slightly more for a name.
_CHARS_MAX = 180


def split_lists(kind: str, item: Item) -> Iterator[Item]:
    """Yield one fact or preference for each element of a list such as `tea and coffee`, without elements that name nothing."""
    is_preference = kind == "preferences"
    field = "key" if is_preference else "object"
    predicate = item["value"].split()[-1] if is_preference else item["predicate"]
    whole: str = item[field]
    for part in _elements(whole, is_list=predicate in _LIST_PREDICATES, is_state=_is_state(kind, item)):
        quotes = "\"'" if part.count('"') % 2 else ""
        clean = _without_dangling(part.strip(" .,;:!-" + quotes)).strip(" -")
        words = clean.casefold().split()
        names_something = words and (words[0] not in _EMPTY or (len(words) > 1 and words[0] in _ARTICLES | {"to"}))
        if is_preference and _PASSING.search(clean):
            continue
        if predicate == "decided" and any(
            pattern.match(clean) for pattern in (_POINTING, _VERB_OF_OTHER, _KNOWN_THING)
        ):
            continue
        if (names_something or (kind == "facts" and len(clean.split()) > 2)) and len(clean) <= _CHARS_MAX:
            yield item | {field: clean}


def _is_state(kind: str, item: Item) -> bool:
    """Return whether an item states what a person is, has or likes, and not an event."""
    return kind == "preferences" or (item.get("type", "fact") == "fact")


def _elements(phrase: str, *, is_list: bool, is_state: bool) -> list[str]:
    """Return the elements of a phrase: of a list all, of a state what stands before the next clause.

    A comma ends a state, `allergic to eggs, we found out in Rome`, unless it stands in a list.
    """
    parts = [part.strip() for part in _LIST.split(phrase)]
    short = [*takewhile(lambda part: len(part.split()) <= _ELEMENT_WORDS_MAX, parts)]
    first, rest = _at_comma(phrase)
    if is_list:
        return [trimmed(part) for part in short or [first]]
    is_enumeration = len(short) == len(parts) and " and " in phrase
    # `a new colleague, Gerlof` goes on with the name, and `simple, short words` with the noun.
    goes_on = _APPOSITION.fullmatch(rest) is not None or (" " not in first and len(rest.split()) <= _ELEMENT_WORDS_MAX)
    is_whole = is_enumeration or not is_state or goes_on
    return [trimmed(phrase if is_whole else first)]


def _at_comma(phrase: str) -> tuple[str, str]:
    """Return the parts of a phrase before and after its first comma; the year of a date and what the date is for stay."""
    comma = _COMMA.search(phrase)
    return (phrase, "") if comma is None else (phrase[: comma.start()], phrase[comma.end() :])


def _without_dangling(phrase: str) -> str:
    """Return `phrase` without the incomplete words at its end; the first word always stays."""
    words = phrase.split()
    while len(words) > 1 and words[-1] in _DANGLING:
        words.pop()
    return " ".join(words)
