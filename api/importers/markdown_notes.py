"""Markdown notes: the lines of a note with the headings above them, and what they say as facts and notes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from recollect.api.importers.imported_people import stated_people
from recollect.api.importers.imported_records import (
    ImportedEnding,
    ImportedEvent,
    ReadOptions,
    Record,
    Skipped,
    as_moment,
    knowledge,
    short_hash,
)
from recollect.api.importers.imported_statements import (
    Task,
    bullet_text,
    imported_fact,
    is_hint,
    is_keyed,
    note,
    preference,
    statement,
    task_fact,
    task_of,
)
from recollect.api.importers.task_notation import is_planning
from recollect.events.errors import InvalidInput
from recollect.events.late_pattern import late_pattern

_HEADING = late_pattern(r"^(?P<level>#{1,6})\s{1,4}(?P<title>\S.*?)\s{0,4}#{0,6}$")
#: `**Work context**` and `Morning:` alone on a line are headings, too.
_BOLD_HEADING = late_pattern(r"^\*\*(?P<title>[^*\n]{1,80})\*\*:?$")
_LABEL = late_pattern(r"^(?P<title>[^\W\d_][^:\n]{0,60}):$")
#: The level of a heading without `#`, and of a bullet that ends with a colon.
_LABEL_LEVEL, _BULLET_LEVEL = 7, 8
_NUMBER = late_pattern(r"^\d{1,3}[.)]\s{1,4}")
_SENTENCE_END = late_pattern(r"(?<=[.!?])\s{1,4}(?=[A-ZÀ-Þ\"“*])")
_MARK = "---"
#: Lines of front matter that are read; one of a concept of OKF has twenty.
_LINES_MAX = 1_000
_ITEM = late_pattern(r"^\s{0,8}- (?P<value>\S.*)$")
_FENCE = late_pattern(r"^(?:```|~~~)")
#: Characters of a line from which the next one may continue it.
_WRAPPED_CHARS_MIN = 50
_COMMENT = late_pattern(r"<!--[^>]{0,1000}-->")
_RULE = late_pattern(r"^(?:-{3,}|\*{3,}|_{3,})$")
#: Headings that do not describe the lines below them.
_GENERAL = frozenset(
    {"memory", "memories", "user", "user profile", "profile", "about", "notes", "basics", "identity", "context"}
)
#: Headings of attributes of the user; below any other one, `Age: 9` may be about another person.
_OF_USER = frozenset({"work", "work context", "personal", "personal context", "home", "health", "contact", "about me"})

#: Headings of tasks that say nothing of them.
_OF_TASKS = frozenset({"task", "tasks", "to do", "to-do", "todo", "todos", "open", "next", "next steps"})


def note_lines(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the statements of a text as (headings, line): bullets with what is wrapped below them, and sentences.

    The title of the text, a heading of the first level before anything else, is not among the headings.
    """
    headings: dict[int, str] = {}
    in_fence = is_begun = False
    for block in _blocks(text):
        if _FENCE.match(block):
            in_fence = not in_fence
            continue
        if in_fence or _RULE.match(block) or is_hint(block):
            continue
        level = _level(block)
        if level is None:
            bullet = bullet_text(block)
            is_nested = block[:1].isspace()
            if not is_nested:
                headings.pop(_BULLET_LEVEL, None)
            path = tuple(headings[number] for number in sorted(headings))
            if bullet is None:
                yield from ((path, sentence.strip()) for sentence in _SENTENCE_END.split(block) if sentence.strip())
            elif bullet.replace("*", "").rstrip().endswith(":"):
                headings[_BULLET_LEVEL] = _title(bullet)
            elif bullet:
                yield path, bullet
        else:
            headings = {number: title for number, title in headings.items() if number < level[0]}
            if level[0] > 1 or is_begun:
                headings[level[0]] = level[1]
        is_begun = True


def _level(block: str) -> tuple[int, str] | None:
    """Return the level and the title of a heading; None for another block."""
    heading = _HEADING.match(block)
    if heading is not None:
        return len(heading["level"]), _title(heading["title"])
    label = _BOLD_HEADING.match(block) or _LABEL.match(block)
    return None if label is None else (_LABEL_LEVEL, _title(label["title"]))


