"""Shown memories: memories as tools return them, without those that the asker must not be shown."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from recollect.api.mcp.tool_session import ToolSession
from recollect.api.result_types import MemoryItem
from recollect.api.retrieval.restricted_memories import hidden_memories
from recollect.events.envelope import rfc3339
from recollect.events.errors import NotFound
from recollect.projections.queries.restriction_queries import HiddenMemories
from recollect.projections.text.prompt_fence import fence
from recollect.projections.text.statement_lines import fact_line

#: Characters of the texts in an answer about single memories.
_TEXT_CHARS_MAX = 300
_Item = TypeVar("_Item", bound=Any)


def hidden_from(session: ToolSession) -> HiddenMemories:
    """Return the memories that the speaker of a session must not be shown."""
    with session.memory.parts.read_models.reading(session.namespace) as snapshot:
        return hidden_memories(snapshot, session.speaker, snapshot.restrictions.users)


def shown_items(hidden: HiddenMemories, items: Iterable[_Item]) -> list[_Item]:
    """Return the items of a list that may be shown."""
    return [item for item in items if not hidden.hides(str(item["id"]), item.get("source_events") or ())]


def shown_memory(session: ToolSession, memory_id: str) -> MemoryItem:
    """Return a memory by its id; raise `NotFound` when there is none, or it must not be shown."""
    memory = session.memory.get(session.namespace, memory_id)
    hidden = hidden_from(session)
    sources: list[str] = memory.get("source_events") or []
    names_hidden = memory["kind"] == "entity" and _is_of_hidden_entity(session, str(memory["name"]), hidden)
    if hidden.hides(str(memory.get("id") or ""), sources) or names_hidden:
        raise NotFound(f"there is no memory {memory_id!r}", field="memory_id")
    return memory


def _is_of_hidden_entity(session: ToolSession, name: str, hidden: HiddenMemories) -> bool:
    """Return whether a hidden message names or describes an entity."""
    with session.memory.parts.read_models.reading(session.namespace) as snapshot:
        entities = snapshot.entities.ids_by_name([name.casefold()])
    return not entities.isdisjoint(hidden.linked_entities | hidden.described_entities)


def fenced(lines: Sequence[str]) -> str:
    """Return lines of stored text in tags that no stored text can know, so that a model reads them as data."""
    return fence(lines, secrets.token_hex(6))


def memory_text(memory: Mapping[str, Any]) -> str:
    """Return a memory of any kind in one line."""
    match memory["kind"]:
        case "fact":
            text = memory["statement"] or fact_line(memory["subject"], memory["predicate"], memory["object"])
        case "preference":
            text = f"{memory.get('subject') or 'user'}: {memory['name']}: {memory['value']}"
        case "relationship":
            text = f"{memory['source']} {memory['type']} {memory['target']}"
        case "procedure":
            text = f"{memory['name']}: {memory['trigger']}"
        case "entity":
            text = f"{memory['name']}: {memory['description'] or memory['type']}"
        case _:
            text = str(memory.get("text") or "")
    return shortened(text)


def shortened(text: str) -> str:
    """Return the beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_CHARS_MAX else f"{line[:_TEXT_CHARS_MAX].rsplit(' ', 1)[0]} …"


def memory_time(memory: Mapping[str, Any]) -> str:
    """Return when a memory happened, or was last changed."""
    return str(memory.get("occurred_at") or memory.get("updated_at") or rfc3339(0))


def existing(session: ToolSession, memory_id: str) -> MemoryItem | None:
    """Return a memory by its id; None when there is none that may be shown."""
    try:
        return shown_memory(session, memory_id)
    except NotFound:
        return None
