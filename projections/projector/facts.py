"""Facts: merges each new statement with the facts of the read model.

A repeated fact strengthens the existing one. Facts that cannot both hold form a group, whose rows follow the timeline
of what was said (`fact_timeline`): the newest statement of a person is active, and the value before it is superseded
and keeps its row, with an end of validity. A message that arrives late finds its place in the past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import apsw
import orjson

from recollect.events.envelope import DAY_US, RecordedEvent, parse_rfc3339
from recollect.projections.projector.fact_endings import Ending, FactEndings
from recollect.projections.projector.fact_statements import ACT_RANK, FactStatements, acting_on
from recollect.projections.projector.fact_timeline import Kind, Span, Statement, timeline
from recollect.projections.projector.predicates import counted_noun, normalised
from recollect.projections.projector.stated_fact import StatedFact, combined_confidence, group_of
from recollect.projections.schema.time_to_live import TTL_DAYS

#: Ranks of the source types; a better source has a higher rank (`003`).
SOURCE_RANKS = {"inferred": 0, "observed": 1, "stated": 2, "corrected": 3}
#: Most events in the list of a memory's sources.
SOURCES_MAX = 50

# The replay of an event that was applied before changes nothing.
_INSERT = """
INSERT OR IGNORE INTO facts (
    id, version, entity_id, subject, predicate, object, type, layer, confidence, source_type, status, pinned,
    superseded_by, conflict_key, valid_from_us, valid_until_us, evidence_count, source_events, ttl_days, stale_at_us,
    created_at_us, updated_at_us, topic, value
) VALUES (
    :id, :version, :entity_id, :subject, :predicate, :object, :type, :layer, :confidence, :source_type, :status, 0,
    NULL, :conflict_key, :valid_from_us, :valid_until_us, 1, :source_events, :ttl_days, :stale_at_us,
    :occurred_at_us, :occurred_at_us, :topic, :value
)
"""
# Independent evidence makes a fact more certain, and active again.
_STRENGTHEN = """
UPDATE facts SET
    confidence = :confidence, source_type = :source_type, evidence_count = evidence_count + :evidence,
    source_events = :source_events, status = iif(:reactivates, 'active', status),
    superseded_by = iif(:reactivates, NULL, superseded_by),
    valid_until_us = iif(:reactivates AND status NOT IN ('active', 'stale'), NULL, valid_until_us),
    created_at_us = min(created_at_us, :occurred_at_us), updated_at_us = max(updated_at_us, :occurred_at_us),
    stale_at_us = max(stale_at_us, :occurred_at_us + ttl_days * :day_us)
WHERE key = :key
"""
_CONFIRM = "UPDATE facts SET source_type = 'corrected', confidence = 1 WHERE key = :key"
_CLOSE = """
UPDATE facts SET
    status = :status, superseded_by = :superseded_by, valid_until_us = :valid_until_us,
    updated_at_us = max(updated_at_us, :occurred_at_us)
WHERE key = :key AND status <> 'forgotten'
"""
_OF_GROUP = "id IN (SELECT fact_id FROM fact_statements WHERE group_key = ? AND kind IN ('state', 'past', 'correct'))"
# A fact that another one of its group superseded, which a later event undoes.
_REOPEN = """
UPDATE facts SET status = 'active', superseded_by = NULL, valid_until_us = :valid_until_us
WHERE id = :id AND status = 'superseded'
AND superseded_by IN (SELECT fact_id FROM fact_statements WHERE group_key = :group)
"""
# What the statements of a fact say after some of them moved to another fact.
_SET_EVIDENCE = """
UPDATE facts SET
    confidence = :confidence, source_type = :source_type, evidence_count = :evidence_count,
    source_events = :source_events, created_at_us = :first_us, updated_at_us = :last_us,
    stale_at_us = :last_us + ttl_days * :day_us
