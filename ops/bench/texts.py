"""Events of any number from the demo conversation: real words, each text a little different."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

#: When questions are asked: after everything that was said.
ASKED_AT = datetime(2026, 12, 1, tzinfo=UTC)
#: Questions about the demo conversation.
QUESTIONS = (
    "Where does Tobias live now?",
    "What is the name of the cat?",
    "Which exhibition opens in March?",
    "Who is allergic to something?",
    "What did we put on the list?",
    "When is the next trip?",
    "Which job does Juniper help with?",
    "What happened on Lark Street?",
)
_DEMO = Path(__file__).parents[1] / "demo" / "conversation.jsonl"


def messages() -> list[dict[str, Any]]:
    """Return the messages of the demo conversation."""
    return _messages([json.loads(line) for line in _DEMO.read_text(encoding="utf-8").splitlines()])


def varied(total: int) -> Iterator[dict[str, Any]]:
    """Yield `total` events: pairs of messages put together in ever other ways, 20 to 60 words each."""
    base = messages()
    for number in range(total):
        first, second = base[number % len(base)], base[(number * 7 + number // len(base)) % len(base)]
        payload = first["payload"] | {"text": f"{first['payload']['text']} {second['payload']['text']}"}
        session = f"{first['session_id']}.{number // len(base)}"
        yield {"id": f"bench:{number}", "type": "message.added", "session_id": session, "payload": payload}


def unnamed(total: int) -> list[dict[str, Any]]:
    """Return `total` events without ids, as a bot sends them."""
    return [{name: value for name, value in event.items() if name != "id"} for event in varied(total)]


def real(total: int) -> Iterator[dict[str, Any]]:
    """Yield `total` events of real conversations, again and again under new ids; of the demo where there are none."""
    base = _conversations()
    for number in range(total):
        event, lap = base[number % len(base)], number // len(base)
        session = event.get("session_id")
        yield event | {"id": f"{number}", **({"session_id": f"{session}.{lap}"} if session else {})}


def real_count() -> int:
    """Return how many events `real` has before it repeats itself."""
    return len(_conversations())


def sets(messages_max: int) -> dict[str, list[dict[str, Any]]]:
    """Return the first messages of short chats (LoCoMo) and of long answers (BEAM); or of the demo."""
    found = {name: _messages(_events(pattern)) for name, pattern in (("locomo", "locomo-*"), ("beam", "beam-*"))}
    return {name: events[:messages_max] for name, events in found.items() if events} or {"demo": messages()}


@cache
def _conversations() -> list[dict[str, Any]]:
    return _events("locomo-*") or messages()


def _events(pattern: str) -> list[dict[str, Any]]:
    """Return the events of the files of the test data with such a name; none where there are none."""
    folder = Path(os.environ.get("RECOLLECT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
    files = sorted(folder.glob(f"{pattern}.json"))
    return [event for file in files for event in json.loads(file.read_text(encoding="utf-8"))["events"]]


def _messages(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages with a text among `events`."""
    return [event for event in events if event["type"] == "message.added" and "text" in event["payload"]]


def conversation(number: int, total: int) -> list[dict[str, Any]]:
    """Return `total` consecutive events of the real conversations, another piece for each number."""
    base = _conversations()
    first = number * total % len(base)
    return [event | {"id": f"{number}:{at}"} for at, event in enumerate((base + base)[first : first + total])]
