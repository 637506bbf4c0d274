"""Case book: recall, precision and truth on the eight long conversations of `tests/data/case_book`.

    .venv/bin/python ops/trials/run_case_book.py [--part given] [--only NAME] [--contexts FILE]

Prints totals by class of question, then facts, days, instructions and forgotten values. The part `blind` is for totals
alone: whoever changes the product reads neither its files nor its contexts.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from run_lives import Clock, knowledge_lines
from support.case_book import Conversation, Message, Question, holds, holds_each, read_case_book

from recollect import Recollect

#: The day of the message is not a resolved day; neither is that of a later message.
_TELLING = re.compile(r"^- \[[^\]]*\] ?|\(said \d{4}-\d\d-\d\d\)")
_LATER = re.compile(r"\((?:later|no longer true|replaced|ended)\b.*$")
_DAYS = re.compile(r"(\d{4}-\d\d)(-\d\d)?\b(?: to (\d{4}-\d\d-\d\d))?")
_SHOWN_DAYS = re.compile(r" ?\(\d{4}-\d\d(?:-\d\d(?: to \d{4}-\d\d-\d\d)?)?\)")
_FENCES = ("<recalled-memory-", "</recalled-memory-", "Today: ", "###")
#: Enough of a message to recognise it in a line of a context.
_BEGINNING = 60
_TOTALS = (
    *("facts", "knowledge lines", "instructions", "withdrawn instructions that hold", "other instructions"),
    *("contexts", "contexts with a forgotten value", "days shown", "false days", "marks of a later message"),
)
_COLUMNS = (
    "questions",
    "has",
    "first line",
    "first item",
    "lacks",
    "old",
    "silent",
    "short",
    "items",
    "tokens",
    "lines",
)


class Recalled(Struct, frozen=True, kw_only=True):
    """What the memory answered to a question."""

    #: Lines of the context without its fence, headings and the line of the day.
    lines: list[str]
    #: Texts of the items, best first.
    items: list[str]
    tokens: int


def record(memory: Recollect, name: str, book: Conversation) -> None:
    """Append the messages and settle after each session, as workers do."""
    last = book.events[0].at
    for session, turns in groupby(enumerate(book.events), key=lambda turn: turn[1].session):
        for number, message in turns:
            payload = {"role": message.role, "name": message.speaker or "Bot", "text": message.text}
            event: dict[str, Any] = {"id": f"{name}:{number}", "type": "message.added", "session_id": session}
            memory.append(name, {**event, "occurred_at": message.at.isoformat(), "payload": payload})
            last = message.at
        memory.settle(name, now=last + timedelta(minutes=1))


def recall(memory: Recollect, clock: Clock, name: str, book: Conversation, question: Question) -> Recalled:
    """Ask a day after the last message in the speaker's zone; a turn of chat comes a minute after it."""
    last = book.events[-1]
    own = next(message for message in reversed(book.events) if message.speaker == question.speaker)
    zone = own.at.tzinfo
    if question.group == "chat":
        clock.now = (last.at + timedelta(minutes=1)).astimezone(zone)
        answer = memory.retrieve(
            name, question.query, speaker=question.speaker, mode="passive", session_id=last.session, no_store=True
        )
    else:
        clock.now = (last.at + timedelta(days=1)).astimezone(zone)
        answer = memory.retrieve(name, question.query, speaker=question.speaker, no_store=True)
    lines = [line for line in answer.context.splitlines() if line.strip() and not line.startswith(_FENCES)]
    return Recalled(lines=lines, items=[item.text for item in answer.items], tokens=answer.tokens if lines else 0)


def score(question: Question, recalled: Recalled) -> Counter[str]:
    """Return the counts of an answer; each `… of` is the count of what was checked."""
    counts = Counter({"questions": 1, "items": len(recalled.items), "tokens": recalled.tokens})
    # The day of the message is in each line, so it is not evidence of an answer.
    lines = [_TELLING.sub("", line) for line in recalled.lines]
    context = "\n".join(lines)
    if question.is_silent:
        return counts + Counter({"silent": int(not recalled.lines), "silent of": 1})
    matters = [part for group in question.has for part in group]
    useful = [any(holds(line, part) for part in matters) for line in lines]
    lacked = [not holds(context, part) for part in question.lacks]
    old = [_old_is_behind(recalled.items, context, question.has[0], part) for part in question.old]
    short = question.max_items is not None and len(recalled.items) <= question.max_items
    return counts + Counter(
        {
            "has": int(holds_each(context, question.has)),
            "has of": 1,
            "first line": int(useful[:1] == [True]),
            "first line of": 1,
            "first item": int(any(holds(text, part) for text in recalled.items[:1] for part in matters)),
            "first item of": 1,
            "lacks": sum(lacked),
            "lacks of": len(lacked),
            "old": sum(old),
            "old of": len(old),
            "short": int(short),
            "short of": int(question.max_items is not None),
            "lines": sum(useful),
            "lines of": len(useful),
        }
    )


def _old_is_behind(items: Sequence[str], context: str, new: Sequence[str], old: str) -> bool:
    """Return whether an earlier value is absent, or the new one is there and not behind it."""
    if not holds(context, old):
        return True
    new_rank, old_rank = _rank(items, new), _rank(items, [old])
    return new_rank is not None and (old_rank is None or new_rank <= old_rank)