WHERE id = :id
"""
# A second time of the same value, with the words of the first one.
_COPY = """
INSERT OR IGNORE INTO facts (
    id, version, entity_id, subject, predicate, object, type, layer, confidence, source_type, status, pinned,
    superseded_by, conflict_key, valid_from_us, valid_until_us, evidence_count, source_events, ttl_days, stale_at_us,
    created_at_us, updated_at_us, topic, value
)
SELECT :id, version, entity_id, subject, predicate, object, type, layer, confidence, source_type, 'active', 0,
    NULL, conflict_key, :valid_from_us, :valid_until_us, 1, source_events, ttl_days, stale_at_us, created_at_us,
    updated_at_us, topic, value
FROM facts WHERE id = :like
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FactRow:
    """Columns of a row of the table `facts`; every field has the name of its column."""

    key: int
    id: str
    confidence: float
    #: inferred, observed, stated or corrected.
    source_type: str
    #: active, stale, superseded, ended, invalidated or rejected.
    status: str
    superseded_by: str | None
    conflict_key: str | None
    #: End of validity; None: still valid.
    valid_until_us: int | None
    #: JSON list of event ids.
    source_events: str
    #: Subject and predicate, normalised.
    topic: str
    #: The object, normalised.
    value: str

    @property
    def group(self) -> str:
        """Return the key of the facts that it is compared with."""
        return group_of(self.topic, self.value, self.conflict_key)


_COLUMNS = tuple(field.name for field in fields(_FactRow))


