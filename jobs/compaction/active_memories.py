"""The memories that age: what is known, beside what happened."""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw


class Memory(NamedTuple):
    """A fact, preference, procedure or relationship that is active, not pinned, and no user's correction."""

    kind: str
    id: str
    #: What it says, as a sentence.
    text: str
    #: What two memories must share to be the same: the subject and predicate of a fact, the category of a preference …
    topic: str
    confidence: float
    #: How often it was said.
    evidence: int
    source_type: str
    updated_at_us: int
    stale_at_us: int | None


#: One query a kind, all with the columns of `Memory` after its kind.
_ACTIVE = {
    "fact": (
        "SELECT id, subject || ' ' || predicate || ' ' || object, lower(subject || ' ' || predicate), confidence, "
        "evidence_count, source_type, updated_at_us, stale_at_us FROM facts "
        "WHERE status = 'active' AND pinned = 0 AND source_type <> 'corrected' ORDER BY id"
    ),
    "preference": (
        "SELECT id, value || ' ' || name, category, strength, evidence_count, source_type, updated_at_us, stale_at_us "
        "FROM preferences WHERE status = 'active' AND pinned = 0 AND source_type <> 'corrected' ORDER BY id"
    ),
    "procedure": (
        "SELECT id, name || ': ' || trigger, lower(name), confidence, success_count + failure_count, 'stated', "
        "updated_at_us, stale_at_us FROM procedures WHERE status = 'active' AND pinned = 0 ORDER BY id"
    ),
    "relationship": (
        "SELECT relationships.id, source.name || ' ' || relationships.type || ' ' || target.name, relationships.type, "
        "confidence, evidence_count, 'stated', updated_at_us, stale_at_us FROM relationships "
        "JOIN entities AS source ON source.id = source_id JOIN entities AS target ON target.id = target_id "
        "WHERE status = 'active' AND pinned = 0 ORDER BY relationships.id"
    ),
}


def active_memories(connection: apsw.Connection) -> list[Memory]:
    """Return the memories that age, by kind and id."""
    memories: list[Memory] = []
    for kind, query in _ACTIVE.items():
        rows: list[tuple[Any, ...]] = connection.execute(query).fetchall()
        memories += [Memory(kind, *row) for row in rows]
    return memories