def _rank(items: Sequence[str], parts: Sequence[str]) -> int | None:
    return next((rank for rank, text in enumerate(items) if any(holds(text, part) for part in parts)), None)


def shown_days(book: Conversation, lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line that shows resolved days, and whether all of them are right."""
    for line in lines:
        body = _LATER.sub("", _TELLING.sub("", line))
        days = [_span(day) for day in _DAYS.finditer(body)]
        if days:
            plain = _SHOWN_DAYS.sub("", body)
            sources = [event for event in book.events if event.text[:_BEGINNING].splitlines()[0] in plain]
            yield line, all(_is_right(sources or book.events, *day) for day in days)


def _span(day: re.Match[str]) -> tuple[date, date]:
    """Return the first and the last day of a day, a month or a span of days."""
    if day[2] is None:
        first = date.fromisoformat(f"{day[1]}-01")
        return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    first = date.fromisoformat(f"{day[1]}{day[2]}")
    return first, date.fromisoformat(day[3]) if day[3] else first


def _is_right(sources: Sequence[Message], first: date, last: date) -> bool:
    spans = [span for event in sources for span in event.spans()]
    return any((begin <= first and last <= end) or (first <= begin and end <= last) for begin, end in spans)


def standing_rules(memory: Recollect, name: str) -> list[str]:
    """Return the standing instructions that are active, a line each."""
    rows: Any = memory.list(name, "preferences", limit=200)["items"]
    active = [row for row in rows if row.get("standing") and row.get("status", "active") == "active"]
    return [f"{row['name']} {row['value']}" for row in active]


def score_knowledge(memory: Recollect, name: str, book: Conversation) -> Counter[str]:
    """Return the counts of facts and instructions of a conversation."""
    # A name alone, an entity without a description, states no fact.
    lines = [line for line in knowledge_lines(memory, name) if not line.endswith(" ")]
    rules = standing_rules(memory, name)
    counts = Counter({"facts of": len(book.facts), "knowledge lines": len(lines)})
    counts["facts"] = sum(any(holds_each(line, fact.words) for line in lines) for fact in book.facts)
    for instruction in book.instructions:
        kind = "instructions" if instruction.holds else "withdrawn instructions that hold"
        counts[kind] += any(holds_each(rule, instruction.words) for rule in rules)
        counts[f"{kind} of"] += 1
    wanted = [instruction.words for instruction in book.instructions]
    counts["other instructions"] = sum(not any(holds_each(rule, words) for words in wanted) for rule in rules)
    return counts


def table(groups: dict[str, Counter[str]]) -> str:
    """Return the rows of the classes: shares as counts, items and tokens as means, lines in percent."""
    head = f"{'class':13}" + "".join(f"{column:>12}" for column in _COLUMNS)
    return "\n".join([head, *(f"{name:13}" + _row(counts) for name, counts in groups.items())])


def _row(counts: Counter[str]) -> str:
    asked = counts["questions"]
    cells: list[str] = [str(asked)]
    for column in _COLUMNS[1:]:
        of = counts[f"{column} of"]
        if column in ("items", "tokens"):
            cells.append(f"{counts[column] / asked:.1f}")
        elif column == "lines":
            cells.append(f"{100 * counts[column] / of:.0f} %" if of else "-")
        else:
            cells.append(f"{counts[column]}/{of}" if of else "-")
    return "".join(f"{cell:>12}" for cell in cells)


def main() -> None:
    """Run the conversations and print the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("given", "blind", "*"), default="*", help="both parts by default")
    parser.add_argument("--only", default="", help="conversations whose names begin with this")
    parser.add_argument("--contexts", type=Path, help="file for the contexts; for builders with --part given only")
    arguments = parser.parse_args()
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    pages: list[str] = []
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, Recollect(folder, workers=False, clock=clock) as memory:
        for name, book in read_case_book(arguments.part).items():
            if not name.startswith(arguments.only):
                continue
            record(memory, name, book)
            total += score_knowledge(memory, name, book)
            for question in book.questions:
                recalled = recall(memory, clock, name, book, question)
                counts = score(question, recalled)
                days = [*shown_days(book, recalled.lines)]
                leaks = [part for part in book.forgotten if any(holds(line, part) for line in recalled.lines)]
                total.update({"days shown": len(days), "false days": sum(not right for _, right in days)})
                total["marks of a later message"] += sum(_LATER.search(line) is not None for line in recalled.lines)
                total.update({"contexts": 1, "contexts with a forgotten value": bool(leaks)})
                groups[question.group] += counts
                groups["all"] += counts
                pages.append(_page(name, question, recalled, [line for line, right in days if not right], leaks))
    order = sorted(groups, key=lambda group: group == "all")
    print(table({group: groups[group] for group in order}))
    for name in _TOTALS:
        print(f"{name}: {total[name]}" + (f" of {total[f'{name} of']}" if f"{name} of" in total else ""))
    if arguments.contexts:
        arguments.contexts.write_text("\n".join(pages), encoding="utf-8")


def _page(name: str, question: Question, recalled: Recalled, false: list[str], leaks: list[str]) -> str:
    marks = [*(f"FALSE DAY {line}" for line in false), *(f"FORGOTTEN {part}" for part in leaks)]
    checks = f"has {question.has} lacks {question.lacks} old {question.old}"
    return "\n".join(
        [f"## {name} [{question.group}] {question.speaker}: {question.query}", checks, *marks, *recalled.lines, ""]
    )


if __name__ == "__main__":
    main()
