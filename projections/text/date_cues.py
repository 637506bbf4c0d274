"""Date cues: the words and signs around an expression that say what time it means, as names of inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.date_patterns import DateReading
from recollect.projections.text.date_words import DATE_WORDS, UNSPACED
from recollect.projections.text.folding import fold

#: Characters before and after an expression that are read; a cue further away belongs to another clause.
_BEFORE_CHARS = 120
_AFTER_CHARS = 100
_TOKEN = late_pattern(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+|[^\w\s]|\n")
_SENTENCE_END = late_pattern(r"[.!?;。！？](?!\w)|\n")
_QUESTION = late_pattern(r"\A[^.!;\n。！]{0,120}[?？]")
_TIME = late_pattern(
    r"\A,?\s?(?:(?:at|@|um|a las|à|alle|om|в)\s)?[012]?\d(?::\d\d|\s?[ap]\.?m\b|\s?uhr|h\b)|\A,?\s?(?:at|@|um) \d", re.I
)
#: English words that end like verbs in the past, or like verbs with `-ing`.
_NOT_PAST = ("eed", "bed", "hundred", "sacred", "naked", "wicked")
_NOT_ING = ("thing", "morning", "evening", "wedding", "meeting", "being", "spring", "during")
#: Classes of cues about time; the nearest ones are separate inputs.
_TENSES = frozenset(("past", "have", "either", "future", "arranged", "moved", "progressive", "present", "ing", "back"))
#: Words before and after an expression that are inputs themselves; other words are one input.
_NEIGHBOURS = frozenset(
    "on by until till since from to for in at of before after during through around this next last every each the a an "
    "my our your and or but is was are were it it's i we he she they you if when that not no so as with about due come "
    "comes early late mid ' - – ( ) , : * \" | / . ! ? ; \n".split(" ")
)


class Cues(NamedTuple):
    """The cue classes of a language."""

    #: The classes of a word, or of two words with a space between.
    words: dict[str, tuple[str, ...]]
    past: re.Pattern[str] | None
    #: Of languages without spaces: the signs of each class.
    signs: tuple[tuple[str, re.Pattern[str]], ...]


@cache
def _compiled(language: str) -> Cues:
    """Return the cue classes of a language."""
    table = DATE_WORDS[language].cues
    words: dict[str, tuple[str, ...]] = {}
    for name, listed in table.items():
        if not name.endswith("_form"):
            for word in listed.split():
                key = fold(word.replace("_", " "))
                words[key] = (*words.get(key, ()), name)
    signs = tuple(
        (name.removesuffix("_form"), re.compile(form)) for name, form in table.items() if name.endswith("_form")
    )
    past = re.compile(table["past_form"]) if "past_form" in table and language not in UNSPACED else None
    return Cues(words, past, signs if language in UNSPACED else ())


def cues_of(text: str, reading: DateReading) -> list[str]:
    """Return the cues of an expression, as names."""
    start, end, kind = reading.start, reading.end, reading.kind
    language = reading.expression.words.language
    before = text[max(0, start - _BEFORE_CHARS) : start].replace("’", "'").lower()
    after = text[end : end + _AFTER_CHARS].replace("’", "'").lower()
    names = ["all", f"kind={kind}", "language=en" if language == "en" else "language=other"]
    names += _signs(text, reading, after)
    before = before[max((match.end() for match in _SENTENCE_END.finditer(before)), default=0) :]
    ending = _SENTENCE_END.search(after)
    after = after if ending is None else after[: ending.start()]
    if language in UNSPACED:
        classes = [
            name for name, pattern in _compiled(language).signs if pattern.search(before) or pattern.search(after)
        ]
        group = kind.split(".")[0]
        return [*names, *(f"{cue}={name}" for name in classes for cue in ("has", "near", f"{group},near"))]
    tokens_before, tokens_after = _TOKEN.findall(before), _TOKEN.findall(after)
    inside = _TOKEN.findall(reading.expression.match.group())
    group = kind.split(".")[0]
    has_preposition = inside[0] in _NEIGHBOURS if language == "en" else len(inside) > 1 and inside[0].isalpha()
    first = inside[0] if has_preposition else tokens_before[-1] if tokens_before else "start"
    names += _neighbours(language, group, first, tokens_before, tokens_after)
    names += _tenses(language, group, tokens_before, tokens_after)
    return names


def _signs(text: str, reading: DateReading, after: str) -> Iterator[str]:
    """Yield the cues of the expression itself and of the signs around it."""
    expression = reading.expression
    if reading.kind.startswith("weekday") and any(first == expression.today for first, _ in reading.candidates):
        yield "of_today"
    if _QUESTION.match(after):
        yield "question"
    if _TIME.match(after):
        yield "time"
    if expression.text("before"):
        yield "named"
    if len(reading.candidates) == 1:
        yield "single"
    if text[reading.start : reading.start + 1].isupper():
        yield "capital"
    if reading.start == 0:
        yield "begins"
    if reading.end == len(text):
        yield "ends"
    yield "long" if len(text) > 600 else "short"


def _neighbours(language: str, group: str, first: str, before: list[str], after: list[str]) -> Iterator[str]:
    """Yield the cues of the words next to an expression: its preposition, and what follows it."""
    preposition = _neighbour(language, first)
    following = _neighbour(language, after[0]) if after else "end"
    yield f"before={preposition}"
    yield f"{group},before={preposition}"
    yield f"after={following}"
    yield f"{group},after={following}"
    if len(before) > 1:
        yield f"second={_neighbour(language, before[-2] if before[-1] == first else before[-1])}"


def _neighbour(language: str, word: str) -> str:
    """Return a neighbouring word, or its class when it is not a word that is an input itself."""
    if language != "en" and (classes := _compiled(language).words.get(fold(word))):
        return {"since": "since", "each": "each", "arranged": "by"}.get(classes[0], classes[0])
    if word in _NEIGHBOURS or word in ("start", "end"):
        return word
    return "number" if word.isdigit() else "word"


def _tenses(language: str, group: str, before: list[str], after: list[str]) -> Iterator[str]:
    """Yield the classes of the sentence's words, and those nearest to the expression on both sides."""
    cues = _compiled(language)
    classes_before = [*_classes(cues, language, before)]
    classes_after = [*_classes(cues, language, after)]
    sentence = {name for _, name in (*classes_before, *classes_after)}
    yield from (f"has={name}" for name in sorted(sentence))
    tense_before = [(len(before) - place, name) for place, name in classes_before if name in _TENSES][::-1]
    tense_after = [(place + 1, name) for place, name in classes_after if name in _TENSES]
    last = tense_before[0][1] if tense_before else "none"
    following = tense_after[0][1] if tense_after else "none"
    yield f"last={last}"
    yield f"{group},last={last}"
    if tense_before:
        yield f"last={last},{'near' if tense_before[0][0] <= 4 else 'far'}"
    if len(tense_before) > 1:
        yield f"earlier={tense_before[1][1]}"
    yield f"following={following}"
    yield f"last={last},following={following}"
    nearest = min((*tense_before[:1], *tense_after[:1]), default=(0, "none"))
    yield f"near={nearest[1]}"
    yield f"{group},near={nearest[1]}"
    if tense_before and _is_broken(before[-tense_before[0][0] :]):
        yield f"broken={last}"


