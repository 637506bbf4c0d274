"""Clause parser: finds subject, verb and phrase of each clause of a sentence, and reads the verb group: `is going to adopt`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from recollect.jobs.extraction.rules import WHO, clause_begins, is_name
from recollect.jobs.extraction.verb_forms import VerbForm

Reading = Literal["event", "habit", "activity", "plan", "skill", "never", "past"]

#: A subject of several people that includes the speaker: `my wife and I`, `me and Tom`.
_WITH_SPEAKER = re.compile(
    r"(?:(?:[Mm]y|[Oo]ur)\s+\w{1,30}(?:\s+[A-Z][\w-]{0,30})?|[A-Z][\w-]{1,30}|[Tt]he\s+\w{1,30})\s+and\s+I\b\s*"
    r"|[Mm]e\s+and\s+(?:my\s+\w{1,30}|[A-Z][\w-]{1,30}|the\s+\w{1,30})\b\s*"
)
_WORD = re.compile(r"\s{0,3}([\w'-]{1,60})")
#: Words of a verb group: auxiliaries, adverbs, `going to`, the verb.
_GROUP_WORDS_MAX = 10
_SKIPPED = frozenset(
    """also always really absolutely actually currently just mostly now often only recently still totally truly usually
    definitely especially generally honestly personally quite rather simply sometimes finally already even both all once
    twice soon probably mainly basically literally officially regularly occasionally ever normally typically lately almost
    kinda first then later today yesterday successfully proudly happily voluntarily accidentally nearly since again
    """.split()
)
_BE_PRESENT = frozenset(("am", "is", "are"))
_BE_PAST = frozenset(("was", "were"))
#: Auxiliaries after which a clause states no fact.
_UNCERTAIN = frozenset(("could", "might", "may", "should", "must", "shall", "would", "ought"))
#: Verbs of intention before `to` and a verb, by their form.
_INTENDS = {
    "started": "started to", "began": "started to",
    "want": "wants to", "wants": "wants to", "wanna": "wants to", "plan": "plans to", "plans": "plans to",
    "planning": "plans to", "planned": "plans to", "hope": "hopes to", "hopes": "hopes to", "hoping": "hopes to",
    "intend": "plans to", "aim": "plans to", "aiming": "plans to", "going": "plans to", "gonna": "plans to",
    "looking": "wants to", "love": "wants to", "like": "wants to", "wanted": "wants to", "trying": "is trying to",
    "dream": "dreams of", "dreaming": "dreams of", "thinking": "is thinking about", "considering": "is considering",
}  # fmt: skip
#: Those before a gerund, with the words between: `thinking about moving`.
_BEFORE_GERUND = {
    "dream": ("of", "about"),
    "dreaming": ("of", "about"),
    "thinking": ("of", "about"),
    "planning": ("on",),
}
#: Verbs of intention that state one only after `would`.
_AFTER_WOULD = frozenset(("love", "like"))
#: Those that state one only after a form of be, or after `would`.
_ONLY_AFTER_BE = frozenset(("love", "like", "looking", "trying", "thinking", "considering"))
#: What a person tries for longer than a conversation.
_TRIED = frozenset("learn lose quit save buy sell adopt move stop get".split())
#: A participle of a verb that has no frame.
_PARTICIPLE = re.compile(
    r"\w{2,20}ed$|(?:sent|seen|come|felt|put|kept|known|thought|brought|shown|gone|told|said|heard|understood)$"
)
#: Participles after `was`, `got` or `am` that state an event of a life.
_PASSIVES = frozenset(
    """diagnosed promoted accepted admitted hired fired elected nominated injured hospitalized hospitalised awarded offered
    selected chosen robbed evicted mugged adopted raised invited licensed certified""".split()
)


#: A date: without one, `I will …` is said about the next minutes.
_DATE = re.compile(
    r"\b20\d\d\b|\b(?:next|tomorrow|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|"
    r"november|december|in may|summer|winter|spring|autumn|weekend|christmas)\b",
    re.IGNORECASE,
)
#: A conjunction after which only the past states a fact.
_WHEN = re.compile(r"\b(?:when|while|after|where)\b", re.IGNORECASE)
#: A time that begins a clause.
_TIME = re.compile(
    r"^(?:yesterday|today|last (?:night|week|weekend|month|year|summer|winter|spring|fall|autumn|(?:mon|tues|wednes|thurs|fri|satur|sun)(?:day)?)|this \w+(?: \w+)?|an? [\w ]+ ago|\w+ \w+ ago|in \d{4})$",
    re.IGNORECASE,
)
_PURPOSE = re.compile(r"(?:so|that)\b", re.IGNORECASE)
_RELATIVE = re.compile(r"that\b", re.IGNORECASE)
#: Words before `that` which introduce a statement.
_SAYING = re.compile(
    r"\b(?:know|knows|told|said|say|mean|means|glad|happy|think|mentioned|mention|fact|remember|forgot|is|was|add|note|so)\s+(?:you\s+)?$",
    re.IGNORECASE,
)
_SAYING_CHARS = 20
#: What separates a clause from the one before with another subject.
_SEPARATES = re.compile(r"\b(?:who|which|that|if|when|because|so|to)\b|[;:()]")
#: Words between a verb and the next verb of the same subject.
_COORDINATED_WORDS_MAX = 8


class Clause(NamedTuple):
    """A clause with a verb."""

    #: Words of the subject, `I` when it is left out.
    subject: str
    #: What its verb group says: `is writing` is an activity, `wrote` an event.
    reading: Reading
    #: The base form of its verb: `adopt`.
    verb: str
    #: The words before the phrase of a fact: `adopted`, `is writing`, `plans to adopt`.
    stated: str
    #: When it was, if this precedes the subject: `yesterday`.
    time: str
    #: Position of the subject.
    start: int
    #: Position of the phrase after the verb.
    phrase_start: int


class _Group(NamedTuple):
    """A verb group: its reading, verb, words and the position after it."""

    reading: Reading
    verb: str
    stated: str
    end: int


def clauses(sentence: str, verbs: Mapping[str, VerbForm]) -> Iterator[Clause]:
    """Yield the clauses of a sentence whose verbs are in `verbs`; a clause without a subject has that of the one before."""
    before: Clause | None = None
    for begin in clause_begins(sentence):
        start = begin.end()
        if before is not None and start <= before.phrase_start:
            continue
        if _RELATIVE.match(begin.group()) and not _SAYING.search(
            sentence[max(0, begin.start() - _SAYING_CHARS) : begin.start()]
        ):
            # `An article that I wrote`.
            continue
        explicit = _subject_at(sentence, start)
        if start == 0 and explicit is not None and explicit[0].casefold() in verbs:
            # `Lost my job`, `Took a trip`.
            explicit = None
        if explicit is not None:
            words, end = explicit
            group = _group(sentence, end, words, verbs)
        elif start == 0:
            words, group = "I", _opening(sentence, verbs)
        elif before is not None and begin.group().strip(" ,"):
            words, group = before.subject, _coordinated(sentence, start, before, verbs)
        else:
            continue
        if group is not None and group.reading != "event" and _WHEN.search(begin.group()):
            # `When I have a dog` says nothing about the present.
            group = None
        if group is not None and group.reading == "skill" and _PURPOSE.match(begin.group()):
            # `So I can write better` is a purpose.
            group = None
        if group is not None:
            before = Clause(words, group.reading, group.verb, group.stated, _time(begin.group()), start, group.end)
            yield before
        elif explicit is not None:
            # The subject of what follows is not that of an earlier clause.
            before = None


def _time(words: str) -> str:
    """Return the time in the words before a subject, or an empty text."""
    time = words.strip(" ,;-–—")
    return time[:1].lower() + time[1:] if _TIME.match(time) else ""


def _subject_at(sentence: str, start: int) -> tuple[str, int] | None:
    """Return the words of the subject at a position and the position after it."""
    together = _WITH_SPEAKER.match(sentence, start)
    if together is not None:
        return "we", together.end()
    subject = WHO.match(sentence, start)
    if subject is None or not is_name(subject["who"], at_start=start == 0):
        return None
    return " ".join(subject["who"].split()).strip(" ,"), subject.end("who")


def _opening(sentence: str, verbs: Mapping[str, VerbForm]) -> _Group | None:
    """Return the verb group of a sentence without a subject: `Just got a dog`, `Been learning Thai`."""
    words = [word for word in _words(sentence, 0) if word[0] not in _SKIPPED]
    if not words:
        return None
    if words[0][0] == "been":
        return _perfect_progressive(words, "has", verbs)
    form = verbs.get(words[0][0])
    if form is None or "past" not in form.forms or "base" in form.forms:
        return None
    return _group(sentence, 0, "I", verbs)


def _coordinated(sentence: str, start: int, before: Clause, verbs: Mapping[str, VerbForm]) -> _Group | None:
    """Return the verb group after `and` that shares the subject of the clause before, and its auxiliaries."""
    words = [word for word in _words(sentence, start) if word[0] not in _SKIPPED]
    form = verbs.get(words[0][0]) if words else None
    between = sentence[before.phrase_start : start]
    if form is None or len(between.split()) > _COORDINATED_WORDS_MAX or _SEPARATES.search(between):
        return None
    spelling, end = words[0]
    intention = before.stated.rpartition(" ")[0]
    if before.reading == "plan":
        return _Group("plan", form.base, f"{intention} {spelling}", end) if "base" in form.forms else None
    if before.reading == "activity":
        return _Group("activity", form.base, f"{intention} {spelling}", end) if "gerund" in form.forms else None
    group = _simple(words, before.subject, verbs)
    return group if group is not None and group.reading == before.reading else None


def _words(sentence: str, start: int) -> list[tuple[str, int]]:
    """Return the words at a position in lower case, with the positions after them, up to the first other sign."""
    words: list[tuple[str, int]] = []
    while len(words) < _GROUP_WORDS_MAX:
        word = _WORD.match(sentence, start)
        if word is None:
            break
        start = word.end()
        words.append((word[1].casefold(), start))
    return words


def _group(sentence: str, start: int, subject: str, verbs: Mapping[str, VerbForm]) -> _Group | None:
    """Return the verb group at a position; None when it states no fact or its verb is not known."""
    words = [(word, end) for word, end in _words(sentence, start) if not _is_adverb(word, verbs)]
    if not words:
        return None
    first, _ = words[0]
    rest = words[1:]
    if first in ("will", "shall"):
        has_date = _DATE.search(sentence, start) is not None
        return _after_to(rest, "plans to", verbs) if has_date and rest and rest[0][0] not in ("not", "never") else None
    if first == "would":
        return _intention(rest, verbs) if rest and rest[0][0] in _AFTER_WOULD else None
    if first in _UNCERTAIN:
        return None
    if first == "used" and len(rest) > 1 and rest[0][0] == "to" and (form := verbs.get(rest[1][0])) is not None:
        return _Group("past", form.base, f"used to {rest[1][0]}", rest[1][1])
    if first in ("can", "cannot"):
        return _ability(rest, negative=first == "cannot", verbs=verbs)
    if first in _BE_PRESENT | _BE_PAST:
        return _after_be(first, rest, verbs)
    if first in _INTENDS and first not in _ONLY_AFTER_BE and _next_is_to(words):
        return _intention(words, verbs)
    return _simple_or_negated(words, subject, verbs)


def _simple_or_negated(words: list[tuple[str, int]], subject: str, verbs: Mapping[str, VerbForm]) -> _Group | None:
    """Return a group with do or have, or without an auxiliary."""
    first, rest = words[0][0], words[1:]
    if first in ("do", "does", "never") and len(rest) > 1:
        negated = _negated(first, rest, verbs)
        if negated is not None or rest[0][0] == "not":
            return negated
    if first in ("had", "have", "has") and len(rest) > 1 and rest[0][0] == "to":
        form = verbs.get(rest[1][0])
        is_event = first == "had" and form is not None and "base" in form.forms
        return _Group("event", form.base, f"had to {rest[1][0]}", rest[1][1]) if is_event and form is not None else None
    if first in ("have", "has", "had") and rest:
        perfect = _perfect(rest, verbs)
        if perfect is not None or rest[0][0] in ("been", "never", "not") or _PARTICIPLE.match(rest[0][0]):
            return perfect
    return _simple(words, subject, verbs)


def _is_adverb(word: str, verbs: Mapping[str, VerbForm]) -> bool:
    """Return whether a word of a verb group is an adverb."""
    return word in _SKIPPED or (word.endswith("ly") and word not in verbs)


def _next_is_to(words: list[tuple[str, int]]) -> bool:
    """Return whether `to`, `of`, `about` or `on` follows the first word, or the first word includes it."""
    return words[0][0] in ("wanna", "gonna") or (len(words) > 1 and words[1][0] in ("to", "of", "about", "on"))


def _simple(words: list[tuple[str, int]], subject: str, verbs: Mapping[str, VerbForm]) -> _Group | None:
    """Return a verb in the present or past: `teaches`, `adopted`."""
    spelling, end = words[0]
    form = verbs.get(spelling)
    if form is None:
        return None
    is_plural = subject in ("I", "we", "We") or subject.endswith("s")
    if "past" in form.forms and not ("base" in form.forms and form.base != "quit"):
        return _Group("event", form.base, spelling, end)
    if "third" in form.forms and "base" not in form.forms and subject not in ("I", "we", "We"):
        return _Group("habit", form.base, spelling, end)
    if "base" in form.forms and is_plural:
        return _Group("habit", form.base, form.base, end)
    return None


def _after_be(be: str, rest: list[tuple[str, int]], verbs: Mapping[str, VerbForm]) -> _Group | None:
    """Return the group after a form of be: `is writing`, `is going to adopt`, `was diagnosed`."""
    if not rest:
        return None
    spelling, end = rest[0]
    if spelling in _PASSIVES and be in _BE_PAST:
        return _Group("event", "get", f"was {spelling}", end)
    if be in _BE_PAST or spelling in ("not", "never"):
        return None
    if spelling in _INTENDS and len(rest) > 1:
        intention = _intention(rest, verbs)
        if intention is not None:
            return intention
    form = verbs.get(spelling)
    if form is not None and "gerund" in form.forms:
        return _Group("activity", form.base, f"is {spelling}", end)
    return None


def _perfect(rest: list[tuple[str, int]], verbs: Mapping[str, VerbForm]) -> _Group | None:
    """Return the group after have: `adopted`, `been teaching`, `been to`."""
    spelling, end = rest[0]
    if spelling == "been" and len(rest) > 1 and rest[1][0] == "to":
        return _Group("event", "go", "has been", end)
    if spelling == "been":
        return _perfect_progressive(rest, "has", verbs)
    if spelling == "got":
        return _Group("habit", "have", "has", end)
    form = verbs.get(spelling)
    if form is None or "participle" not in form.forms or spelling == "had":
        return None
    past = next((word for word, other in verbs.items() if other.base == form.base and "past" in other.forms), spelling)
    return _Group("event", form.base, past, end)


def _perfect_progressive(words: list[tuple[str, int]], have: str, verbs: Mapping[str, VerbForm]) -> _Group | None:
    """Return the group of `been`: `been teaching`, `been diagnosed`."""
    rest = [word for word in words if word[0] not in _SKIPPED and word[0] != "been"]
    if not rest:
        return None
    spelling, end = rest[0]
    if spelling in _PASSIVES:
        return _Group("event", "get", f"was {spelling}", end)
    form = verbs.get(spelling)
    if form is None or "gerund" not in form.forms:
        return None
    return _Group("activity", form.base, f"{have} been {spelling}", end)


def _intention(words: list[tuple[str, int]], verbs: Mapping[str, VerbForm]) -> _Group | None:
    """Return the group of a verb of intention: `want to adopt`, `am thinking of moving`."""
    (first, _), rest = words[0], words[1:]
    stated = _INTENDS[first]
    between = _BEFORE_GERUND.get(first)
    if first == "considering" or (between is not None and rest and rest[0][0] in between):
        rest = rest if first == "considering" else rest[1:]
        form = verbs.get(rest[0][0]) if rest else None
        if form is None or "gerund" not in form.forms:
            return None
        stated = "is planning on" if between == ("on",) else stated
        return _Group("plan", form.base, f"{stated} {rest[0][0]}", rest[0][1])
    if first in ("wanna", "gonna"):
        return _after_to(rest, stated, verbs)
    if not rest or rest[0][0] != "to" or (first == "trying" and len(rest) > 1 and rest[1][0] not in _TRIED):
        return None
    return _after_to(rest[1:], stated, verbs, place=rest[0][1] if first == "going" else None)


def _after_to(
    words: list[tuple[str, int]], stated: str, verbs: Mapping[str, VerbForm], *, place: int | None = None
) -> _Group | None:
    """Return the group of an intention and the verb after `to`; `going to Rome` has a place instead of the verb."""
    spelling, end = words[0] if words else ("", 0)
    gerund = verbs.get(words[1][0]) if spelling == "be" and len(words) > 1 else None
    if gerund is not None and "gerund" in gerund.forms:
        # `will be moving`.
        return _Group("plan", gerund.base, f"{stated} {gerund.base}", words[1][1])
    form = verbs.get(spelling)
    if form is not None and "base" in form.forms:
        return _Group("plan", form.base, f"{stated} {spelling}", end)
    if place is not None and form is None and spelling:
        return _Group("activity", "go", "is going to", place)
    return None


def _ability(words: list[tuple[str, int]], *, negative: bool, verbs: Mapping[str, VerbForm]) -> _Group | None:
    """Return the group after can: `can swim`, `cannot eat`."""
    if words and words[0][0] == "not":
        negative, words = True, words[1:]
    form = verbs.get(words[0][0]) if words else None
    if form is None or "base" not in form.forms:
        return None
    can = "cannot" if negative else "can"
    return _Group("never" if negative else "skill", form.base, f"{can} {words[0][0]}", words[0][1])


def _negated(first: str, rest: list[tuple[str, int]], verbs: Mapping[str, VerbForm]) -> _Group | None:
    """Return the group of a negated habit: `does not eat`, `never eats`."""
    word, end = rest[1] if first != "never" and rest[0][0] in ("not", "never") else rest[0]
    is_negated = first == "never" or rest[0][0] in ("not", "never")
    form = verbs.get(word)
    if not is_negated or form is None or not form.forms & {"base", "third"}:
        return None
    stated = f"never {_third(form, verbs)}" if "never" in (first, rest[0][0]) else f"does not {form.base}"
    return _Group("never", form.base, stated, end)


def _third(form: VerbForm, verbs: Mapping[str, VerbForm]) -> str:
    """Return the third person of a verb."""
    return next(word for word, other in verbs.items() if other.base == form.base and "third" in other.forms)
