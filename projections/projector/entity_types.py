"""Entity types: adds up the evidence for the type of each entity, and sets the type that it supports best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apsw

#: Evidence from this confidence on is strong: one such message outweighs any number of weaker ones.
_STRONG_MIN = 0.75
#: Messages of one event that count as evidence.
_SOURCES_MAX = 10

_ADD = """
INSERT INTO entity_types (entity_id, type, stated_us, strong, weak, last_seen_us) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (entity_id, type) DO UPDATE SET
    stated_us = max(stated_us, excluded.stated_us), strong = strong + excluded.strong, weak = weak + excluded.weak,
    last_seen_us = max(last_seen_us, excluded.last_seen_us)
"""
# The newest stated type, or else the one with the most evidence, or else the one with the newest evidence.
_SET_TYPE = """
UPDATE entities SET type = (
    SELECT type FROM entity_types WHERE entity_id = ?1
    ORDER BY stated_us DESC, strong DESC, weak DESC, last_seen_us DESC, type LIMIT 1
) WHERE id = ?1
"""


@dataclass(slots=True)
class _Evidence:
    """The evidence of a batch for one type of an entity, in the units of the table."""

    stated_us: int = 0
    strong: int = 0
    weak: int = 0
    last_seen_us: int = 0


class EntityTypes:
    """The table `entity_types` and the types of the entities. Sums of whole numbers do not depend on their order."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._evidence: dict[tuple[int, str], _Evidence] = {}

    def add(self, entity_id: int, type: str, confidence: float, sources: int, at_us: int) -> None:
        """Add the evidence of an event; `other` is no evidence.

        Parameters:
            confidence: 0 to 1; at 1 the type is stated.
            sources: the messages that the evidence comes from.
        """
        if type == "other":
            return
        evidence = self._evidence.setdefault((entity_id, type), _Evidence())
        evidence.last_seen_us = max(evidence.last_seen_us, at_us)
        if confidence >= 1:
            evidence.stated_us = max(evidence.stated_us, at_us)
            return
        amount = round(confidence * 100) * min(max(sources, 1), _SOURCES_MAX)
        if confidence >= _STRONG_MIN:
            evidence.strong += amount
        else:
            evidence.weak += amount

    def write(self) -> None:
        """Write the evidence so far and the types that follow from it, after the entities of the batch."""
        rows: list[tuple[Any, ...]] = [
            (*key, evidence.stated_us, evidence.strong, evidence.weak, evidence.last_seen_us)
            for key, evidence in self._evidence.items()
        ]
        self._connection.executemany(_ADD, rows)
        self._connection.executemany(_SET_TYPE, [(id,) for id in dict.fromkeys(id for id, _ in self._evidence)])
        self._evidence.clear()
