"""Lives: counts what memory knows of the twelve conversations of `lives/`, and how it answers their questions.

    .venv/bin/python ops/trials/run_lives.py [--folder FOLDER] [--lines FILE] [--only NAME]

Prints the share of important facts whose words are in one line of knowledge, the changes whose newest value comes
first, the questions that are answered, the unanswerable ones that are silent, and the resolved days that are right.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from recollect import Recollect
from recollect.projections.text.statement_lines import fact_line, preference_line, relationship_line

_LIVES = Path(__file__).parent / "lives"
_DAY = re.compile(r"\((\d{4}-\d\d-\d\d)\)")
#: Lists that hold knowledge.
_LISTS = ("facts", "preferences", "relationships", "entities", "procedures")


class Clock:
    """The present time of retrievals, set by each question."""

    def __init__(self) -> None:
        self.now = datetime.fromisoformat("2026-01-01T00:00:00+00:00")

    def __call__(self) -> datetime:
        return self.now


def record(memory: Recollect, name: str, life: Mapping[str, Any]) -> None:
    """Append the messages of a conversation and settle after each session."""
    session = None
    for number, event in enumerate(life["events"]):
        at = datetime.fromisoformat(event["at"])
        if session not in (None, event["session"]):
            memory.settle(name, now=at)
        session = event["session"]
        actor = {"actor": event["speaker"]} if event["role"] == "user" else {}
        memory.append(
            name,
            {
                "id": f"{name}:{number}",
                "type": "message.added",
                "occurred_at": event["at"],
                "session_id": event["session"],
                "payload": {"role": event["role"], "text": event["text"]},
                **actor,
            },
        )
    memory.settle(name, now=datetime.fromisoformat(life["events"][-1]["at"]) + timedelta(hours=1))


def knowledge_lines(memory: Recollect, name: str) -> Iterator[str]:
    """Yield the active knowledge of a namespace, a line each."""
    listed: Any = memory.list
    for kind in _LISTS:
        after: dict[str, str] = {}
        while True:
            page = listed(name, kind, limit=200, **after)
            for row in page["items"]:
                if row.get("status", "active") in ("active", "stale"):
                    yield _line(kind, row)
            if not page.get("next"):
                break
            after = {"after": page["next"]}


def _line(kind: str, row: Mapping[str, Any]) -> str:
    match kind:
        case "facts":
            return row["statement"] or fact_line(row["subject"], row["predicate"], row["object"])
        case "preferences":
            return preference_line(row["subject"], row["category"], row["name"], row["value"])
        case "relationships":
            return relationship_line(row["source"], row["type"], row["target"])
        case "entities":
            return f"{row['name']} {row.get('description') or ''}"
        case _:
            return f"{row['name']}: {row['trigger']}"


def score(memory: Recollect, clock: Clock, name: str, life: Mapping[str, Any], lines: list[str]) -> Counter[str]:
    """Return the counts of one conversation."""
    counts: Counter[str] = Counter()
    folded = [line.casefold() for line in lines]
    for fact in life["facts"]:
        counts["facts"] += 1
        counts["facts known"] += any(all(word.casefold() in line for word in fact["words"]) for line in folded)
    for question in life["questions"]:
        clock.now = datetime.fromisoformat(question["at"])
        answer = memory.retrieve(name, question["query"], speaker=question["speaker"], no_store=True)
        context = answer.context.casefold()
        counts["items"] += len(answer.items)
        if question.get("no_answer"):
            counts["unanswerable"] += 1
            counts["unanswerable silent"] += not answer.items
            continue
        counts["questions"] += 1
        counts["questions answered"] += all(word.casefold() in context for word in question.get("has", ())) and all(
            any(word.casefold() in context for word in words) for words in question.get("has_any") or ()
        )
    for change in life["changes"]:
        clock.now = datetime.fromisoformat(change["at"])
        answer = memory.retrieve(name, change["query"], speaker=change["speaker"], no_store=True)
        texts = [item.text.casefold() for item in answer.items]
        new = next((place for place, text in enumerate(texts) if change["new"].casefold() in text), None)
        old = next((place for place, text in enumerate(texts) if change["old"].casefold() in text), len(texts))
        counts["changes"] += 1
        counts["changes newest first"] += new is not None and new <= old
    return counts


def main() -> None:
    """Run the conversations and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=_LIVES, help="other conversations in this form: `lives-2`")
    parser.add_argument("--lines", type=Path, help="file for the lines of knowledge")
    parser.add_argument("--only", default="", help="conversations whose names begin with this")
    arguments = parser.parse_args()
    total: Counter[str] = Counter()
    written: list[str] = []
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, Recollect(folder, workers=False, clock=clock) as memory:
        for path in sorted(arguments.folder.glob(f"{arguments.only}*.json")):
            life = json.loads(path.read_text(encoding="utf-8"))
            record(memory, path.stem, life)
            lines = [*knowledge_lines(memory, path.stem)]
            counts = score(memory, clock, path.stem, life, lines)
            print(f"{path.stem}: {dict(counts)}, {len(lines)} lines of knowledge", flush=True)
            written += [f"{path.stem}: {line}" for line in lines]
            total += counts
    for name in ("facts known", "changes newest first", "questions answered", "unanswerable silent", "items"):
        print(f"{name}: {total[name]} of {total[name.partition(' ')[0]]}")
    if arguments.lines:
        arguments.lines.write_text("\n".join(written), encoding="utf-8")


if __name__ == "__main__":
    main()
