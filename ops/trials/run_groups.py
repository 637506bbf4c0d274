"""Groups: places of the evidence for questions that named people of a group chat ask about themselves and each other.

.venv/bin/python ops/trials/run_groups.py [--show] [--only NAME] [--unnamed]
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recollect import Recollect

_GROUPS = Path(__file__).parent / "groups"
_MESSAGE = re.compile(r"(\d+) ([^:]+): (.*?)(?: #(\w+))?$")
_DEPTHS = (1, 3, 10)
_START = datetime(2026, 2, 2, 9, tzinfo=UTC)


def record(memory: Recollect, name: str, lines: list[str]) -> dict[str, str]:
    """Append the messages of a chat, and return the id of each label."""
    ids: dict[str, str] = {}
    for number, line in enumerate(lines):
        match = _MESSAGE.match(line)
        if match is None:
            raise ValueError(f"{name}: no message: {line}")
        day, speaker, text, label = match.groups()
        at = _START + timedelta(days=int(day), minutes=number)
        id = f"{name}:{number}"
        event = {
            "id": id,
            "type": "message.added",
            "session_id": f"day {day}",
            "occurred_at": at.isoformat(),
            "payload": {"role": "user", "name": speaker, "text": text},
        }
        memory.append(name, event)
        if label:
            ids[label] = id
    memory.settle(name, now=_START + timedelta(days=14))
    return ids


def score(memory: Recollect, name: str, line: str, ids: dict[str, str], *, named: bool, show: bool) -> Counter[str]:
    """Return the counts of one question."""
    asked, evidence, wrong = (part.strip() for part in line.removeprefix("?").split("|"))
    speaker, _, query = asked.partition(": ")
    result = memory.retrieve(name, query, speaker=speaker if named else None, no_store=True)
    sources = [set(item.source_events) for item in result.items]
    counts = Counter({"questions": 1, "items": len(sources)})
    expected = [ids[label] for label in evidence.split()]
    for depth in _DEPTHS:
        counts[f"first {depth}"] += any(id in events for id in expected for events in sources[:depth])
    first = next((place for place, events in enumerate(sources) if not events.isdisjoint(expected)), len(sources))
    others = {ids[label] for label in wrong.split() if label != "-"}
    counts["wrong before"] += sum(not events.isdisjoint(others) for events in sources[:first])
    counts["wrong"] += sum(not events.isdisjoint(others) for events in sources)
    if show and first:
        print(f"  {asked} -> place {first + 1}")
        for item in result.items[:5]:
            print(f"      {item.kind} {item.score:.2f} {item.speaker or ''}: {item.text[:90]}")
    return counts


def main() -> None:
    """Run the chats and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the questions whose first item is wrong")
    parser.add_argument("--only", default="", help="chats whose names begin with this")
    parser.add_argument("--unnamed", action="store_true", help="ask without the name of the speaker")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Recollect(folder, workers=False) as memory:
        for path in sorted(_GROUPS.glob(f"{arguments.only}*.txt")):
            lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line]
            ids = record(memory, path.stem, [line for line in lines if not line.startswith("?")])
            total: Counter[str] = Counter()
            for line in lines:
                if line.startswith("?"):
                    total += score(memory, path.stem, line, ids, named=not arguments.unnamed, show=arguments.show)
            print(f"{path.stem}: {dict(total)}", flush=True)


if __name__ == "__main__":
    main()
