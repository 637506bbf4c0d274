"""Case book: short everyday conversations with asks, as conversations to fit to.

Weights that are fitted to conversations of hundreds of messages alone fail in a memory of ten.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

sys.path.append(str(Path(__file__).parents[1]))
from evaluation.conversations import Conversation

#: Fields of a case's step that say what was said.
_SAID = {"user": "user", "bot": "assistant"}


def read_case_book(file: Path) -> Iterator[Conversation]:
    """Yield the cases of a case book as conversations; a question has `silent` when memory must return nothing.

    A case is a list of steps: what a user or a bot said, and asks with the words that the answer must hold. The
    messages with those words are the evidence.
    """
    for case in orjson.loads(file.read_bytes()):
        events: list[dict[str, Any]] = []
        questions: list[dict[str, Any]] = []
        for number, step in enumerate(case["steps"]):
            said = next((key for key in _SAID if key in step), None)
            if said is not None:
                events.append(_message(f"{case['name']}-{number}", step, _SAID[said], step[said]))
            elif "ask" in step and "passive" not in str(step.get("options")):
                questions += _question(step, events)
        if events and questions:
            yield Conversation(f"case-{case['name']}", "case", events, questions)


def _message(id: str, step: Mapping[str, Any], role: str, text: str) -> dict[str, Any]:
    payload = {"role": role, "text": text} | ({"name": step["name"]} if "name" in step else {})
    session = step.get("session", step["at"][:10])
    return {"id": id, "type": "message.added", "occurred_at": step["at"], "session_id": session, "payload": payload}


def _question(step: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the question of an ask, in a list; empty when no message holds the wanted words."""
    wanted = [step["first"]] if "first" in step else step.get("has", [])
    gold = [
        event["id"]
        for event in events
        if any(word in event["payload"]["text"].casefold() for one in wanted for word in one.casefold().split("|"))
    ]
    silent = bool(step.get("silent"))
    if not gold and not silent:
        return []
    category = "silent" if silent else "asked"
    return [
        {"query": step["ask"], "category": category, "gold": gold, "gold_sessions": [], "until": step["at"]},
    ]
