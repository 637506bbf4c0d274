"""What is known beside facts: preferences, procedures, relationships, documents, observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import orjson

from recollect.events.envelope import DAY_US, RecordedEvent, parse_rfc3339
from recollect.projections.projector.facts import SOURCE_RANKS, SOURCES_MAX, higher_source
from recollect.projections.schema.time_to_live import TTL_DAYS
from recollect.projections.text.chunks import chunks
from recollect.projections.text.tokens import estimate_tokens

#: How much a relation counts in a walk over the graph (`004`); what contradicts never supports.
WEIGHTS = {
    "governs": 1.0,
    "supersedes": 0.95,
    "depends on": 0.8,
    "part of": 0.8,
    "implements": 0.75,
    "describes": 0.6,
    "relates to": 0.5,
    "mentions": 0.35,
    "contradicts": 0.0,
}
#: Of any other relation.
WEIGHT = 0.5
#: Uses that a procedure's first confidence is worth, when its success rate is smoothed (Beta prior).
_PRIOR_USES = 2
#: What each word of a rating counts.
RATINGS = {"useful": 1.0, "noise": -0.5, "misleading": -1.0}
#: Tables of memories that have a status and can be pinned.
_KINDS = ("facts", "preferences", "procedures", "relationships")


class Knowledge:
    """The tables of what is known, changed in the order of the log; `Facts` has its own."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    # -- preferences --------------------------------------------------------------------------------------------------

    def upsert_preference(self, event: RecordedEvent, id: str, payload: dict[str, Any], source_type: str) -> None:
        """Add a preference, strengthen the same one, or let the better or newer one supersede the other."""
        category, name = payload.get("category", "other"), payload["key"]
        held = self._row(
            "SELECT id, value, source_type, updated_at_us FROM preferences "
            "WHERE category = ? AND name = ? AND status = 'active'",
            category,
            name,
        )
        if held is not None and held[1] == payload["value"]:
            self._strengthen(event, "preferences", "strength", held[0], payload, payload.get("strength", 0.5))
            return
        rank = SOURCE_RANKS[source_type]
        wins = held is None or (rank, event.occurred_at_us) >= (SOURCE_RANKS[held[2]], held[3])
        at_us = event.occurred_at_us
        self._connection.execute(
            "INSERT OR IGNORE INTO preferences VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 1, ?, ?, ?, ?)",
            (
                id,
                event.version,
                category,
                name,
                payload["value"],
                payload.get("strength", 0.5),
                int(payload.get("standing", False)),
                source_type,
                "active" if wins else "superseded",
                None if wins or held is None else held[0],
                _sources(event, payload),
                at_us + TTL_DAYS["preference"] * DAY_US,
                at_us,
                at_us,
            ),
        )
        if held is not None and wins:
            self._supersede(event, "preferences", held[0], id)

    # -- procedures ---------------------------------------------------------------------------------------------------

    def record_procedure(self, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
        """Add a procedure; one of the same name it supersedes, unless it is the same."""
        steps = orjson.dumps(payload["steps"]).decode()
        held = self._row(
            "SELECT id, steps FROM procedures WHERE name = ? COLLATE NOCASE AND status = 'active'", payload["name"]
        )
        if held is not None and held[1] == steps:
            return
        at_us = event.occurred_at_us
        confidence = payload.get("confidence", 0.5)
        self._connection.execute(
            "INSERT OR IGNORE INTO procedures "
            "VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, NULL, NULL, 'active', 0, NULL, ?, ?, ?, ?)",
            (
                id,
                event.version,
                payload["name"],
                payload["trigger"],
                steps,
                payload.get("context"),
                confidence,
                confidence,
                _sources(event, payload),
                at_us + TTL_DAYS["procedure"] * DAY_US,
                at_us,
                at_us,
            ),
        )
        if held is not None:
            self._supersede(event, "procedures", held[0], id)

    def use_procedure(self, event: RecordedEvent, payload: dict[str, Any]) -> None:
        """Count how a procedure went; its confidence is its smoothed success rate, half a success for a partial one."""
        counted = {"success": "success_count", "failure": "failure_count", "partial": "partial_count"}
        column = counted[payload["outcome"]]
        at_us = event.occurred_at_us
        self._connection.execute(
            f"UPDATE procedures SET {column} = {column} + 1, last_used_us = ?, last_outcome = ?, "
            "updated_at_us = max(updated_at_us, ?), stale_at_us = max(stale_at_us, ?) WHERE id = ?",
            (at_us, payload["outcome"], at_us, at_us + TTL_DAYS["procedure"] * DAY_US, payload["procedure_id"]),
        )
        self._connection.execute(
            f"UPDATE procedures SET confidence = (prior * {_PRIOR_USES} + success_count + partial_count * 0.5) "
            f"/ ({_PRIOR_USES} + success_count + failure_count + partial_count) WHERE id = ?",
            (payload["procedure_id"],),
        )

    # -- relationships ------------------------------------------------------------------------------------------------

    def upsert_relationship(
        self, event: RecordedEvent, id: str, payload: dict[str, Any], source_id: int, target_id: int
    ) -> None:
        """Relate two entities, or strengthen the relation that is there."""
        kind = " ".join(payload["type"].replace("_", " ").casefold().split())
        held = self._row(
            "SELECT id FROM relationships WHERE source_id = ? AND type = ? AND target_id = ?",
            source_id,
            kind,
            target_id,
        )
        if held is not None:
            self._strengthen(event, "relationships", "confidence", held[0], payload, payload.get("confidence", 1.0))
            return
        at_us = event.occurred_at_us
        self._connection.execute(
            "INSERT OR IGNORE INTO relationships VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, 'active', 0, NULL, 1, ?, ?, ?, ?)",
            (
                id,
                event.version,
                source_id,
                kind,
                target_id,
                WEIGHTS.get(kind, WEIGHT),
                payload.get("confidence", 1.0),
                _sources(event, payload),
                at_us + TTL_DAYS["relationship"] * DAY_US,
                at_us,
                at_us,
            ),
        )

    # -- documents ----------------------------------------------------------------------------------------------------

    def add_document(self, event: RecordedEvent, payload: dict[str, Any]) -> None:
        """Add a document in chunks, in the place of the one with the same id."""
        document_id: str = payload["document_id"]
        self.remove_document(document_id)
        self._connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                document_id,
                event.version,
                payload["title"],
                payload["text"],
                payload.get("uri"),
                orjson.dumps(payload.get("metadata", {})).decode(),
                event.occurred_at_us,
            ),
        )
        self._connection.executemany(
            "INSERT INTO chunks VALUES (?, ?, ?)",
            [(document_id, number, chunk) for number, chunk in enumerate(chunks(payload["text"]))],
        )
        relations = [(one["type"], one["target"], one.get("weight")) for one in payload.get("relations", ())]
        self._connection.executemany(
            "INSERT OR REPLACE INTO document_relations VALUES (?, ?, ?, ?)",
            [
                (document_id, kind, target, WEIGHTS.get(kind, WEIGHT) if weight is None else weight)
                for kind, target, weight in relations
            ],
        )

    def remove_document(self, document_id: str) -> None:
        """Take a document out, its chunks and relations too."""
        for query in (
            "DELETE FROM documents WHERE id = ?",
            "DELETE FROM chunks WHERE document_id = ?",
            "DELETE FROM document_relations WHERE document_id = ?",
        ):
            self._connection.execute(query, (document_id,))

    # -- observations, clusters, what messages name -------------------------------------------------------------------

    def add_observations(self, event: RecordedEvent, payload: dict[str, Any], replaced: Sequence[str] = ()) -> None:
        """Add observations; `replaced` are the events whose observations they condense."""
        self._connection.executemany(
            "UPDATE observations SET status = 'superseded' WHERE event_id = ?", [(id,) for id in replaced]
        )
        self._connection.executemany(
            "INSERT INTO observations VALUES (NULL, ?, ?, ?, ?, ?, 'active')",
            [
                (event.id, event.session_id, text, estimate_tokens(text), event.occurred_at_us)
                for text in payload["observations"]
            ],
        )
        if not replaced and payload.get("through") is not None and event.session_id is not None:
            self._connection.execute(
                "INSERT INTO observation_cursors VALUES (?, ?) "
                "ON CONFLICT (session_id) DO UPDATE SET through = max(through, excluded.through)",
                # As with extraction: never beyond the event's own version.
                (event.session_id, min(payload["through"], event.version)),
            )

    def set_clusters(self, payload: dict[str, Any]) -> None:
        """Put new clusters in the place of those before."""
        self._connection.execute("DELETE FROM clusters")
        self._connection.executemany(
            "INSERT OR REPLACE INTO clusters VALUES (?, ?, ?)",
            [
                (memory_id, number, one["label"])
                for number, one in enumerate(payload["clusters"])
                for memory_id in one["memory_ids"]
            ],
        )

    def add_date_mentions(self, payload: dict[str, Any]) -> None:
        """Add the dates that messages name."""
        self._connection.executemany(
            "INSERT INTO date_mentions VALUES (NULL, ?, ?, ?, ?)",
            [
                (one["source_event"], one["text"], parse_rfc3339(one["start"]), parse_rfc3339(one["end"]))
                for one in payload.get("dates", ())
            ],
        )

    def add_questions(self, payload: dict[str, Any]) -> None:
        """Add the questions that messages ask."""
        self._connection.executemany(
            "INSERT INTO questions VALUES (NULL, ?, ?)",
            [(one["source_event"], one["text"]) for one in payload.get("questions", ())],
        )

    # -- any kind -----------------------------------------------------------------------------------------------------

    def add_rating(self, payload: dict[str, Any]) -> None:
        """Add what was said of memories to what was said of them before."""
        self._connection.executemany(
            "INSERT INTO ratings VALUES (?, ?) ON CONFLICT (memory_id) DO UPDATE SET rating = rating + excluded.rating",
            [(memory_id, RATINGS[payload["rating"]]) for memory_id in payload.get("memory_ids", [])],
        )

    def pin(self, memory_id: str) -> None:
        """Keep a memory whatever its age."""
        for table in _KINDS:
            self._connection.execute(f"UPDATE {table} SET pinned = 1 WHERE id = ?", (memory_id,))

    def set_status(self, event: RecordedEvent, memory_id: str, status: str) -> None:
        """Set the status of a memory."""
        for table in _KINDS:
            self._connection.execute(
                f"UPDATE {table} SET status = ?, updated_at_us = ? WHERE id = ?",
                (status, event.occurred_at_us, memory_id),
            )

    def merge(self, event: RecordedEvent, kept_id: str, merged_ids: Sequence[str]) -> None:
        """Let one memory stand for others of its kind."""
        for table in _KINDS:
            for merged_id in merged_ids:
                if merged_id != kept_id:
                    self._supersede(event, table, merged_id, kept_id)

    def _row(self, query: str, *values: str | int) -> tuple[Any, ...] | None:
        return self._connection.execute(query, values).fetchone()

    def _supersede(self, event: RecordedEvent, table: str, memory_id: str, by: str) -> None:
        self._connection.execute(
            f"UPDATE {table} SET status = 'superseded', superseded_by = ?, updated_at_us = ? WHERE id = ?",
            (by, event.occurred_at_us, memory_id),
        )

    def _strengthen(
        self, event: RecordedEvent, table: str, column: str, memory_id: str, payload: dict[str, Any], told: float
    ) -> None:
        """Let a memory that was told again be surer, unless it comes from the same source."""
        row = self._row(f"SELECT {column}, source_events FROM {table} WHERE id = ?", memory_id)
        if row is None:
            raise LookupError(f"{table} has no row {memory_id!r} to strengthen")
        known: list[str] = orjson.loads(row[1])
        new = [id for id in payload.get("source_events") or [event.id] if id not in known]
        if new:
            at_us = event.occurred_at_us
            kind = "preference" if table == "preferences" else "relationship"
            self._connection.execute(
                f"UPDATE {table} SET {column} = ?, evidence_count = evidence_count + 1, source_events = ?, "
                "status = 'active', updated_at_us = max(updated_at_us, ?), stale_at_us = max(stale_at_us, ?) "
                "WHERE id = ?",
                (
                    higher_source(row[0], told),
                    orjson.dumps([*known, *new][:SOURCES_MAX]).decode(),
                    at_us,
                    at_us + TTL_DAYS[kind] * DAY_US,
                    memory_id,
                ),
            )


def _sources(event: RecordedEvent, payload: dict[str, Any]) -> str:
    return orjson.dumps(list(payload.get("source_events") or [event.id])[:SOURCES_MAX]).decode()
