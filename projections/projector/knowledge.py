"""Knowledge: writes procedures, relationships, documents, observations and ratings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import orjson

from recollect.events.envelope import DAY_US, RecordedEvent, parse_rfc3339
from recollect.events.memory_kinds import KIND_BY_NAME, TABLES_WITH_STATUS
from recollect.projections.projector.fact_endings import FactEndings
from recollect.projections.projector.fact_rows import SOURCES_MAX
from recollect.projections.projector.stated_fact import combined_confidence, said_us, voice_of
from recollect.projections.schema.time_to_live import TTL_DAYS
from recollect.projections.text.chunks import chunks
from recollect.projections.text.tokens import estimate_tokens

#: Weight of a relationship in graph walks, by type (`004`); a contradiction supports nothing.
RELATION_WEIGHTS = {
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
#: Relationships of which a person has one at a time, in groups: a new husband takes the place of a boyfriend.
_EXCLUSIVE_TYPES = (
    frozenset(("partner", "boyfriend", "girlfriend", "husband", "wife", "fiancé", "fiancée", "fiance", "fiancee")),
    frozenset(("boss", "manager", "supervisor", "line manager")),
)
#: Weight of any other type.
RELATION_WEIGHT_DEFAULT = 0.5
#: Weight of a procedure's first confidence, in uses, when its success rate is smoothed (Beta prior).
_PRIOR_USES = 2
#: The count of each outcome of a procedure.
_OUTCOME_COLUMNS = {"success": "success_count", "failure": "failure_count", "partial": "partial_count"}
#: Score of each rating.
RATING_SCORES = {"useful": 1.0, "noise": -0.5, "misleading": -1.0}

_ACTIVE_PROCEDURE = "SELECT id, steps FROM procedures WHERE name = ? COLLATE NOCASE AND status = 'active'"
# A memory of a kind with a status; of its own columns the values are named.
_ADD_MEMORY = """
INSERT OR IGNORE INTO {table} (
    id, version, status, pinned, source_events, stale_at_us, created_at_us, updated_at_us, {columns}
) VALUES (:id, :version, 'active', 0, :source_events, :stale_at_us, :occurred_at_us, :occurred_at_us, {values})
"""
_RELATIONSHIP = """
SELECT id, status, updated_at_us FROM relationships WHERE source_id = ? AND type = ? AND target_id = ? AND voice = ?
"""
_STRENGTHEN_RELATIONSHIP = """
UPDATE relationships SET confidence = ?, evidence_count = evidence_count + 1, source_events = ?, status = 'active',
    updated_at_us = max(updated_at_us, ?), stale_at_us = max(stale_at_us, ?), is_inferred = min(is_inferred, ?)
