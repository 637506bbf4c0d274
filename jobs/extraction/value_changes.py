"""Value changes: finds the earlier statement whose number a sentence changes: `the doctor raised it to 100 mg`.

A change is read when it has one reading: exactly one recent statement of the speaker has a number of this unit, or of the
thing that the sentence names. Otherwise the message says it, and no statement changes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from recollect.projections.queries.knowledge_queries import PriorStatement
from recollect.projections.text.stems import content_stems

_VERB = (
    r"(?:raised|increased|upped|bumped|lowered|reduced|decreased|cut|dropped|changed|extended|shortened|adjusted|doubled|halved|put|brought|set|"
    r"went|gone|goes|rose|fell|switched|upgraded|downgraded)"
)
_AMOUNT = (
    r"[$€£]?\d{1,9}(?:[.,]\d{1,3}){0,3}(?:\s?(?:%|[$€£]|(?!(?:to|from|and|a|an|per|in|on|at|now|by|last|this|since|because|for|so|but|of|with|as|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|am|pm|o)\b)[a-zµ]{1,12}\b))?"
)
_CHANGE = re.compile(
    rf"\b{_VERB}\s(?P<what>(?:it|that|this|them|(?:my|our|the|his|her|their)(?:\s[\w-]{{2,20}}){{1,3}}?)\s)?(?:(?:up|down|back)\s)?"
    rf"(?:from\s(?P<old>{_AMOUNT})\s)?to\s(?P<new>{_AMOUNT})(?![\w:/]|st\b|nd\b|rd\b|th\b)",
    re.IGNORECASE,
)
#: `my budget went from 300 to 500`: the thing before the verb.
_SUBJECT = re.compile(
    r"\b(?:my|our|the|his|her|their)((?:\s[\w-]{2,20}){1,3})\s(?:has\s|have\s|was\s|were\s|is\s|got\s|just\s|now\s)*$",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?P<sign>[$€£]?)(?P<number>\d{1,9}(?:[.,]\d{1,3}){0,3})(?:\s?(?P<unit>%|[$€£]|[a-zµ]{1,12}\b))?", re.IGNORECASE
)
_PRONOUN = re.compile(r"(?:it|that|this|them)$", re.IGNORECASE)
#: Latest statements of the speaker that are compared.
_STATEMENTS_MAX = 20
_CHARS_MAX = 300


def find_change(sentence: str, before: Sequence[PriorStatement]) -> tuple[PriorStatement, str] | None:
    """Return the statement whose number a sentence changes, and its object with the new number; None without one reading.

    Parameters:
        before: earlier statements of the speaker, oldest first.
    """
    match = _CHANGE.search(sentence[:_CHARS_MAX])
    if match is None:
        return None
    what = (match["what"] or "").strip()
    if not what:
        subject = _SUBJECT.search(sentence, max(0, match.start() - 80), match.start())
        what = "" if subject is None else subject[1].strip()
    is_named = bool(what) and _PRONOUN.match(what) is None
    stems = content_stems(what) if is_named else frozenset[str]()
    changed: dict[tuple[str, str], tuple[PriorStatement, str]] = {}
    for prior in before[-_STATEMENTS_MAX:]:
        place = _place(prior.object, match["old"], match["new"], is_named=bool(stems))
        is_meant = not stems or stems <= content_stems(f"{prior.predicate} {prior.object}")
        if place is not None and is_meant:
            object = f"{prior.object[: place.start()]}{_written(match['new'], place)}{prior.object[place.end() :]}"
            changed[prior.predicate, prior.object] = (prior, object)
    return next(iter(changed.values())) if len(changed) == 1 else None


def _place(object: str, old: str | None, new: str, *, is_named: bool) -> re.Match[str] | None:
    """Return the number of an object that a new amount replaces: of its unit, or the old number; None without one."""
    numbers = [*_NUMBER.finditer(object)]
    amount = _NUMBER.match(new)
    if amount is None:
        return None
    if old is not None:
        former = _NUMBER.match(old)
        numbers = [number for number in numbers if former is not None and number["number"] == former["number"]]
    unit = amount["unit"] or amount["sign"]
    if unit:
        numbers = [number for number in numbers if (number["unit"] or number["sign"]).casefold() == unit.casefold()]
    elif old is None and not is_named:
        return None
    return numbers[0] if len(numbers) == 1 else None


def _written(new: str, place: re.Match[str]) -> str:
    """Return the new amount, with the unit of the old one when it has none."""
    amount = _NUMBER.match(new)
    if amount is None or amount["unit"] or amount["sign"]:
        return new
    return place[0].replace(place["number"], amount["number"], 1)