class Facts:
    """The tables `facts`, `fact_statements` and `fact_endings`, updated in the order of the log."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._statements = FactStatements(connection)
        self._endings = FactEndings(connection)

    def upsert(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Add a fact, or strengthen the same one; the time of each statement decides which fact is active."""
        said_us = fact.said_us(event)
        until_us = parse_rfc3339(fact.payload.get("valid_until"))
        is_past = until_us is not None and until_us <= said_us
        if not fact.extracted and not is_past:
            # The producer states the retracted fact again, which undoes the retraction from then on.
            self._statements.limit_retractions(fact.group, fact.value, said_us)
        self._add(event, fact, "past" if is_past else "state", until_us)
        self._refresh(event, fact.group, fact.topic, fact)

    def reject(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Add a fact that failed the quality gate, unless the table has it already."""
        if not self._rows("topic = ? AND value = ?", fact.topic, fact.value):
            self._insert(event, fact, "rejected")

    def correct(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Add a correction, which supersedes what was said before it; what is said later supersedes the correction."""
        wrong = self._wrong_group(fact)
        self._add(event, fact, "correct", None)
        self._refresh(event, fact.group, fact.topic, fact)
        correct_id = self._statements.fact_id(fact.group, fact.id) or fact.id
        until_us = parse_rfc3339(fact.payload.get("valid_from")) or fact.said_us(event)
        if wrong is not None:
            topic, value, group = wrong
            if group != fact.group:
                self._add_act(group, fact.id, "end", until_us, value, correct_id)
                self._refresh(event, group, topic)
        elif fact.conflict_key is None:
            # Every other fact of the topic is wrong, also one that was said earlier and arrives later.
            self._add_act(fact.topic, fact.id, "correct", until_us, fact.value, correct_id)
            for row in self._rows("topic = ? AND status IN ('active', 'stale')", fact.topic):
                if row.id != correct_id:
                    self._refresh(event, row.group, row.topic)

    def retract(self, event: RecordedEvent, fact_id: str) -> None:
        """Invalidate a fact; what was said up to now does not add it again."""
        for row in self._rows("id = ?", fact_id):
            self._add_act(row.group, event.id, "retract", event.occurred_at_us, row.value)
            self._refresh(event, row.group, row.topic)
            if row.status == "rejected":
                self._close(event, row, "invalidated", None, event.occurred_at_us)

    def supersede(self, event: RecordedEvent, fact_id: str, by: str, until_us: int | None) -> None:
        """End a fact that the fact `by` replaces.

        Parameters:
            until_us: end of validity unless the fact has one; None: the time of the event.
        """
        for row in self._rows("id = ? AND id <> ?", fact_id, by):
            self._add_act(row.group, event.id, "end", until_us or event.occurred_at_us, row.value, by)
            self._refresh(event, row.group, row.topic)
            if row.status in ("active", "stale"):
                until_us = until_us or row.valid_until_us or event.occurred_at_us
                self._close(event, row, "superseded", by, until_us)

    def end(self, event: RecordedEvent, ending: Ending) -> None:
        """End what an ending speaks of, also the facts that were said earlier and arrive later."""
        self._endings.add(ending)
        self._endings.apply_to_other_kinds(ending)
        groups: dict[str, str] = {}
        for row in self._endings.matching_facts(ending):
            group = group_of(row.topic, row.value, row.conflict_key)
            value = ending.value_of(row.value)
            self._add_act(group, ending.id, ending.kind, ending.at_us, value)
            groups[group] = row.topic
        for group, topic in groups.items():
            self._refresh(event, group, topic)

    def end_fact(self, event: RecordedEvent, fact_id: str, ended_at_us: int) -> None:
        """End one fact; what was said up to now does not make it active again."""
        for row in self._rows("id = ?", fact_id):
            self._add_act(row.group, event.id, "end", event.occurred_at_us, row.value)
            self._refresh(event, row.group, row.topic)
            if row.status in ("active", "stale"):
                self._close(event, row, "ended", None, ended_at_us)

    def decay(self, event: RecordedEvent, fact_id: str, confidence: float) -> None:
        """Set the decayed confidence of a fact."""
        self._connection.execute(
            "UPDATE facts SET confidence = ?, updated_at_us = ? WHERE id = ?",
            (confidence, event.occurred_at_us, fact_id),
        )

    def _wrong_group(self, fact: StatedFact) -> tuple[str, str, str] | None:
        """Return topic, value and group of the fact that a correction names; None: it corrects the whole topic."""
        named = self._rows("id = ?", fact.payload["corrects"]) if fact.payload.get("corrects") else []
        if named:
            return named[0].topic, named[0].value, named[0].group
        wrong: str | None = fact.payload.get("corrects_object")
        if wrong is None or fact.conflict_key == fact.topic:
            return None
        value = normalised(wrong)
        counted = counted_noun(value)
        return fact.topic, value, group_of(fact.topic, value, f"{fact.topic}|{counted}" if counted else None)

    def _add(self, event: RecordedEvent, fact: StatedFact, kind: Kind, until_us: int | None) -> None:
        """Add the statement of a fact to its group, and the endings that were said after it."""
        is_correction = kind == "correct"
        statement = Statement(
            id=fact.id,
            kind=kind,
            value=fact.value,
            at_us=fact.said_us(event),
            from_us=parse_rfc3339(fact.payload.get("valid_from")),
            until_us=until_us,
            is_assistant=not is_correction and (fact.source_type == "inferred" or event.actor == "assistant"),
            rank=SOURCE_RANKS["corrected" if is_correction else fact.source_type],
            key=0,
            fact_id=None,
        )
        self._statements.add(
            fact.group,
            statement,
            confidence=fact.payload.get("confidence", 1.0),
            source_type=fact.source_type,
            sources=fact.sources(event)[:SOURCES_MAX],
        )
        for ending in self._endings.after(statement.at_us, fact):
            self._add_act(fact.group, ending.id, ending.kind, ending.at_us, ending.value_of(fact.value))

    def _add_act(
        self, group: str, id: str, kind: Kind, at_us: int, value: str | None, fact_id: str | None = None
    ) -> None:
        """Add an end, a retraction or a correction of the whole topic to a group, unless the group has it."""
        act = Statement(
            id=id,
            kind=kind,
            value=value,
            at_us=at_us,
            from_us=None,
            until_us=None,
            is_assistant=False,
            rank=ACT_RANK,
            key=0,
            fact_id=fact_id,
        )
        if not self._statements.has(group, act):
            self._statements.add(group, act, confidence=1.0, source_type="stated", sources=[])

    def _refresh(self, event: RecordedEvent, group: str, topic: str, fact: StatedFact | None = None) -> None:
        """Write the rows of a group by its timeline.

        Parameters:
            fact: the fact that was stated just now, whose statement is in the group.
        """
        statements = self._statements.of_group(group, topic)
        spans = timeline(acting_on(statements, group, topic))
        rows = {row.id: row for row in self._rows(_OF_GROUP, group)}
        owners = _owners(spans, rows)
        moved: dict[str, str] = {}
        changed: set[str] = set()
        for position, span in enumerate(spans):
            owner = owners[position]
            stated = fact if fact is not None and fact.id in {statement.id for statement in span.statements} else None
            if owner is None:
                owner = self._insert_span(event, span, stated)
                owners[position] = owner
            elif stated is not None and owner in rows:
                self._strengthen(event, stated, rows[owner], reactivates=span.status == "active")
            for statement in span.statements:
                if statement.fact_id != owner:
                    self._statements.assign(group, statement.id, owner)
                    if statement.fact_id is not None:
                        moved[statement.fact_id] = owner
                        changed |= {statement.fact_id, owner}
        for id in changed:
            self._set_evidence(group, id)
        for id in (moved.keys() & rows.keys()) - set(owners):
            # All its statements are in another span now.
            self._close(event, rows[id], "superseded", moved[id], None)
        self._close_spans(event, group, spans, [owner or "" for owner in owners])

    def _insert_span(self, event: RecordedEvent, span: Span, stated: StatedFact | None) -> str:
        """Add the row of a span: of the new fact, or of a fact whose time another statement cuts in two."""
        if stated is not None:
            self._insert(event, stated, "active")
            return stated.id
        first = min(span.statements, key=lambda statement: statement.key)
        bindings = {
            "id": first.id,
            "like": first.fact_id,
            "valid_from_us": first.from_us,
            "valid_until_us": first.until_us,
        }
        self._connection.execute(_COPY, bindings)
        return first.id

    def _set_evidence(self, group: str, id: str) -> None:
        """Compute the evidence of a fact from its statements."""
        sources: list[str] = []
        evidence = self._statements.evidence(group, id)
        if not evidence:
            return
        doubt, count = 1.0, 0
        for confidence, _, named, _ in evidence:
            new = [source for source in named if source not in sources]
            if new or not named:
                doubt *= 1 - confidence
                count += 1
                sources += new
        bindings = {
            "id": id,
            "confidence": 1 - doubt,
            "source_type": max((entry[1] for entry in evidence), key=lambda name: SOURCE_RANKS[name]),
            "evidence_count": max(count, 1),
            "source_events": orjson.dumps(sources[:SOURCES_MAX]).decode(),
            "first_us": min(entry[3] for entry in evidence),
            "last_us": max(entry[3] for entry in evidence),
            "day_us": DAY_US,
        }
        self._connection.execute(_SET_EVIDENCE, bindings)

    def _close_spans(self, event: RecordedEvent, group: str, spans: Sequence[Span], owners: Sequence[str]) -> None:
        """Set status and end of validity of the rows by their spans."""
        ids = {id(span): owner for span, owner in zip(spans, owners, strict=True)}
        for span, owner in zip(spans, owners, strict=True):
            if span.status == "active":
                self._connection.execute(_REOPEN, {"id": owner, "valid_until_us": span.end_us, "group": group})
                continue
            by = ids.get(id(span.replaced_by)) if isinstance(span.replaced_by, Span) else span.replaced_by
            for row in self._rows("id = ?", owner):
                present = (row.status, row.superseded_by, row.valid_until_us)
                if row.status != "invalidated" and present != (span.status, by, span.end_us):
                    self._close(event, row, span.status, by, span.end_us)

    def _close(
        self, event: RecordedEvent, row: _FactRow, status: str, superseded_by: str | None, until_us: int | None
    ) -> None:
        """Set status and end of validity of a row."""
        bindings = {
            "status": status,
            "superseded_by": superseded_by,
            "valid_until_us": until_us,
            "occurred_at_us": event.occurred_at_us,
            "key": row.key,
        }
        self._connection.execute(_CLOSE, bindings)

    def _strengthen(self, event: RecordedEvent, fact: StatedFact, row: _FactRow, *, reactivates: bool) -> None:
        """Raise the confidence of a fact that was stated again, unless the sources are the same."""
        said_us = fact.said_us(event)
        if fact.source_type == "corrected":
            self._connection.execute(_CONFIRM, {"key": row.key})
        old_sources: list[str] = orjson.loads(row.source_events)
        sources = [id for id in fact.sources(event) if id not in old_sources]
        if not sources and not (reactivates and row.status not in ("active", "stale")):
            return
        confidence = fact.payload.get("confidence", 1.0)
        bindings = {
            "confidence": combined_confidence(row.confidence, confidence) if sources else row.confidence,
            "source_type": max(row.source_type, fact.source_type, key=lambda name: SOURCE_RANKS[name]),
            "source_events": orjson.dumps([*old_sources, *sources][:SOURCES_MAX]).decode(),
            "evidence": int(bool(sources)),
            "occurred_at_us": said_us,
            "reactivates": reactivates,
            "day_us": DAY_US,
            "key": row.key,
        }
        self._connection.execute(_STRENGTHEN, bindings)

    def _insert(self, event: RecordedEvent, fact: StatedFact, status: str) -> None:
        """Add a row for a fact; nothing when the table has a row with its id."""
        payload, at_us = fact.payload, fact.said_us(event)
        memory_type: str = payload.get("type", "fact")
        ttl_days: int = payload.get("ttl_days") or TTL_DAYS[memory_type]
        bindings = {
            "id": fact.id,
            "version": event.version,
            "entity_id": fact.entity_id,
            "subject": payload["subject"],
            "predicate": payload["predicate"],
            "object": payload["object"],
            "type": memory_type,
            "layer": payload.get("layer", "conversational"),
            "confidence": payload.get("confidence", 1.0),
            "source_type": fact.source_type,
            "status": status,
            "conflict_key": fact.conflict_key,
            "valid_from_us": parse_rfc3339(payload.get("valid_from")),
            "valid_until_us": parse_rfc3339(payload.get("valid_until")),
            "source_events": orjson.dumps(fact.sources(event)[:SOURCES_MAX]).decode(),
            "ttl_days": ttl_days,
            "stale_at_us": at_us + ttl_days * DAY_US,
            "occurred_at_us": at_us,
            "topic": fact.topic,
            "value": fact.value,
        }
        self._connection.execute(_INSERT, bindings)

    def _rows(self, condition: str, *values: str) -> list[_FactRow]:
        """Return the facts that meet a condition, in the order of the log."""
        rows: list[tuple[Any, ...]] = self._connection.execute(
            f"SELECT {', '.join(_COLUMNS)} FROM facts WHERE {condition} ORDER BY key", values
        ).fetchall()
        return [_FactRow(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]


def _owners(spans: Sequence[Span], rows: Mapping[str, _FactRow]) -> list[str | None]:
    """Return the id of the row of each span: the row that its first statement added; None: it has no row yet."""
    founders = {
        statement.fact_id: position
        for position, span in enumerate(spans)
        for statement in span.statements
        if statement.id == statement.fact_id
    }
    owners: list[str | None] = [None] * len(spans)
    for position, span in enumerate(spans):
        for statement in sorted(span.statements, key=lambda statement: statement.key):
            id = statement.fact_id
            if id is None or id not in rows or founders.setdefault(id, position) != position:
                continue
            owners[position] = id
            break
    return owners