def _title(text: str) -> str:
    return _NUMBER.sub("", text.replace("**", "")).strip(" :")


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields of a concept and its body. Values are read as JSON, which is YAML, as lists and as plain text.

    Raises:
        InvalidInput: the text does not begin with front matter.
    """
    lines = text.split("\n")
    if lines[0].strip() != _MARK:
        raise InvalidInput("has no front matter", field="concept")
    fields: dict[str, Any] = {}
    items: list[Any] = []
    for number, line in enumerate(lines[1:_LINES_MAX], start=1):
        if line.strip() == _MARK:
            return fields, "\n".join(lines[number + 1 :])
        item = _ITEM.match(line)
        name, colon, value = line.partition(":")
        if item is not None:
            items.append(_value(item["value"]))
        elif colon and not name.startswith((" ", "#")):
            # A field without a value has the list on the lines below.
            items = []
            fields[name.strip()] = _value(value.strip()) if value.strip() else items
    raise InvalidInput("its front matter has no end", field="concept")


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def split_title(text: str) -> tuple[str | None, str]:
    """Return the heading that a text begins with, and the text below it; the whole text when it has no other."""
    first, _, rest = text.partition("\n")
    heading = _HEADING.match(first.strip())
    return (None, text) if heading is None else (_title(heading["title"]), rest.strip() or text)


def topic_of(headings: tuple[str, ...]) -> str | None:
    """Return the headings of a line as the topic of a note; None when they do not describe it."""
    return " / ".join(title for title in headings if title.casefold() not in _GENERAL) or None


def note_task(
    headings: tuple[str, ...],
    task: Task,
    name: str,
    subject: str,
    occurred_at: datetime | None = None,
    otherwise: ImportedEvent | None = None,
) -> Iterator[Record]:
    """Yield an open task as a fact of the type task, a ticked one as the end of that fact.

    A task that was moved to another note, or has another date, is open in the last form alone.

    Parameters:
        name: the name of the note; within it, a task is known by its line.
        otherwise: what is imported of a ticked task that no earlier import had open.
    """
    key, where = f"{name}:task:{short_hash(task.line)}", f"{name}: {task.line[:60]}"
    if task.is_open:
        topics = tuple(title for title in headings if title.casefold() not in _OF_TASKS)
        tags = (detail for detail in task.details if detail.casefold() not in _OF_TASKS)
        fact = task_fact(task.text, subject, details=(topic_of(topics), *tags))
        # A note without a date takes over the task of one with a date: both are inferred.
        same = {"source_type": "inferred", "conflict_key": f"task {short_hash(subject, task.text)}"}
        stated = imported_fact(fact, stated_at=occurred_at) | same
        yield knowledge(key, "fact.stated", stated, where=where, occurred_at=occurred_at)
    ended_at = as_moment(task.ended_on)
    yield ImportedEnding(key=key, where=where, is_open=task.is_open, ended_at=ended_at, otherwise=otherwise)


def note_facts(text: str, options: ReadOptions, *, key: str, occurred_at: datetime | None = None) -> Iterator[Record]:
    """Yield the lines of a text as facts, preferences, persons and notes about the user, each named by its words.

    Parameters:
        key: the name of the text within the format.
        occurred_at: when it was written; None when it has no date.
    """
    for headings, line in note_lines(text):
        name = f"{key}:{short_hash(topic_of(headings) or '', line)}"
        where = f"{key}: {line[:60]}"
        task = task_of(line)
        if task is not None:
            yield from note_task(headings, task, key, options.subject, occurred_at)
            if task.is_open:
                continue
        stated = _stated(headings, line, options.subject, occurred_at)
        if not stated:
            yield Skipped(reason="line without words")
        for number, (kind, payload) in enumerate(stated):
            yield knowledge(f"{name}:{number}" if number else name, kind, payload, where=where, occurred_at=occurred_at)


def _stated(
    headings: tuple[str, ...], line: str, subject: str, stated_at: datetime | None
) -> list[tuple[str, dict[str, Any]]]:
    """Return the types and the payloads of what a line states; nothing for a line without words."""
    if _is_of_preferences(headings):
        stated = preference(line, subject)
        return [] if stated is None else [("preference.stated", stated)]
    is_of_user = all(title.casefold() in _GENERAL | _OF_USER for title in headings)
    people = stated_people(line, subject, headings, is_of_user=is_of_user)
    if people:
        return people
    fact = statement(line, subject, is_of_user=is_of_user) or note(line, subject, topic=topic_of(headings))
    return [] if fact is None else [("fact.stated", imported_fact(fact, stated_at=stated_at))]


def _is_of_preferences(headings: tuple[str, ...]) -> bool:
    return any("preference" in title.casefold() for title in headings)


def _blocks(text: str) -> Iterator[str]:
    """Yield lines; the lines of a wrapped paragraph or bullet are put together."""
    waiting: list[str] = []
    for line in [*_COMMENT.sub("", text).splitlines(), ""]:
        stripped = line.strip()
        is_alone = any(pattern.match(stripped) for pattern in (_HEADING, _BOLD_HEADING, _LABEL, _RULE, _FENCE))
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
    if is_planning(line.strip()):
        return True
    if not line.strip() or bullet_text(line) is not None or is_keyed(line):
        return False
    is_indented = line[:1].isspace() and not before[:1].isspace()
    return is_indented or (len(before) >= _WRAPPED_CHARS_MIN and not before.endswith((".", "!", "?", ":")))
