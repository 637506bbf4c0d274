"""Import preview: the first statements that an import would make, as lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from recollect.events.envelope import EventDraft, rfc3339
from recollect.projections.text.statement_lines import fact_line, preference_line, relationship_line

#: Statements of each type of event, and characters of each.
LINES_MAX = 3
_CHARS_MAX = 160


def preview_line(event: EventDraft) -> str | None:
    """Return what an event states, with its day when it has one; None for a type that states nothing by itself."""
    text = _statement(event.type, orjson.loads(event.payload))
    if text is None:
        return None
    day = "" if event.occurred_at_us is None else f"{rfc3339(event.occurred_at_us)[:10]} "
    line = f"{day}{' '.join(text.split())}"
    return line if len(line) <= _CHARS_MAX else f"{line[: _CHARS_MAX - 1]}…"


def _statement(event_type: str, payload: Mapping[str, Any]) -> str | None:
    match event_type:
        case "fact.stated":
            return payload.get("statement") or fact_line(payload["subject"], payload["predicate"], payload["object"])
        case "fact.corrected":
            return f"corrected: {fact_line(payload['subject'], payload['predicate'], payload['object'])}"
        case "preference.stated":
            whose, category = payload.get("subject", ""), payload.get("category", "other")
            return preference_line(whose, category, payload["key"], payload["value"])
        case "relationship.stated":
            return relationship_line(payload["source"], payload["type"], payload["target"])
        case "message.added":
            return f"{payload.get('name') or payload['role']}: {payload['text']}"
        case "observation.recorded":
            return str(payload["text"])
        case "document.added":
            return f"document: {payload['title']}"
        case _:
            return None
