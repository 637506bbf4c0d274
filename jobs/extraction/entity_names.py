"""Entity names: finds the names in a sentence, without words that only begin a sentence, headings, titles and dates.

A library tells names from words (`name_lexicon`); the words around a name tell its type (`entity_context`). A word of the
language is a name only when its context says so: `my dog Biscuit`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.jobs.extraction import vocabulary
from recollect.jobs.extraction.entity_context import (
    TypeEvidence,
    evidence_around,
    evidence_within,
    has_type_word,
    introduces_pet,
    is_camel_case,
)
from recollect.jobs.extraction.name_lexicon import is_adjective, is_first_name, is_place, word_class
from recollect.projections.text.names import NOT_NAMES
from recollect.projections.text.sentences import opens_sentence

#: A word, with the signs that names have inside.
_WORD = re.compile(r"[^\W_][\w'&-]*+")
#: Words between the words of a name.
_CONNECTORS = frozenset("of the de da del di la le van von der bin al".split())
#: Words that are no part of a name at its ends.
_SKIPPED = (
    NOT_NAMES
    | {word.casefold() for word in (*vocabulary.NOT_NAMES, *vocabulary.LANGUAGES)}
    | frozenset("i tues weds thur thurs woah woohoo yay".split())
)
#: Titles before the name of a person.
_TITLES = frozenset("mr mrs ms miss dr prof professor sir madam".split())
#: Signs of code, tables, links and headings: such a line has no names that are worth knowing.
_NO_PROSE = re.compile(r"[{}<>=|\\#`\[\]]|\*\*|//|\w\([)'\"]|^\d+[.)] ")
#: Share of the words with capitals, without pronouns, titles and days: over it a line is a heading or a list.
_HEADING_SHARE = 0.65
_HEADING_WORDS_MIN = 3
_SHORT_HEADING_WORDS = 3
#: A line of so many words that ends with a colon is a heading.
_COLON_WORDS_MAX = 8
#: Words of a name.
_WORDS_MAX = 5
#: A title in quotes: `we watched "Little Women"`.
_QUOTED = re.compile(r'"([^"\n]{3,60})"')
_QUOTED_WORDS_MAX = 6
_WORKS = re.compile(
    r"\b(?:re-?)?(?:read|reading|books?|movies?|films?|songs?|albums?|series|shows?|watch\w*|novels?|listen\w*|poems?|plays?|play(?:ed|ing)|games?|author)\b"
)
_QUOTED_CONFIDENCE = 0.7
#: Names of one sentence: a list of more is no statement about them.
_NAMES_MAX = 12
#: Evidence from the lists of first names and of places, and from two words of which the first one is a first name.
_FIRST_NAME_CONFIDENCE = 0.6
_FULL_NAME_CONFIDENCE = 0.85
_PLACE_CONFIDENCE = 0.65
#: Evidence from which on a word of the language is a name, and from which on a type is named.
_WORD_NAME_MIN = 0.8
_OPENING_WORD_MIN = 0.9
_TYPE_MIN = 0.5
#: The share of the evidence of a name that the next one in a list has: `my dogs Max and Bella`.
_LIST_SHARE = 0.9


class NamedEntity(NamedTuple):
    """A name in a sentence, with the type of what it names."""

    name: str
    #: An entity type of the catalogue; `other` without evidence.
    type: str
    #: 0 to 1.
    confidence: float


class _Run(NamedTuple):
    """Adjacent words with capitals."""

    words: list[str]
    start: int
    end: int
    #: Whether its first word begins a sentence or a quotation.
    opens: bool
    #: Whether a title stood before it.
    titled: bool


def named_entities(text: str, language: str = "en", *, before: str = "") -> Iterator[NamedEntity]:
    """Yield the names in a sentence, at most `_NAMES_MAX`, in order.

    Parameters:
        before: the sentence before it.
        language: `de` for German, whose nouns all have capitals; any other text is read as `en`.
    """
    if _NO_PROSE.search(text) or _is_heading(text, language):
        return
    listed: TypeEvidence | None = None
    previous_end = 0
    titles = list(_titles(text))[:_NAMES_MAX]
    yield from (entity for entity, _ in titles if entity is not None)
    after_pet = introduces_pet(before)
    for run in _runs(text)[:_NAMES_MAX]:
        if any(span[0] <= run.start < span[1] for _, span in titles):
            continue
        in_list = listed is not None and text[previous_end : run.start] in (" and ", ", ", ", and ", " & ")
        entity = _entity(text, run, listed if in_list else None, language, after_pet=after_pet)
        previous_end = run.end
        listed = None
        if entity is not None:
            yield entity
            if entity.type != "other":
                listed = TypeEvidence(entity.type, entity.confidence * _LIST_SHARE)


def _titles(text: str) -> Iterator[tuple[NamedEntity | None, tuple[int, int]]]:
    """Yield the positions of titles in quotes, with the book, film or song when the sentence speaks of one."""
    for match in _QUOTED.finditer(text):
        title = match[1].strip(" .,!?")
        words = title.split()
        if not 1 <= len(words) <= _QUOTED_WORDS_MAX or not title[0].isupper():
            continue
        if any(word[0].islower() and len(word) > 3 for word in words[1:]) or title.isupper():
            continue
        evidence = [item for item in evidence_around(text, *match.span()) if item.type == "work"]
        confidence = max([_QUOTED_CONFIDENCE, *(item.confidence for item in evidence)])
        if evidence or (len(words) > 1 and _WORKS.search(text)):
            yield NamedEntity(title, "work", confidence), match.span()
        elif len(words) > 1:
            yield None, match.span()


def _is_heading(text: str, language: str) -> bool:
    """Return whether most words of a line have capitals: a heading, or shouting."""
    words = [word for word in _WORD.findall(text) if word[0].islower() or word.casefold() not in _SKIPPED]
    if text.endswith(":") and len(words) <= _COLON_WORDS_MAX:
        return True
    capitals = sum(word[0].isupper() for word in words)
    share = 0.99 if language == "de" or len(words) <= _SHORT_HEADING_WORDS else _HEADING_SHARE
    return len(words) >= _HEADING_WORDS_MIN and capitals > share * len(words)


def _runs(text: str) -> list[_Run]:
    """Return the runs of words with capitals in a sentence, without the words of `_SKIPPED` at their ends."""
    runs: list[_Run] = []
    matches = list(_WORD.finditer(text))
    position = 0
    while position < len(matches):
        if not matches[position].group()[0].isupper():
            position += 1
            continue
        stop = position + 1
        while stop < len(matches):
            gap = text[matches[stop - 1].end() : matches[stop].start()]
            following = matches[stop].group()
            is_title = matches[stop - 1].group().casefold() in _TITLES
            if gap != " " and not (gap == ". " and is_title):
                break
            if not following[0].isupper() and not _connects(matches, stop, text):
                break
            if matches[stop - 1].group().endswith("'s"):
                break
            stop += 1
        run = _trimmed(text, matches[position:stop])
        if run is not None:
            runs.append(run)
        position = stop
    return runs


def _connects(matches: Sequence[re.Match[str]], position: int, text: str) -> bool:
    """Return whether a small word stands between two words with capitals: `Bank of England`."""
    for index in range(position, min(position + 3, len(matches))):
        word = matches[index].group()
        if word[0].isupper():
            return index > position
        if word not in _CONNECTORS or text[matches[index].end() : matches[index].end() + 1] != " ":
            return False
    return False


def _trimmed(text: str, matches: Sequence[re.Match[str]]) -> _Run | None:
    """Return a run without titles and skipped words at its ends; None when nothing is left, or too much."""
    first, last, titled = 0, len(matches), False
    opens = opens_sentence(text, matches[0].start())
    while first < last:
        word = matches[first].group().casefold()
        titled = word in _TITLES
        if not titled and word not in _SKIPPED and word not in _CONNECTORS and _bare(word) not in _SKIPPED:
            break
        first, opens = first + 1, False
    titled = first > 0 and matches[first - 1].group().casefold() in _TITLES
    while last > first and _bare(matches[last - 1].group().casefold()) in (_SKIPPED | _CONNECTORS):
        last -= 1
    if not 0 < last - first <= _WORDS_MAX:
        return None
    words = [match.group() for match in matches[first:last]]
    words[-1] = _bare(words[-1])
    end = matches[last - 1].start() + len(words[-1])
    return _Run(words, matches[first].start(), end, opens, titled)


def _bare(word: str) -> str:
    """Return a word without the possessive ending and signs at its end."""
    return word.rstrip("'&-").removesuffix("'s")


def _entity(text: str, run: _Run, listed: TypeEvidence | None, language: str, *, after_pet: bool) -> NamedEntity | None:
    """Return the entity that a run names; None when it names nothing."""
    run = _without_descriptions(_without_opener(run, language), language)
    words = run.words
    if not words or len(words[0]) < 2 or not any(letter.isalpha() for letter in words[0]):
        return None
    if any("-" in word and word.rpartition("-")[2][:1].islower() for word in words):
        # `Porto-based`
        return None
    if text[run.end : run.end + 1] == ":" and run.opens:
        # `Name: …` begins a list or a form.
        return None
    name = " ".join(words)
    around = evidence_around(text, run.start, run.end, after_pet=after_pet)
    evidence = [*around, *evidence_within(words), *([listed] if listed else [])]
    if run.titled:
        evidence.append(TypeEvidence("person", 0.9))
    strongest = max((item.confidence for item in evidence), default=0.0)
    if not _is_name(run, strongest, language):
        return None
    evidence += _lexical_evidence(words, language)
    return NamedEntity(name, *_type(evidence))


def _without_opener(run: _Run, language: str) -> _Run:
    """Return a run without the word that begins the sentence, when it is a word of the language: `Poor Rex`."""
    words = run.words
    if language == "de" and len(words) > 1 and word_class(words[0], language) == "word":
        return run._replace(words=words[1:], start=run.start + len(words[0]) + 1, opens=False)
    if not run.opens or len(words) < 2 or is_first_name(words[0]) or has_type_word(words):
        return run
    # `Woah Joanna`: an unknown word before a first name is an exclamation.
    if word_class(words[0], language) not in (("word", "unknown") if is_first_name(words[1]) else ("word",)):
        return run
    start, first = run.start + len(words[0]) + 1, 1
    while first < len(words) - 1 and words[first] in _CONNECTORS:
        # `Regarding the …`
        start, first = start + len(words[first]) + 1, first + 1
    return run._replace(words=words[first:], start=start, opens=False)


def _without_descriptions(run: _Run, language: str) -> _Run:
    """Return the run of a product without the words of the language after it: `WhatsApp Live Demo`."""
    words = run.words
    if not is_camel_case(words[0]) or any(item.confidence >= _WORD_NAME_MIN for item in evidence_within(words)):
        return run
    count = len(words)
    while count > 1 and (word_class(words[count - 1], language) == "word" or words[count - 1].isupper()):
        count -= 1
    return run._replace(words=words[:count], end=run.start + len(" ".join(words[:count])))


def _is_name(run: _Run, evidence: float, language: str) -> bool:
    """Return whether a run is a name, by its words and the strongest evidence of its context."""
    words = run.words
    classes = [word_class(word, language) for word in words]
    if len(words) > 1:
        if all(kind == "word" for kind in classes):
            return evidence >= _WORD_NAME_MIN and not run.opens
        return not all(is_adjective(word) for word in words)
    word = words[0]
    if classes[0] == "word" and run.opens:
        # `Biscuit, our dog`, but not `Thankfully, my son`.
        return evidence >= _OPENING_WORD_MIN and not is_adjective(word) and not word.endswith("ing")
    if (is_first_name(word) and not word.isupper()) or is_place(word):
        # `Will` and `Rose` begin sentences as words, too.
        begins_as_word = run.opens and classes[0] == "both" and evidence < _TYPE_MIN
        return evidence >= _WORD_NAME_MIN or (classes[0] != "word" and not begins_as_word)
    if word.isupper() or is_adjective(word) or classes[0] in ("word", "both"):
        return evidence >= _WORD_NAME_MIN
    return evidence >= _TYPE_MIN or not run.opens


def _lexical_evidence(words: list[str], language: str) -> Iterator[TypeEvidence]:
    """Yield the evidence from the lists of first names and places."""
    name = " ".join(words)
    if is_place(name):
        # `Charlotte` and `Jordan` are people unless their context is that of a place.
        yield TypeEvidence("location", _FIRST_NAME_CONFIDENCE - 0.1 if is_first_name(name) else _PLACE_CONFIDENCE)
    if is_first_name(words[0]) and len(words) <= 3:
        if len(words) == 1:
            yield TypeEvidence("person", _FIRST_NAME_CONFIDENCE)
        elif all(word_class(word, language) != "word" for word in words[1:]):
            yield TypeEvidence("person", _FULL_NAME_CONFIDENCE)


def _type(evidence: Sequence[TypeEvidence]) -> tuple[str, float]:
    """Return the type with the most evidence and its confidence; `other` when there is too little."""
    sums: dict[str, float] = {}
    for item in evidence:
        sums[item.type] = sums.get(item.type, 0.0) + item.confidence
    if not sums:
        return "other", 0.3
    best = max(sums, key=lambda type: sums[type])
    return (best, round(min(sums[best], 0.95), 2)) if sums[best] >= _TYPE_MIN else ("other", 0.3)
