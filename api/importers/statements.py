"""Statements: turns a line of another program's memory, such as `**Diet:** vegan`, into a fact."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from recollect.api.importers.records import IMPORTED_CONFIDENCE
from recollect.events.limits import NAME_CHARS_MAX

#: Characters of the object of a fact. Longer text is a document.
STATEMENT_CHARS_MAX = 2_000
#: `**Key:** value`, `- Key: value` with a short key; not a time or an address.
_KEY = re.compile(
    r"^(?:\*\*(?P<bold>[^*\n:]{1,60}):?\*\*:?|(?P<plain>[^\W\d_][\w' /&-]{0,40}):)\s{1,8}(?P<value>\S.*)$", re.DOTALL
)
_BULLET = re.compile(r"^\s{0,40}(?:[-*+•]|\d{1,3}[.)])\s{1,8}(?:\[[ xX]\]\s{1,4})?")
_USER = re.compile(r"^(?:the )?user(?P<own>['’]s)?(?![\w'’-])(?P<rest>.*)$", re.IGNORECASE | re.DOTALL)
_POSSESSIVE = re.compile(r"^(?P<key>[\w' -]{1,60}?) (?P<verb>is|are) (?P<value>\S.*)$", re.DOTALL)
_VERB = re.compile(
    r"^(?P<verb>(?:lives? in|works? (?:at|for|as)|moved to|studies at|was born (?:in|on)"
    r"|is (?:married|engaged|allergic) to|likes|loves|prefers|dislikes|hates"
    r"|enjoys|uses|has|owns|plays|speaks|wants to|needs to|is))"
    r"\s{1,4}(?P<value>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
#: A sentence about a person or a thing by name: `Ann works at …`. Words that begin other sentences are no names.
_NAMED = re.compile(
    r"^(?!(?:The|A|An|This|That|These|It|Its|There|He|She|They|We|I|You|His|Her|Their|My|Our|If|When|What|Who|How)\b)"
    r"(?P<name>[^\W\d_a-z][\w'-]{1,40}(?: [^\W\d_a-z][\w'-]{1,40}){0,2}) (?P<rest>[^\W\d_A-Z].*)$",
    re.DOTALL,
)
_MARKS = re.compile(r"\*\*|__|`")
_SPACE = re.compile(r"\s+")


def bullet_text(line: str) -> str | None:
    """Return the text of a bullet or a numbered line; None for another line."""
    match = _BULLET.match(line)
    return None if match is None else line[match.end() :].strip() or None


def is_keyed(line: str) -> bool:
    """Return whether a line is a key and a value, such as `Name: Ann`."""
    return _KEY.match(line.strip()) is not None


def statement(text: str, subject: str, *, topic: str | None = None) -> dict[str, Any] | None:
    """Return the subject, predicate and object of a line of a memory; None for a line that says nothing.

    `**Diet:** vegan` is "diet is" "vegan", `User likes tea` and `Ann likes tea` are "likes" "tea". What else is said of
    the subject keeps its words, as what it `did`, which is displayed without the predicate; any other text is a note.

    Parameters:
        subject: the person that lines without a subject speak of.
        topic: the heading of the line, which is put before a text that names no person.
    """
    keyed = _KEY.match(text.strip())
    if keyed is not None:
        key = (keyed["bold"] or keyed["plain"]).strip()
        value = _plain(keyed["value"])
        return _triple(subject, f"{key.casefold()} is", value) if key and value else None
    plain = _plain(text)
    about = _USER.match(plain)
    rest = "" if about is None else about["rest"].strip()
    if about is None and plain.casefold().startswith(f"{subject.casefold()} "):
        rest = plain[len(subject) :].strip()
    if rest:
        verb, possessive = _VERB.match(rest), _POSSESSIVE.match(rest)
        if verb is not None:
            return _triple(subject, verb["verb"].casefold(), verb["value"])
        if possessive is not None and about is not None and about["own"]:
            return _triple(subject, f"{possessive['key'].casefold()} {possessive['verb']}", possessive["value"])
        return _triple(subject, "did", rest)
    if not plain:
        return None
    named = _NAMED.match(plain)
    said = None if named is None else _VERB.match(named["rest"])
    if named is not None and said is not None:
        return _triple(named["name"], said["verb"].casefold(), said["value"])
    return _triple(subject, "note", f"{topic}: {plain}" if topic else plain)


def imported_fact(
    fact: dict[str, Any],
    *,
    stated_at: datetime | None = None,
    confidence: float = IMPORTED_CONFIDENCE,
    **fields: Any,
) -> dict[str, Any]:
    """Return the payload of an imported fact.

    One without a date is inferred, so that it never supersedes what the user says; one with a date is compared by it.
    """
    payload = fact | {"confidence": confidence, "source_type": "inferred" if stated_at is None else "observed"}
    if stated_at is not None:
        payload["stated_at"] = stated_at
    return payload | {name: value for name, value in fields.items() if value is not None}


def _triple(subject: str, predicate: str, value: str) -> dict[str, Any]:
    """Return a fact with the lengths that facts may have."""
    object = value.strip().removesuffix(".")[:STATEMENT_CHARS_MAX] or value[:STATEMENT_CHARS_MAX]
    return {"subject": subject[:NAME_CHARS_MAX], "predicate": predicate[:NAME_CHARS_MAX], "object": object}


def _plain(text: str) -> str:
    """Return a text without Markdown's emphasis, with single spaces."""
    return _SPACE.sub(" ", _MARKS.sub("", text)).strip()