WHERE id = ?
"""
_END_RELATIONSHIP = """
UPDATE relationships SET status = 'ended', ended_by = ? WHERE status IN ('active', 'stale') AND updated_at_us <= ?
AND source_id = ? AND type = ? AND target_id = ? AND voice = ?
"""
_ACTIVE_OF_TYPES = """
SELECT id, target_id, updated_at_us FROM relationships
WHERE source_id = ? AND voice = ? AND status = 'active' AND type IN (SELECT value FROM json_each(?))
ORDER BY is_inferred, updated_at_us DESC, key DESC
"""
_ADD_DOCUMENT = """
INSERT INTO documents (id, version, title, text, uri, metadata, added_at_us, edit_id)
VALUES (:id, :version, :title, :text, :uri, :metadata, :added_at_us, :edit_id)
"""
_ADD_CHUNK = "INSERT INTO chunks (document_id, number, text) VALUES (?, ?, ?)"
_ADD_DOCUMENT_RELATION = (
    "INSERT OR REPLACE INTO document_relations (document_id, type, target, weight) VALUES (?, ?, ?, ?)"
)
_ADD_OBSERVATION = """
INSERT INTO observations (event_id, session_id, text, token_count, occurred_at_us, status)
VALUES (?, ?, ?, ?, ?, 'active')
"""
_MOVE_OBSERVATION_CURSOR = """
INSERT INTO observation_cursors (session_id, through) VALUES (?, ?)
ON CONFLICT (session_id) DO UPDATE SET through = max(through, excluded.through)
"""
_ADD_DATE_MENTION = "INSERT INTO date_mentions (event_id, text, start_us, end_us, probability) VALUES (?, ?, ?, ?, ?)"
_ADD_QUESTION = "INSERT INTO questions (event_id, text) VALUES (?, ?)"
_ADD_RATING = """
INSERT INTO ratings (memory_id, rating) VALUES (?, ?)
ON CONFLICT (memory_id) DO UPDATE SET rating = rating + excluded.rating
"""


class Knowledge:
    """The tables of knowledge except facts and preferences, updated in the order of the log."""

    def __init__(self, connection: apsw.Connection, endings: FactEndings) -> None:
        self._connection = connection
        self._endings = endings

    def add(self, kind: str, event: RecordedEvent, id: str, payload: dict[str, Any], columns: dict[str, Any]) -> None:
        """Add an active memory of a kind, with the values of the columns of its own; nothing when its id is there."""
        at_us = said_us(event, payload)
        bindings = columns | {
            "id": id,
            "version": event.version,
            "source_events": _sources(event, payload),
            "stale_at_us": at_us + TTL_DAYS[kind] * DAY_US,
            "occurred_at_us": at_us,
        }
        values = ", ".join(f":{name}" for name in columns)
        table = KIND_BY_NAME[kind].list_name
        self._connection.execute(_ADD_MEMORY.format(table=table, columns=", ".join(columns), values=values), bindings)

    # -- procedures ---------------------------------------------------------------------------------------------------

    def record_procedure(self, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
        """Add a procedure, which supersedes one of the same name; nothing when the steps are the same."""
        steps = orjson.dumps(payload["steps"]).decode()
        active = self._row(_ACTIVE_PROCEDURE, payload["name"])
        active_id, active_steps = active or (None, None)
        if active_id is not None and active_steps == steps:
            return
        confidence = payload.get("confidence", 0.5)
        columns = {
            "name": payload["name"],
            "trigger": payload["trigger"],
            "steps": steps,
            "context": payload.get("context"),
            "prior": confidence,
            "confidence": confidence,
            **dict.fromkeys(_OUTCOME_COLUMNS.values(), 0),
        }
        self.add("procedure", event, id, payload, columns)
        if active_id is not None:
            self._supersede(event.occurred_at_us, "procedures", active_id, id)

    def use_procedure(self, event: RecordedEvent, payload: dict[str, Any]) -> None:
        """Count an outcome of a procedure. Its confidence is the smoothed success rate; a partial success is half."""
        column = _OUTCOME_COLUMNS[payload["outcome"]]
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
        """Add a relationship of two entities, or strengthen the existing one."""
        kind, at_us = relation_type(payload["type"]), said_us(event, payload)
        voice = voice_of(payload["source"], payload.get("stated_by"))
        row = self._row(_RELATIONSHIP, source_id, kind, target_id, voice)
        if row is None:
            self._add_relationship(event, id, payload, source_id, target_id)
        elif row[1] != "ended" or at_us > row[2]:
            self._strengthen(event, row[0], payload)
        endings = self._endings.since(payload["source"], at_us)
        ended_by = next((ending.id for ending in endings if ending.ends_relation(kind, payload["target"], voice)), None)
        if ended_by is not None:
            self._connection.execute(_END_RELATIONSHIP, (ended_by, at_us, source_id, kind, target_id, voice))
        for types in _EXCLUSIVE_TYPES:
            if kind in types:
                self._keep_newest(source_id, voice, types)

    def _add_relationship(
        self, event: RecordedEvent, id: str, payload: dict[str, Any], source_id: int, target_id: int
    ) -> None:
        """Add the row of a relationship."""
        kind = relation_type(payload["type"])
        columns = {
            "source_id": source_id,
            "type": kind,
            "target_id": target_id,
            "weight": _relation_weight(kind),
            "confidence": payload.get("confidence", 1.0),
            "evidence_count": 1,
            "voice": voice_of(payload["source"], payload.get("stated_by")),
            "is_inferred": _is_inferred(payload),
        }
        self.add("relationship", event, id, payload, columns)

    def _keep_newest(self, source_id: int, voice: str, types: frozenset[str]) -> None:
        """Supersede all but the newest active relationship of these types of a person that `voice` states.

        What is inferred, such as the undated line of an imported note, supersedes nothing that was stated.
        """
        bindings = (source_id, voice, orjson.dumps(sorted(types)).decode())
        active: list[Any] = self._connection.execute(_ACTIVE_OF_TYPES, bindings).fetchall()
        for id, target_id, at_us in active[1:]:
            if target_id != active[0][1]:
                self._supersede(at_us, "relationships", id, active[0][0])

    # -- documents ----------------------------------------------------------------------------------------------------

    def add_document(self, event: RecordedEvent, payload: dict[str, Any], edit_id: str | None) -> None:
        """Add a document with its chunks and relations, in place of one with the same id.

        Parameters:
            edit_id: the id of the event when it replaces a document.
        """
        document_id: str = payload["document_id"]
        self.remove_document(document_id)
        bindings = {
            "id": document_id,
            "version": event.version,
            "title": payload["title"],
            "text": payload["text"],
            "uri": payload.get("uri"),
            "metadata": orjson.dumps(payload.get("metadata", {})).decode(),
            "added_at_us": event.occurred_at_us,
            "edit_id": edit_id,
        }
        self._connection.execute(_ADD_DOCUMENT, bindings)
        self._connection.executemany(
            _ADD_CHUNK, [(document_id, number, chunk) for number, chunk in enumerate(chunks(payload["text"]))]
        )
        relations = [
            (relation_type(relation["type"]), relation["target"], relation.get("weight"))
            for relation in payload.get("relations", ())
        ]
        self._connection.executemany(
            _ADD_DOCUMENT_RELATION,
            [
                (document_id, kind, target, _relation_weight(kind) if weight is None else weight)
                for kind, target, weight in relations
            ],
        )

    def has_document(self, document_id: str) -> bool:
        """Return whether there is a document with this id."""
        return self._connection.execute("SELECT 1 FROM documents WHERE id = ?", (document_id,)).fetchone() is not None

    def remove_document(self, document_id: str) -> None:
        """Remove a document with its chunks and relations."""
        for query in (
            "DELETE FROM documents WHERE id = ?",
            "DELETE FROM chunks WHERE document_id = ?",
            "DELETE FROM document_relations WHERE document_id = ?",
        ):
            self._connection.execute(query, (document_id,))

    # -- observations, dates, questions -------------------------------------------------------------------------------

    def add_observations(self, event: RecordedEvent, payload: dict[str, Any], replaced: Sequence[str] = ()) -> None:
        """Add observations.

        Parameters:
            replaced: ids of the events whose observations they condense.
        """
        self._connection.executemany(
            "UPDATE observations SET status = 'superseded' WHERE event_id = ?", [(id,) for id in replaced]
        )
        self._connection.executemany(
            _ADD_OBSERVATION,
            [
                (event.id, event.session_id, text, estimate_tokens(text), event.occurred_at_us)
                for text in payload["observations"]
            ],
        )
        if not replaced and payload.get("through") is not None and event.session_id is not None:
            self._connection.execute(
                _MOVE_OBSERVATION_CURSOR,
                # A forged version after the event's own would stop the observation of the session.
                (event.session_id, min(payload["through"], event.version)),
            )

    def add_date_mentions(self, payload: dict[str, Any]) -> None:
        """Add the dates that messages name."""
        self._connection.executemany(
            _ADD_DATE_MENTION,
            [
                (
                    date["source_event"],
                    date["text"],
                    parse_rfc3339(date["start"]),
                    parse_rfc3339(date["end"]),
                    date.get("probability", 1.0),
                )
                for date in payload.get("dates", ())
            ],
        )

    def add_questions(self, payload: dict[str, Any]) -> None:
        """Add the questions that messages ask."""
        self._connection.executemany(
            _ADD_QUESTION,
            [(question["source_event"], question["text"]) for question in payload.get("questions", ())],
        )

    # -- all kinds ----------------------------------------------------------------------------------------------------

    def add_rating(self, payload: dict[str, Any]) -> None:
        """Add the score of a rating to the ratings of memories."""
        self._connection.executemany(
            _ADD_RATING,
            [(memory_id, RATING_SCORES[payload["rating"]]) for memory_id in payload.get("memory_ids", [])],
        )

    def pin(self, memory_id: str) -> None:
        """Pin a memory: it does not become stale and is not merged."""
        for table in TABLES_WITH_STATUS:
            self._connection.execute(f"UPDATE {table} SET pinned = 1 WHERE id = ?", (memory_id,))

    def set_status(self, event: RecordedEvent, memory_id: str, status: str) -> None:
        """Set the status of a memory."""
        for table in TABLES_WITH_STATUS:
            self._connection.execute(
                f"UPDATE {table} SET status = ?, updated_at_us = ? WHERE id = ?",
                (status, event.occurred_at_us, memory_id),
            )

    def merge(self, event: RecordedEvent, kept_id: str, merged_ids: Sequence[str]) -> None:
        """Supersede memories by another one of their kind."""
        for table in TABLES_WITH_STATUS:
            for merged_id in merged_ids:
                if merged_id != kept_id:
                    self._supersede(event.occurred_at_us, table, merged_id, kept_id)

    def _row(self, query: str, *values: str | int) -> tuple[Any, ...] | None:
        """Return the first row of a query, or None."""
        return self._connection.execute(query, values).fetchone()

    def _supersede(self, at_us: int, table: str, memory_id: str, by: str) -> None:
        """End a memory that the memory `by` replaces."""
        self._connection.execute(
            f"UPDATE {table} SET status = 'superseded', superseded_by = ?, updated_at_us = ? WHERE id = ?",
            (by, at_us, memory_id),
        )

    def _strengthen(self, event: RecordedEvent, id: str, payload: dict[str, Any]) -> None:
        """Raise the confidence of a relationship that was stated again, unless the sources are the same."""
        row = self._row("SELECT confidence, source_events FROM relationships WHERE id = ?", id)
        if row is None:
            raise LookupError(f"there is no relationship {id!r} to strengthen")
        old_confidence, old_sources_json = row
        old_sources: list[str] = orjson.loads(old_sources_json)
        new_sources = [id for id in payload.get("source_events") or [event.id] if id not in old_sources]
        if new_sources:
            at_us = said_us(event, payload)
            bindings = (
                combined_confidence(old_confidence, payload.get("confidence", 1.0)),
                orjson.dumps([*old_sources, *new_sources][:SOURCES_MAX]).decode(),
                at_us,
                at_us + TTL_DAYS["relationship"] * DAY_US,
                _is_inferred(payload),
                id,
            )
            self._connection.execute(_STRENGTHEN_RELATIONSHIP, bindings)


def _is_inferred(payload: dict[str, Any]) -> int:
    return int(payload.get("source_type") == "inferred")


def _sources(event: RecordedEvent, payload: dict[str, Any]) -> str:
    """Return the ids of a memory's source events as a JSON list; `event` itself when the payload names none."""
    return orjson.dumps(list(payload.get("source_events") or [event.id])[:SOURCES_MAX]).decode()


def relation_type(text: str) -> str:
    """Return the type of a relationship or of a document's relation, for comparison."""
    return " ".join(text.replace("_", " ").casefold().split())


def _relation_weight(kind: str) -> float:
    """Return the weight of a relationship type in graph walks."""
    return RELATION_WEIGHTS.get(kind, RELATION_WEIGHT_DEFAULT)
