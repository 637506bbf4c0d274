"""Markdown notes: the lines of a curated memory as facts, with the heading they stand under."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from recollect.api.importers.records import ReadOptions, Record, Skipped, knowledge, short_hash
from recollect.api.importers.statements import bullet_text, imported_fact, is_keyed, statement

_HEADING = re.compile(r"^(#{1,6})\s{1,4}(?P<title>\S.*?)\s{0,4}#{0,6}$")
#: `**Work context**` alone on a line is a heading, too.
_BOLD_HEADING = re.compile(r"^\*\*(?P<title>[^*\n]{1,80})\*\*:?$")
_NUMBER = re.compile(r"^\d{1,3}[.)]\s{1,4}")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s{1,4}(?=[A-ZÀ-Þ\"“*])")
_FENCE = re.compile(r"^(?:```|~~~)")
#: Characters of a line from which the next one may continue it.
_WRAPPED_CHARS_MIN = 50
_COMMENT = re.compile(r"<!--[^>]{0,1000}-->")
_RULE = re.compile(r"^(?:-{3,}|\*{3,}|_{3,})$")
#: Headings that say nothing about the lines below them.
_GENERAL = frozenset({"memory", "memories", "user", "user profile", "profile", "about", "notes", "basics", "identity"})


def note_lines(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield the statements of a text as (heading, line): bullets with what is wrapped below them, and sentences."""
    heading: str | None = None
    in_fence = False
    for block in _blocks(text):
        if _FENCE.match(block):
            in_fence = not in_fence
            continue
        title = _HEADING.match(block) or _BOLD_HEADING.match(block)
        if in_fence or _RULE.match(block):
            continue
        if title is not None:
            heading = _NUMBER.sub("", title["title"].replace("**", "")).strip(" :")
            continue
        bullet = bullet_text(block)
        if bullet is not None:
            yield heading, bullet
        else:
            for sentence in _SENTENCE_END.split(block):
                if sentence.strip():
                    yield heading, sentence.strip()


def topic_of(heading: str | None) -> str | None:
    """Return a heading as the topic of a note; None for one that says nothing."""
    return None if heading is None or heading.casefold() in _GENERAL else heading


def note_facts(text: str, options: ReadOptions, *, key: str, occurred_at: datetime | None = None) -> Iterator[Record]:
    """Yield the lines of a text as facts about the user, each named by its words.

    Parameters:
        key: the name of the text within the format.
        occurred_at: when it was written; None when it has no date.
    """
    for heading, line in note_lines(text):
        fact = statement(line, options.subject, topic=topic_of(heading))
        if fact is None:
            yield Skipped(reason="line without a statement")
            continue
        name = f"{key}:{short_hash(*map(str, fact.values()))}"
        yield knowledge(
            name,
            "fact.stated",
            imported_fact(fact, stated_at=occurred_at),
            where=f"{key}: {line[:60]}",
            occurred_at=occurred_at,
        )


def _blocks(text: str) -> Iterator[str]:
    """Yield lines; the lines of a wrapped paragraph or bullet are put together."""
    waiting: list[str] = []
    for line in [*_COMMENT.sub("", text).splitlines(), ""]:
        stripped = line.strip()
        is_alone = any(pattern.match(stripped) for pattern in (_HEADING, _BOLD_HEADING, _RULE, _FENCE))
        if waiting and (is_alone or not _continues(waiting[-1], line)):
            yield " ".join(waiting)
            waiting = []
        if is_alone:
            yield stripped
        elif stripped:
            waiting.append(stripped if waiting else line.rstrip())
    if waiting:
        yield " ".join(waiting)


def _continues(before: str, line: str) -> bool:
    """Return whether a line continues the one before, which was wrapped: it is long, or the line is indented below."""
    if not line.strip() or bullet_text(line) is not None or is_keyed(line):
        return False
    is_indented = line[:1].isspace() and not before[:1].isspace()
    return is_indented or (len(before) >= _WRAPPED_CHARS_MIN and not before.endswith((".", "!", "?", ":")))
