"""Task notation: the dates and tags of a task, as Obsidian Tasks, Dataview and Logseq write them."""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.events.late_pattern import late_pattern

_DAY = r"(?P<day>\d{4}-\d{2}-\d{2})"
#: `📅 2026-12-01`, `[due:: 2026-12-01]` and `DEADLINE: <2026-12-01 Tue .+1w>`.
_DATES = (
    late_pattern(rf"\s{{0,4}}(?P<name>[📅📆🗓⏳⌛🛫➕✅❌])\ufe0f? ?{_DAY}"),
    late_pattern(rf"\s{{0,4}}[\[(]?\b(?P<name>due|scheduled|start|created|completion|cancelled):: ?{_DAY}[\])]?"),
    late_pattern(rf"\s{{0,4}}\b(?P<name>DEADLINE|SCHEDULED): <{_DAY}[^<>\n]{{0,40}}>"),
)
_PLANNED = late_pattern(r"(?:DEADLINE|SCHEDULED): <")
#: What each sign says; the days on which a task was written down and done are no part of its words.
_SAYS = {
    **dict.fromkeys(("📅", "📆", "🗓", "due", "DEADLINE"), "due"),
    **dict.fromkeys(("⏳", "⌛", "scheduled", "SCHEDULED"), "scheduled for"),
    **dict.fromkeys(("🛫", "start"), "from"),
}
_ENDS = frozenset(("✅", "❌", "completion", "cancelled"))
#: Tags at the end of a task; one within its words is a word of them.
_TAG = r"#(?!\d{1,60}(?!\S))(?=\w)"
_LAST_TAGS = late_pattern(rf"(?:\s{{1,4}}{_TAG}[\w/-]{{1,60}}){{1,20}}$")
_TAG_SIGN = late_pattern(rf"(?<!\S){_TAG}")


class Notation(NamedTuple):
    """A task without its notation, and what that says."""

    words: str
    #: Such as `due 2026-12-01`, and tags.
    details: tuple[str, ...]
    #: The day on which it was ticked or cancelled, in ISO 8601; None when the line has none.
    ended_on: str | None


def read_notation(text: str) -> Notation:
    """Return the words of a task, and what its signs say."""
    said: dict[str, str] = {}
    ended_on: str | None = None

    def read(match: re.Match[str]) -> str:
        nonlocal ended_on
        name = match["name"]
        if name in _ENDS:
            ended_on = match["day"]
        elif name in _SAYS:
            said.setdefault(_SAYS[name], match["day"])
        return ""

    for pattern in _DATES:
        text = pattern.sub(read, text)
    text = text.strip()
    tags = _LAST_TAGS.search(text)
    words = _TAG_SIGN.sub("", text if tags is None else text[: tags.start()])
    names = [] if tags is None else [tag.removeprefix("#") for tag in tags[0].split()]
    return Notation(words, (*(f"{what} {day}" for what, day in said.items()), *names), ended_on)


def without_end(text: str) -> str:
    """Return a task without the day on which it was ticked."""
    for pattern in _DATES:
        text = pattern.sub(lambda match: "" if match["name"] in _ENDS else match[0], text)
    return text


def is_planning(line: str) -> bool:
    """Return whether a line below a task of Logseq has its dates."""
    return _PLANNED.match(line) is not None
