"""Frames: reads facts from clauses by the verbs of `frames.toml`: `Lena adopted a greyhound`, `Ann plans to move to Rome`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import Any, NamedTuple

from recollect.jobs.extraction import vocabulary
from recollect.jobs.extraction.clause_parser import Clause, clauses
from recollect.jobs.extraction.phrases import head, phrase_at
from recollect.jobs.extraction.verb_forms import VerbForm, third_person, verb_forms

#: The share of such statements that are right.
_CONFIDENCE = {"event": 0.75, "habit": 0.8, "activity": 0.7, "plan": 0.7, "skill": 0.8, "never": 0.85, "past": 0.75}
#: Classes of nouns that are recognised by their form.
_FORMS = {
    "names": re.compile(
        r"(?<![\w'])(?!I\b|(?:January|February|March|April|May|June|July|August|September|October|November|December)\b|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)[A-ZÀ-Þ][\w'-]{1,60}"
    ),
    "numbers": re.compile(r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|million)\b"),
    "titles": re.compile(r'"|[A-ZÀ-Þ]\w'),
    "money": re.compile(r"[$€£₦¥]\s?\d|\b(?:money|euros?|dollars|pounds)\b"),
    "schedules": re.compile(
        r"\b(?:every|each|on)\s+(?:other\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bevery\s+(?:other\s+)?(?:day|morning|evening|night|week|"
        r"weekend|month|year)\b|\b(?:once|twice|\w+\s+times)\s+(?:a|per|every)\s+\w+|\b(?:daily|weekly)$",
        re.IGNORECASE,
    ),
    "plurals": re.compile(r"\b[a-z]{3,20}s\b"),
    "doctors": re.compile(
        r"\b(?:doctor|dentist|therapist|cardiologist|psychiatrist|psychologist|\w{3,15}ologist|physio\w{0,10}|counsel\w{2,5})\b"
    ),
}
_WORD = re.compile(r"[\w'-]+")
#: What took hours is of passing interest.
_HOURS = re.compile(r"\bfor (?:about |over |almost )?(?:an?|\d{1,3}|\w{3,6}) (?:hours?|minutes?)\b")
#: A time without a thing: `we go a few times a week`.
_ONLY_TIME = re.compile(
    r"(?:(?:\w{3,20}ly )?(?:ever since|since \w[\w ]{0,30}|for (?:\w{1,10} ){0,4}(?:days?|weeks?|months?|years?|while|ages)|"
    r"(?:(?:a )?(?:few|couple(?: of)?|\w{3,6}) times|once|twice) (?:a|per|every) \w+|every \w+|on \w+days?|together|a lot))$"
)
#: A time with which the perfect is the past.
_PAST_TIME = re.compile(r"\b(?:yesterday|last|ago)\b")
#: A number without a thing: `reached 85% as of April 9`.
_BARE_NUMBER = re.compile(r"[$€£]?\d[\d.,]{0,12}%?(?: (?:as of|by|on|in|at) .{1,60})?$")
#: Verbs that say nothing without a thing.
_TRANSITIVE = frozenset(
    """go do take play have see get bring pick drop call meet visit feed walk wash help study practice practise learn make
    write own use build""".split()
)


#: The form of the verb after `and`, by the reading of the clause before.
_COORDINATED = {"event": "past", "habit": "base", "activity": "gerund", "plan": "base"}


class ClauseFact(NamedTuple):
    """A fact that a clause states."""

    #: Words of the subject.
    subject: str
    predicate: str
    object: str
    #: fact or event.
    type: str
    confidence: float
    #: Position of the clause.
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """A frame of a verb."""

    #: The readings of a clause that are facts.
    readings: frozenset[str]
    #: Words, one of which the phrase begins with; empty: any.
    begins: tuple[str, ...]
    #: Names of classes of nouns, one of which the phrase has; empty: any.
    has: tuple[str, ...]
    #: Words with which the phrase does not begin.
    avoids: tuple[str, ...]
    #: Whether the phrase needs both one of `begins` and one of `has`.
    needs_both: bool
    #: Whether the verb needs no phrase.
    bare: bool


class _Lexicon(NamedTuple):
    """The verbs and nouns of `frames.toml`."""

    frames: dict[str, list[_Frame]]
    forms: dict[str, VerbForm]
    nouns: dict[str, frozenset[str]]


@cache
def _lexicon() -> _Lexicon:
    """Return the frames of each verb, the forms of the verbs, and the classes of nouns."""
    tables: dict[str, Any] = tomllib.loads(files(__package__).joinpath("frames.toml").read_text(encoding="utf-8"))
    frames: dict[str, list[_Frame]] = {}
    for table in tables["frame"]:
        frame = _Frame(
            readings=frozenset(table["readings"]),
            begins=tuple(table.get("begins", ())),
            has=tuple(table.get("has", ())),
            avoids=tuple(table.get("avoids", ())),
            needs_both=not table.get("either", False),
            bare=table.get("bare", False),
        )
        for verb in table["verbs"].split():
            frames.setdefault(verb, []).append(frame)
    nouns = {name: frozenset(words.split()) for name, words in tables["nouns"].items()}
    return _Lexicon(frames, verb_forms(frames, tables["inflection"]["irregular"]), nouns)


def is_common_word(word: str) -> bool:
    """Return whether a word in lower case is a verb or noun of the tables, and so no name."""
    lexicon = _lexicon()
    return word in lexicon.forms or any(word in nouns for nouns in lexicon.nouns.values())


def clause_facts(sentence: str) -> Iterator[ClauseFact]:
    """Yield the facts of the clauses of a sentence with expanded contractions."""
    lexicon = _lexicon()
    for clause in clauses(sentence, lexicon.forms):
        phrase = phrase_at(sentence, clause.phrase_start, partial(_continues, clause))
        if phrase is None:
            continue
        frame = next((frame for frame in lexicon.frames[clause.verb] if _fits(frame, clause, phrase)), None)
        if frame is not None:
            yield _fact(clause, phrase)


def _fits(frame: _Frame, clause: Clause, phrase: str) -> bool:
    """Return whether a clause is a statement of a frame."""
    if clause.reading not in frame.readings and not (clause.reading == "past" and "habit" in frame.readings):
        return False
    if clause.reading == "habit" and phrase.startswith("some "):
        return False
    if clause.reading == "event" and _BARE_NUMBER.match(phrase):
        return False
    if clause.stated.startswith("was "):
        # `was diagnosed with …`
        return True
    if not phrase:
        return frame.bare
    if _HOURS.search(phrase) or (not frame.bare and _ONLY_TIME.match(phrase) and clause.verb in _TRANSITIVE):
        return False
    text = phrase + " "
    if any(text.startswith(words + " ") for words in frame.avoids):
        return False
    starts = not frame.begins or any(text.startswith(words + " ") for words in frame.begins)
    if not frame.has:
        return starts
    has_noun = _has_noun(phrase if "schedules" in frame.has else head(phrase), frame.has)
    return (starts and has_noun) if frame.needs_both or not frame.begins else (starts or has_noun)


def is_plural(subject: str) -> bool:
    """Return whether a subject is several people: `my parents`; `we` is written as the speaker alone."""
    words = subject.split()
    return words[0].casefold() in ("my", "our") and words[-1].casefold() in vocabulary.PLURAL_NOUNS


def _continues(clause: Clause, word: str) -> bool:
    """Return whether a word after `and` is the verb of the next clause."""
    form = _lexicon().forms.get(word)
    wanted = _COORDINATED.get(clause.reading)
    return form is not None and wanted is not None and wanted in form.forms


def _has_noun(phrase: str, classes: tuple[str, ...]) -> bool:
    """Return whether the head of a phrase has a noun of one of the classes."""
    lexicon = _lexicon()
    words = {word.removesuffix("'s") for word in _WORD.findall(phrase.casefold())}
    for name in classes:
        pattern = _FORMS.get(name)
        if pattern.search(phrase) if pattern is not None else not words.isdisjoint(lexicon.nouns[name]):
            return True
    return False


def _fact(clause: Clause, phrase: str) -> ClauseFact:
    """Return the fact of a clause."""
    confidence = _CONFIDENCE[clause.reading]
    if clause.reading == "event":
        time = clause.time if clause.time not in phrase else ""
        verb = "went" if clause.stated == "has been" and _PAST_TIME.search(f"{phrase} {time}") else clause.stated
        stated = " ".join(f"{verb} {phrase} {time}".split())
        return ClauseFact(clause.subject, "did", stated, "event", confidence, clause.start)
    predicate, object = clause.stated, phrase
    if clause.reading == "habit":
        predicate = clause.verb if is_plural(clause.subject) else third_person(clause.verb)
    if clause.reading in ("plan", "skill"):
        predicate, _, verb = predicate.rpartition(" ")
        return ClauseFact(clause.subject, predicate, f"{verb} {phrase}".strip(), "fact", confidence, clause.start)
    first, _, rest = phrase.partition(" ")
    if rest and first in _PREPOSITIONS:
        predicate, object = f"{predicate} {first}", rest
    if not object:
        # `writes` alone: the verb is the object of a habit.
        words = predicate.split()
        predicate, object = " ".join(words[:-1]) or "habitually", words[-1]
    return ClauseFact(clause.subject, predicate, object, "fact", confidence, clause.start)


#: Prepositions that belong to the predicate: `works at`.
_PREPOSITIONS = frozenset(("to", "at", "in", "for", "with", "on", "from", "about", "as", "into", "by", "off", "near"))
