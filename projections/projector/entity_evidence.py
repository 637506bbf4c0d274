"""Entity evidence: records what events say about the types and the other names of entities.

`entity_resolution` computes types and merges from it, at the end of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

#: Sources of one event that count as evidence.
_SOURCES_MAX = 10
#: The source of the evidence that a speaker is a person.
_SPEAKER = ""
#: Confidence of a stated type, in hundredths.
STATED = 100

#: The entities that wrote a message by a name of a person.
SPEAKERS = "SELECT entity_id FROM entity_evidence WHERE source = ''"
_ADD = """
INSERT INTO entity_evidence (entity_id, type, source, confidence, at_us) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (entity_id, type, source) DO UPDATE SET
    confidence = max(confidence, excluded.confidence), at_us = max(at_us, excluded.at_us)
"""
_ADD_SPEAKER = """
INSERT OR IGNORE INTO entity_evidence (entity_id, type, source, confidence, at_us) VALUES (?, 'person', ?, ?, 0)
"""
_LINK = """
INSERT INTO entity_links (entity_id, other_id, source, stated_version) VALUES (?, ?, ?, ?)
ON CONFLICT (entity_id, other_id, source) DO UPDATE SET stated_version = max(stated_version, excluded.stated_version)
"""
_SEPARATE = "INSERT OR REPLACE INTO entity_separations (first, second, version) VALUES (?, ?, ?)"


class EntityEvidence:
    """The tables `entity_evidence`, `entity_links` and `entity_separations`, updated in the order of the log."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def add_type(self, entity_id: int, type: str, confidence: float, sources: Sequence[str], at_us: int) -> None:
        """Add the evidence of an event for a type; `other` is not evidence.

        Parameters:
            confidence: 0 to 1; at 1 the type is stated.
            sources: the ids of the events that it comes from.
        """
        if type != "other":
            hundredths = round(confidence * 100)
            rows = [(entity_id, type, source, hundredths, at_us) for source in sources[:_SOURCES_MAX]]
            self._connection.executemany(_ADD, rows)

    def add_speaker(self, entity_id: int) -> None:
        """Add the evidence that an entity wrote a message, so that it is a person unless another type is stated."""
        self._connection.execute(_ADD_SPEAKER, (entity_id, _SPEAKER, STATED))

    def add_link(self, entity_id: int, other_id: int, sources: Sequence[str], stated_version: int) -> None:
        """Add the evidence that two entities are one.

        Parameters:
            stated_version: of the event in which a producer stated it; 0: it was extracted.
        """
        rows = [(entity_id, other_id, source, stated_version) for source in sources[:_SOURCES_MAX]]
        self._connection.executemany(_LINK, rows)

    def separate(self, first: str, second: str, version: int) -> None:
        """Record that two names are not of one entity."""
        first, second = sorted((first.casefold(), second.casefold()))
        self._connection.execute(_SEPARATE, (first, second, version))

    def forget_source(self, event_id: str) -> None:
        """Remove the evidence of a forgotten event."""
        for table in ("entity_evidence", "entity_links"):
            self._connection.execute(f"DELETE FROM {table} WHERE source = ?", (event_id,))

    def forget_entity(self, entity_id: int) -> None:
        """Remove the evidence of a forgotten entity."""
        self._connection.execute("DELETE FROM entity_evidence WHERE entity_id = ? AND source <> ''", (entity_id,))
        self._connection.execute("DELETE FROM entity_links WHERE ? IN (entity_id, other_id)", (entity_id,))
