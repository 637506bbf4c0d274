"""Shown memories: leaves out of what tools return the memories that the asker must not be shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from recollect.api.mcp.tool_session import ToolSession
from recollect.api.result_types import MemoryItem
from recollect.api.retrieval.restricted_memories import hidden_memories
from recollect.events.errors import NotFound
from recollect.projections.queries.restriction_queries import HiddenMemories

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
