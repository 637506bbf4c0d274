"""Statements: turns a line of another program's memory, such as `**Diet:** vegan`, into a fact, or into a note.

Only a line of a known form makes a fact: a key that names an attribute of a person, a sentence about the user, and a
sentence about a name with one of a few verbs. Any other line is kept whole, as a note with its headings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from recollect.api.importers.imported_records import IMPORTED_CONFIDENCE
from recollect.api.importers.task_notation import read_notation, without_end
from recollect.events.late_pattern import late_pattern
from recollect.events.limits import NAME_CHARS_MAX
from recollect.jobs.extraction.name_lexicon import lists_of
from recollect.jobs.extraction.stated_preferences import category_of
from recollect.projections.projector.predicates import canonical

#: Attributes of persons: what `Name: Ann` and `Name is Ann` say. Keys such as `Status` may be about anything.
_ATTRIBUTES = frozenset(
    (
        "lives in", "works at", "works as", "studies at", "name is", "age is", "born in", "born on", "married to",
        "engaged to", "dating", "email is", "phone is", "diet is", "height is", "weight is", "salary is",
        "time zone is", "native language is",
    )
)  # fmt: skip
#: Characters of the object of a fact. Longer text is a document.
STATEMENT_CHARS_MAX = 2_000
#: `**Key:** value`, `- Key: value` with a short key; not a time or an address.
_KEY = late_pattern(
    r"^(?:\*\*(?P<bold>[^*\n:]{1,60}):?\*\*:?|(?P<plain>[^\W\d_][\w' /&-]{0,40}):)\s{1,8}(?P<value>\S.*)$", re.DOTALL
)
#: Keys of the profiles of other programs, and ours.
_KEYS = {"role": "occupation"}
_BULLET = late_pattern(r"^\s{0,40}(?:[-*+•]|\d{1,3}[.)])\s{1,8}")
#: The box of a task, or the word that Logseq writes for it, and what a note says of it.
_TASK = late_pattern(
    r"^(?:\[(?P<box>[ xX/>-])\]|(?P<word>TODO|LATER|DOING|NOW|WAITING|DONE|CANCELED|CANCELLED))\s{1,4}"
)
_STATES = {
    "To do": (" ", "TODO", "LATER"),
    "In progress": ("/", "DOING", "NOW"),
    "Waiting": (">", "WAITING"),
    "Done": ("x", "X", "DONE"),
    "Cancelled": ("-", "CANCELED", "CANCELLED"),
}
_TASKS = {sign: state for state, signs in _STATES.items() for sign in signs}
#: The predicate of an open task.
TASK_PREDICATE = "needs to"
#: A line of a task, as `bullet_text` returns it, or as a sentence begins.
_TASK_LINE = late_pattern(rf"^(?P<state>{'|'.join(_STATES)}|TODO): (?P<text>\S.*)$", re.DOTALL)
_ENDED_STATES = ("Done", "Cancelled")
_USER = late_pattern(r"^(?:the )?user(?P<own>['’]s)?(?![\w'’-])(?P<rest>.*)$", re.IGNORECASE | re.DOTALL)
_POSSESSIVE = late_pattern(r"^(?P<key>[\w' -]{1,60}?) (?P<verb>is|are) (?P<value>\S.*)$", re.DOTALL)
#: `Hates phone calls` below a heading of preferences.
_LIKING = late_pattern(
    r"^(?P<verb>likes|dislikes|prefers|loves|hates|wants|avoids|enjoys|needs)\s{1,4}(?P<value>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
_VERB = late_pattern(
    r"^(?P<verb>(?:lives? in|works? (?:at|for|as)|moved to|studies at|was born (?:in|on)"
    r"|is (?:married|engaged|allergic) to|likes|loves|prefers|dislikes|hates"
    r"|enjoys|uses|has|owns|plays|speaks|wants to|needs to|is))"
    r"\s{1,4}(?P<value>\S.*)$",
    re.IGNORECASE | re.DOTALL,
)
#: A sentence about a person or a thing by name: `Ann works at …`. Words that begin other sentences are not names.
_NAMED = late_pattern(
    r"^(?!(?:The|A|An|This|That|These|It|Its|There|He|She|They|We|I|You|His|Her|Their|My|Our|If|When|What|Who|How)\b)"
    r"(?P<name>[^\W\d_a-z][\w'-]{1,40}(?: [^\W\d_a-z][\w'-]{1,40}){0,2}) (?P<rest>[^\W\d_A-Z].*)$",
    re.DOTALL,
)
_MARKS = late_pattern(r"\*\*|__|`")
#: A value in italics is a hint of a template, such as `_(optional)_`.
_HINT = late_pattern(r"^(?:_[^_]*_|\*[^*]*\*)$")
_IS = late_pattern(r"^(?:is|are) (?=\S)", re.IGNORECASE)
_SPACE = late_pattern(r"\s+")


def bullet_text(line: str) -> str | None:
    """Return the text of a bullet or a numbered line, with the state of a task; None for another line."""
    match = _BULLET.match(line)
    if match is None:
        return None
    text = line[match.end() :].strip()
    task = _TASK.match(text)
    return text if task is None else f"{_TASKS[task['box'] or task['word']]}: {text[task.end() :].strip()}"


class Task(NamedTuple):
    """A task of a note."""

    #: `To do`, `In progress`, `Waiting`, `Done` or `Cancelled`.
    state: str
    #: Its words without dates and tags.
    text: str
    #: Such as `due 2026-12-01`, and tags.
    details: tuple[str, ...]
    #: Its line without state and end: the same before and after it is ticked.
    line: str
    #: The day on which it was ticked, in ISO 8601; None when the line has none.
    ended_on: str | None

    @property
    def is_open(self) -> bool:
        """Return whether it is still to be done."""
        return self.state not in _ENDED_STATES


def task_of(line: str) -> Task | None:
    """Return the task of a line that `bullet_text` returned, or of `TODO: …`; None for one without words and others."""
    match = _TASK_LINE.match(line)
    if match is None:
        return None
    words, details, ended_on = read_notation(plain_text(match["text"]))
    line = plain_text(without_end(match["text"]))
    return Task(match["state"], words, details, line, ended_on) if any(map(str.isalnum, words)) else None


def task_fact(text: str, subject: str, *, details: Sequence[str | None] = ()) -> dict[str, Any]:
    """Return the fact of an open task, whose sentence has the words of the questions for it.

    A day on which it is due is in its words: it is no end, since an overdue task is still open.

    Parameters:
        details: its headings, dates and tags.
    """
    fact = _triple(subject, TASK_PREDICATE, detailed(text, details))
    return fact | {
        "type": "task",
        "statement": f"{fact['subject']} still has an open task on the todo list: {fact['object']}",
    }


def detailed(text: str, details: Sequence[str | None]) -> str:
    """Return a text with details behind it: `Call Ed (Mill; due 2026-12-01)`."""
    given = "; ".join(filter(None, details))
    return f"{text} ({given})" if given else text


def is_keyed(line: str) -> bool:
    """Return whether a line is a key and a value, such as `Name: Ann`."""
    return _KEY.match(line.strip()) is not None


def is_hint(text: str) -> bool:
    """Return whether a text is in italics as a whole, as the hints of templates are."""
    return _HINT.match(text.strip()) is not None


def keyed_statement(text: str, subject: str) -> dict[str, Any] | None:
    """Return the fact of a line with any key and a value; None for another line."""
    keyed = _KEY.match(text.strip())
    if keyed is None:
        return None
    # `Diet: is vegan` has the verb twice.
    key, value = (keyed["bold"] or keyed["plain"]).strip().casefold(), _IS.sub("", plain_text(keyed["value"]))
    return _triple(subject, f"{_KEYS.get(key, key)} is", value) if key and value and not is_hint(value) else None


def statement(text: str, subject: str, *, is_of_user: bool = True) -> dict[str, Any] | None:
    """Return the subject, predicate and object of a line of a memory; None for a line of no known form.

    `**Diet:** vegan` and `Diet is vegan` are "diet is" "vegan", `User likes tea` and `Likes tea` are "likes" "tea".
    What else is said of the subject keeps its words, as what it `did`, which is displayed without the predicate.

    Parameters:
        subject: the person that lines without a subject speak of.
        is_of_user: whether a line such as `Age: 9` is about `subject`; below a heading it may be another person's.
    """
    keyed = keyed_statement(text, subject)
    if keyed is not None:
        return keyed if is_of_user and _is_attribute(keyed["predicate"]) else None
    plain = plain_text(text)
    if plain.endswith((":", "?")):
        return None
    about = _USER.match(plain)
    rest = "" if about is None else about["rest"].strip()
    if about is None and plain.casefold().startswith(f"{subject.casefold()} "):
        rest = plain[len(subject) :].strip()
    possessive = _POSSESSIVE.match(rest or plain)
    if rest:
        verb = _VERB.match(rest)
        if verb is not None:
            return _triple(subject, verb["verb"].casefold(), verb["value"])
        if possessive is not None and about is not None and about["own"]:
            return _triple(subject, f"{possessive['key'].casefold()} {possessive['verb']}", possessive["value"])
        # `User profile: …` and `User (Ann)` are not sentences.
        return _triple(subject, "did", rest) if rest[0].islower() and ":" not in rest else None
    if is_of_user and possessive is not None and _is_attribute(f"{possessive['key']} is"):
        return _triple(subject, f"{possessive['key'].casefold()} is", possessive["value"])
    bare = _VERB.match(plain) if is_of_user else None
    if bare is not None and bare["verb"].casefold() != "is":
        return _triple(subject, bare["verb"].casefold(), bare["value"])
    named = _NAMED.match(plain)
    said = None if named is None or _is_common(named["name"]) else _VERB.match(named["rest"])
    if named is not None and said is not None:
        return _triple(named["name"], said["verb"].casefold(), said["value"])
    return None


def _is_common(name: str) -> bool:
    """Return whether a capitalised word is a common one that begins a sentence, and no name: `Considering is …`."""
    return all("w" in lists and not {"n", "p"} & {*lists} for lists in map(lists_of, name.casefold().split()))


def _is_attribute(predicate: str) -> bool:
    name = canonical(predicate)
    return name in _ATTRIBUTES or name.startswith("favourite ")


def note(text: str, subject: str, *, topic: str | None = None) -> dict[str, Any] | None:
    """Return a line as a note about `subject`; None for one without words.

    Parameters:
        topic: the headings of the line.
    """
    plain = plain_text(text).rstrip(":")
    keyed = _KEY.match(text.strip())
    if not any(map(str.isalnum, plain)) or is_hint(plain) or (keyed is not None and is_hint(keyed["value"])):
        return None
    return _triple(subject, "note", f"{topic}: {plain}" if topic else plain)


def said_of(name: str, text: str) -> dict[str, Any] | None:
    """Return the fact of a predicate without its subject, such as `lives in Ghent`; None for another text."""
    verb = _VERB.match(text)
    return None if verb is None else _triple(name, verb["verb"].casefold(), verb["value"])


def preference(text: str, subject: str) -> dict[str, Any] | None:
    """Return the payload of a line below a heading of preferences: `Hates phone calls`, `Tone: dry`, `No emojis`.

    None for a line without words.
    """
    liked, keyed = liking(text, subject), keyed_statement(text, subject)
    if liked is not None:
        return liked
    if keyed is not None:
        return _preference(text, subject, keyed["predicate"].removesuffix(" is"), keyed["object"])
    value = plain_text(text).removesuffix(".")[:STATEMENT_CHARS_MAX]
    return None if note(text, subject) is None else _preference(text, subject, value, value)


def liking(text: str, subject: str) -> dict[str, Any] | None:
    """Return the payload of a preference such as `Hates phone calls`; None for a line that does not say one."""
    plain = plain_text(text)
    about = _USER.match(plain)
    if about is not None:
        plain = about["rest"].strip()
    elif plain.casefold().startswith(f"{subject.casefold()} "):
        plain = plain[len(subject) :].strip()
    match = _LIKING.match(plain)
    if match is None:
        return None
    return _preference(text, subject, match["value"].removesuffix("."), match["verb"].casefold())


def _preference(text: str, subject: str, key: str, value: str) -> dict[str, Any]:
    whose = {} if subject == "user" else {"subject": subject}
    fields = {"category": category_of(text), "key": key[:NAME_CHARS_MAX], "value": value, "source_type": "inferred"}
    return fields | whose


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


def plain_text(text: str) -> str:
    """Return a text without Markdown's emphasis, with single spaces."""
    return _SPACE.sub(" ", _MARKS.sub("", text)).strip()
