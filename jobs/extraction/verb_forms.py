"""Verb forms: the inflected forms of the verbs of `frames.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

#: past is also the participle of a regular verb.
Form = Literal["base", "third", "past", "participle", "gerund"]

_CONSONANT_Y = re.compile(r"[^aeiou]y$")
#: A short verb whose last consonant is doubled: `plan`, `win`.
_DOUBLED = re.compile(r"^[^aeiou]*[aeiou][bdgklmnprt]$")
#: The plural of the verbs that the predicates of `rules.toml` begin with.
_PLURALS = {
    "lives": "live", "works": "work", "comes": "come", "studies": "study", "has": "have", "speaks": "speak",
    "plays": "play", "drives": "drive", "owns": "own", "uses": "use", "needs": "need",
}  # fmt: skip
_THIRD_PERSONS = {"be": "is", "have": "has"}


class VerbForm(NamedTuple):
    """What an inflected form is: the forms of `base` that are spelled so."""

    base: str
    forms: frozenset[Form]


def verb_forms(bases: Iterable[str], irregular: Iterable[str]) -> dict[str, VerbForm]:
    """Return each inflected form of the verbs `bases`.

    Parameters:
        irregular: base, past, participle and perhaps gerund of verbs that differ from the rule, separated by spaces.
    """
    principal_parts = {parts[0]: parts for parts in (line.split() for line in irregular)}
    by_spelling: dict[str, VerbForm] = {}
    for base in dict.fromkeys(bases):
        parts = principal_parts.get(base, [base])
        past = parts[1] if len(parts) > 1 else _past(base)
        participle = parts[2] if len(parts) > 2 else past
        spellings: list[tuple[str, Form]] = [
            (base, "base"),
            (third_person(base), "third"),
            (past, "past"),
            (participle, "participle"),
            (parts[3] if len(parts) > 3 else _gerund(base), "gerund"),
        ]
        for spelling, form in spellings:
            earlier = by_spelling.get(spelling)
            if earlier is None or earlier.base == base:
                added: frozenset[Form] = frozenset((form,))
                by_spelling[spelling] = VerbForm(base, added if earlier is None else added | earlier.forms)
    return by_spelling


def third_person(verb: str) -> str:
    """Return a verb in the third person of the present."""
    if verb in _THIRD_PERSONS:
        return _THIRD_PERSONS[verb]
    if _CONSONANT_Y.search(verb):
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "o", "z")) else "s")


def plural_predicate(predicate: str) -> str:
    """Return a predicate as it is said of several people: `live in` of `lives in`, `are allergic to` stays as it is."""
    verb, _, rest = predicate.partition(" ")
    return f"{_PLURALS.get(verb, verb)} {rest}".strip()


def _past(verb: str) -> str:
    """Return the past of a regular verb."""
    if verb.endswith("e"):
        return verb + "d"
    if _CONSONANT_Y.search(verb):
        return verb[:-1] + "ied"
    return verb + (verb[-1] if _DOUBLED.match(verb) else "") + "ed"


def _gerund(verb: str) -> str:
    """Return the gerund of a verb."""
    if verb.endswith("e") and not verb.endswith("ee"):
        return verb[:-1] + "ing"
    return verb + (verb[-1] if _DOUBLED.match(verb) else "") + "ing"