def _is_broken(tokens: list[str]) -> bool:
    """Return whether a clause ends between a cue and the expression."""
    return any(
        token in (",", "and", "but", ":", "–", "(", "so", "because", "und", "y", "et", "aber", "pero", "mais")
        for token in tokens
    )


def _classes(cues: Cues, language: str, tokens: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the classes of words, each with the position of its word."""
    english = language == "en"
    folded = tokens if english else [fold(token) for token in tokens]
    previous = ""
    for place, token in enumerate(folded):
        listed = cues.words.get(f"{previous} {token}") or cues.words.get(token)
        if listed:
            yield from ((place, name) for name in listed)
        elif english:
            if token.endswith("'ll"):
                yield place, "future"
            elif token.endswith("'ve"):
                yield place, "have"
            elif len(token) > 3 and token.endswith("ed") and not token.endswith(_NOT_PAST):
                yield place, "past"
            elif len(token) > 4 and token.endswith("ing") and not token.endswith(_NOT_ING):
                yield place, "progressive" if "be" in cues.words.get(previous, ()) else "ing"
            elif "pronoun" in cues.words.get(previous, ()) and token.isalpha():
                yield place, "present"
        elif cues.past is not None and cues.past.fullmatch(tokens[place]):
            yield place, "past"
        previous = token
