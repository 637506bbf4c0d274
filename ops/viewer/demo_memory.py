"""Demo memory: the demo conversation, read and compacted session by session, as it would have been lived."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from recollect import Recollect
from recollect.api.settings import Settings

NAMESPACE = "lark-street"
_CONVERSATION = Path(__file__).parents[1] / "demo" / "conversation.jsonl"

#: What the bot of the demo states of its own accord, by the session after which it does.
_STATED: dict[str, list[dict[str, Any]]] = {
    "lark-01": [
        {"type": "fact.stated", "payload": {"subject": "Tobias", "predicate": "lives in", "object": "Lark Street"}},
        {"type": "fact.stated", "payload": {"subject": "Tobias", "predicate": "allergic to", "object": "walnuts"}},
    ],
    "lark-04": [{"type": "relationship.stated", "payload": {"source": "Tobias", "type": "owns", "target": "Biscuit"}}],
    "lark-08": [
        {
            "type": "relationship.stated",
            "payload": {"source": "Ines", "type": "works_for", "target": "Maritime Museum"},
        },
        {"type": "preference.stated", "payload": {"key": "shopping list", "value": "one message on Saturday morning"}},
    ],
    "lark-10": [
        {"type": "fact.stated", "payload": {"subject": "Tobias", "predicate": "works at", "object": "the bicycle shop"}}
    ],
    "lark-14": [
        {"type": "fact.corrected", "payload": {"subject": "Tobias", "predicate": "works at", "object": "Vrachtwerk"}},
        {"type": "fact.stated", "payload": {"subject": "Tobias", "predicate": "lives in", "object": "Utrecht"}},
    ],
}


def build_demo_memory(settings: Settings) -> None:
    """Append the conversation to an empty folder, with what the workers derive after each session, and compact it."""
    events = [json.loads(line) for line in _CONVERSATION.read_text(encoding="utf-8").splitlines()]
    sessions: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        sessions.setdefault(event.get("session_id") or "lark-00", []).append(event)
    with Recollect(settings=settings, workers=False) as memory:
        for name, session in sessions.items():
            memory.append(NAMESPACE, session)
            end = max(datetime.fromisoformat(event["occurred_at"]) for event in session)
            stated = [event | {"occurred_at": end.isoformat()} for event in _STATED.get(name, [])]
            if stated:
                memory.append(NAMESPACE, stated)
            memory.settle(NAMESPACE, now=end + timedelta(hours=6))
            memory.compact(NAMESPACE, now=end + timedelta(hours=12))
        for fact in memory.facts(NAMESPACE, limit=1_000)["items"]:
            if fact["object"] == "walnuts":
                memory.pin(NAMESPACE, fact["id"], reason="an allergy")
            elif (fact["subject"], fact["predicate"]) == ("Rent", "age is"):
                memory.forget(NAMESPACE, fact["id"], reason="never true")
            elif fact["predicate"] == "rent is":
                memory.end(NAMESPACE, fact["id"], reason="a new contract")
