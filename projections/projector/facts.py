"""Facts: merges each new statement with the facts of the read model.

A repeated fact strengthens the existing one. Facts that cannot both hold form a group, whose rows follow the timeline
of what was said (`fact_timeline`): the newest statement of a person is active, and the value before it is superseded
and keeps its row, with an end of validity. A message that arrives late finds its place in the past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw

from recollect.events.envelope import RecordedEvent, parse_rfc3339
from recollect.projections.projector.fact_endings import Ending, FactEndings
from recollect.projections.projector.fact_rows import OF_GROUP, SOURCE_RANKS, SOURCES_MAX, FactRow, FactRows
from recollect.projections.projector.fact_statements import ACT_RANK, FactStatements, acting_on
from recollect.projections.projector.fact_timeline import Kind, Span, Statement, timeline
from recollect.projections.projector.predicates import counted_noun, normalised
from recollect.projections.projector.stated_fact import StatedFact, group_of


class Facts:
    """The tables `facts`, `fact_statements` and `fact_endings`, updated in the order of the log."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._rows = FactRows(connection)
        self._statements = FactStatements(connection)
        self._endings = FactEndings(connection)

    def upsert(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Add a fact, or strengthen the same one; the time of each statement decides which fact is active."""
        said_us = fact.said_us
        until_us = parse_rfc3339(fact.payload.get("valid_until"))
        is_past = until_us is not None and until_us <= said_us
        if not fact.extracted and not is_past:
            # The producer states the retracted fact again, which undoes the retraction from then on.
            self._statements.limit_retractions(fact.group, fact.value, said_us)
        self._add(event, fact, "past" if is_past else "state", until_us)
        self._refresh(event, fact.group, fact.topic, fact)

    def reject(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Add a fact that failed the quality gate, unless the table has it already."""
        if not self._rows.select("topic = ? AND value = ?", fact.topic, fact.value):
            self._rows.insert(event, fact, "rejected")

    def correct(self, event: RecordedEvent, fact: StatedFact) -> None:
        """Add a correction, which supersedes what was said before it; what is said later supersedes the correction."""
        wrong = self._wrong_group(fact)
        self._add(event, fact, "correct", None)
        self._refresh(event, fact.group, fact.topic, fact)
        correct_id = self._statements.fact_id(fact.group, fact.id) or fact.id
        until_us = parse_rfc3339(fact.payload.get("valid_from")) or fact.said_us
        if wrong is not None:
            topic, value, group = wrong
            if group != fact.group:
                self._add_act(group, fact.id, "end", until_us, value, correct_id)
                self._refresh(event, group, topic)
        elif fact.conflict_key is None:
            # Every other fact of the topic is wrong, also one that was said earlier and arrives later.
            self._add_act(fact.topic, fact.id, "correct", until_us, fact.value, correct_id)
            for row in self._rows.select("topic = ? AND status IN ('active', 'stale')", fact.topic):
                if row.id != correct_id:
                    self._refresh(event, row.group, row.topic)

    def retract(self, event: RecordedEvent, fact_id: str) -> None:
        """Invalidate a fact; what was said up to now does not add it again."""
        for row in self._rows.select("id = ?", fact_id):
            self._add_act(row.group, event.id, "retract", event.occurred_at_us, row.value)
            self._refresh(event, row.group, row.topic)
            if row.status == "rejected":
                self._rows.close(event, row, "invalidated", None, event.occurred_at_us)

    def supersede(self, event: RecordedEvent, fact_id: str, by: str, until_us: int | None) -> None:
        """End a fact that the fact `by` replaces.

        Parameters:
            until_us: end of validity unless the fact has one; None: the time of the event.
        """
        for row in self._rows.select("id = ? AND id <> ?", fact_id, by):
            self._add_act(row.group, event.id, "end", until_us or event.occurred_at_us, row.value, by)
            self._refresh(event, row.group, row.topic)
            if row.status in ("active", "stale"):
                until_us = until_us or row.valid_until_us or event.occurred_at_us
                self._rows.close(event, row, "superseded", by, until_us)

    def end(self, event: RecordedEvent, ending: Ending) -> None:
        """End what an ending speaks of, also the facts that were said earlier and arrive later."""
        self._endings.add(ending)
        self._endings.apply_to_other_kinds(ending)
        groups: dict[str, str] = {}
        for row in self._endings.matching_facts(ending):
            group = group_of(row.topic, row.value, row.conflict_key)
            spared = ending.spares(row.predicate, self._statements.sources_at(group, ending.at_us))
            # Before what its own message states.
            at_us = ending.at_us - 1 if spared else ending.at_us
            self._add_act(group, ending.id, ending.kind, at_us, ending.value_of(row.value))
            groups[group] = row.topic
        for group, topic in groups.items():
            self._refresh(event, group, topic)

    def end_fact(self, event: RecordedEvent, fact_id: str, ended_at_us: int) -> None:
        """End one fact; what was said up to now does not make it active again."""
        for row in self._rows.select("id = ?", fact_id):
            self._add_act(row.group, event.id, "end", event.occurred_at_us, row.value)
            self._refresh(event, row.group, row.topic)
            if row.status in ("active", "stale"):
                self._rows.close(event, row, "ended", None, ended_at_us)

    def forget_source(self, event: RecordedEvent, source_id: str) -> None:
        """Undo what only the message `source_id` states, replaces or ends; the facts before it hold again.

        A fact that no other event states keeps its status: the caller hides it. Nothing is undone for the id of a fact,
        since a user who forgets a correction does not want the wrong value back.
        """
        if self._rows.select("id = ?", source_id):
            return
        groups = self._statements.forget(source_id, self._endings.forget(source_id))
        for group in groups:
            rows = self._rows.select(OF_GROUP, group)
            if rows:
                self._refresh(event, group, rows[0].topic, reopens=True)

    def decay(self, event: RecordedEvent, fact_id: str, confidence: float) -> None:
        """Set the decayed confidence of a fact."""
        self._rows.decay(event, fact_id, confidence)

    def _wrong_group(self, fact: StatedFact) -> tuple[str, str, str] | None:
        """Return topic, value and group of the fact that a correction names; None: it corrects the whole topic."""
        named = self._rows.select("id = ?", fact.payload["corrects"]) if fact.payload.get("corrects") else []
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
            at_us=fact.said_us,
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
            sources=fact.sources[:SOURCES_MAX],
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

    def _refresh(
        self, event: RecordedEvent, group: str, topic: str, fact: StatedFact | None = None, *, reopens: bool = False
    ) -> None:
        """Write the rows of a group by its timeline.

        Parameters:
            fact: the fact that was stated just now, whose statement is in the group.
            reopens: whether rows hold again that an event outside the group replaced, or an ending ended.
        """
        statements = self._statements.of_group(group, topic)
        spans = timeline(acting_on(statements, group, topic))
        rows = {row.id: row for row in self._rows.select(OF_GROUP, group)}
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
                self._rows.strengthen(stated, rows[owner], reactivates=span.status == "active")
            for statement in span.statements:
                if statement.fact_id != owner:
                    self._statements.assign(group, statement.id, owner)
                    if statement.fact_id is not None:
                        moved[statement.fact_id] = owner
                        changed |= {statement.fact_id, owner}
        for id in changed:
            self._rows.set_evidence(id, self._statements.evidence(group, id))
        for id in (moved.keys() & rows.keys()) - set(owners):
            # All its statements are in another span now.
            self._rows.close(event, rows[id], "superseded", moved[id], None)
        self._close_spans(event, spans, [owner or "" for owner in owners])
        for span, owner in zip(spans, owners, strict=True):
            if span.status == "active" and owner is not None:
                self._rows.reopen(owner, span.end_us, None if reopens else group)

    def _insert_span(self, event: RecordedEvent, span: Span, stated: StatedFact | None) -> str:
        """Add the row of a span: of the new fact, or of a fact whose time another statement cuts in two."""
        if stated is not None:
            self._rows.insert(event, stated, "active")
            return stated.id
        first = min(span.statements, key=lambda statement: statement.key)
        self._rows.copy(first.id, first.fact_id, first.from_us, first.until_us)
        return first.id

    def _close_spans(self, event: RecordedEvent, spans: Sequence[Span], owners: Sequence[str]) -> None:
        """Set status and end of validity of the rows of spans that are over."""
        ids = {id(span): owner for span, owner in zip(spans, owners, strict=True)}
        for span, owner in zip(spans, owners, strict=True):
            if span.status == "active":
                continue
            by = ids.get(id(span.replaced_by)) if isinstance(span.replaced_by, Span) else span.replaced_by
            for row in self._rows.select("id = ?", owner):
                present = (row.status, row.superseded_by, row.valid_until_us)
                if row.status != "invalidated" and present != (span.status, by, span.end_us):
                    self._rows.close(event, row, span.status, by, span.end_us)


def _owners(spans: Sequence[Span], rows: Mapping[str, FactRow]) -> list[str | None]:
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
