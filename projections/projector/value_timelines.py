"""Value timelines: merge each new statement of a fact or a preference with the rows of its table.

A repeated statement strengthens the existing row. Memories that cannot both hold form a group, whose rows follow the
timeline of what was said (`fact_timeline`): the newest statement of a person is active, and the value before it is
superseded and keeps its row, with an end of validity. A message that arrives late finds its place in the past.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import apsw

from recollect.events.envelope import RecordedEvent, parse_rfc3339
from recollect.projections.projector.fact_endings import Ending
from recollect.projections.projector.fact_rows import (
    OF_GROUP,
    SOURCE_RANKS,
    SOURCES_MAX,
    FactRow,
    FactRows,
    RowTable,
)
from recollect.projections.projector.fact_statements import ACT_RANK, FactStatements, acting_on
from recollect.projections.projector.fact_timeline import DatedStatement, Kind, ValidSpan, timeline
from recollect.projections.projector.stated_fact import StatedMemory


class ValueTimelines:
    """One table, `facts` or `preferences`, with `fact_statements`, updated in the order of the log."""

    def __init__(
        self, connection: apsw.Connection, table: RowTable, endings_of: Callable[[StatedMemory], list[Ending]]
    ) -> None:
        """Open the timelines of a table.

        Parameters:
            endings_of: returns the endings that end a memory, said at the same time as the memory or later.
        """
        self.rows = FactRows(connection, table)
        self.statements = FactStatements(connection)
        self._endings_of = endings_of

    def upsert(self, event: RecordedEvent, fact: StatedMemory) -> None:
        """Add a memory, or strengthen the same one; the time of each statement decides which one is active."""
        said_us = fact.said_us
        until_us = parse_rfc3339(fact.payload.get("valid_until"))
        is_past = until_us is not None and until_us <= said_us
        if not fact.extracted and not is_past:
            # The producer states the retracted fact again, which undoes the retraction from then on.
            self.statements.limit_retractions(fact.group, fact.value, said_us)
        self.add(event, fact, "past" if is_past else "state", until_us)
        self.refresh(event, fact.group, fact.topic, fact)

    def retract(self, event: RecordedEvent, id: str) -> None:
        """Invalidate a memory; what was said up to now does not add it again."""
        for row in self.rows.select("id = ?", id):
            self.add_act(row.group, event.id, "retract", event.occurred_at_us, row.value)
            self.refresh(event, row.group, row.topic)
            if row.status == "rejected":
                self.rows.close(event, row, "invalidated", None, event.occurred_at_us)

    def end_row(self, event: RecordedEvent, id: str, ended_at_us: int) -> None:
        """End one memory; what was said up to now does not make it active again."""
        for row in self.rows.select("id = ?", id):
            self.add_act(row.group, event.id, "end", event.occurred_at_us, row.value)
            self.refresh(event, row.group, row.topic)
            if row.status in ("active", "stale"):
                self.rows.close(event, row, "ended", None, ended_at_us)

    def refresh_groups(self, event: RecordedEvent, groups: Sequence[str]) -> None:
        """Write the rows of groups that lost statements, some of which hold again."""
        for group in groups:
            rows = self.rows.select(OF_GROUP, group)
            if rows:
                self.refresh(event, group, rows[0].topic, reopens=True)

    def refresh_evidence(self, ids: Sequence[str]) -> None:
        """Compute confidence and sources of rows again from their statements."""
        for id in ids:
            for row in self.rows.select("id = ?", id):
                self.rows.set_evidence(id, self.statements.evidence(row.group, id))

    def add(self, event: RecordedEvent, fact: StatedMemory, kind: Kind, until_us: int | None) -> None:
        """Add the statement of a fact to its group, and the endings that were said after it."""
        is_correction = kind == "correct"
        statement = DatedStatement(
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
        self.statements.add(
            fact.group,
            statement,
            confidence=fact.confidence,
            source_type=fact.source_type,
            sources=fact.sources[:SOURCES_MAX],
        )
        for ending in self._endings_of(fact):
            self.add_act(fact.group, ending.id, ending.kind, ending.at_us, ending.value_of(fact.value))

    def add_act(
        self, group: str, id: str, kind: Kind, at_us: int, value: str | None, fact_id: str | None = None
    ) -> None:
        """Add an end, a retraction or a correction of the whole topic to a group, unless the group has it."""
        act = DatedStatement(
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
        if not self.statements.has(group, act):
            self.statements.add(group, act, confidence=1.0, source_type="stated", sources=[])

    def refresh(
        self, event: RecordedEvent, group: str, topic: str, fact: StatedMemory | None = None, *, reopens: bool = False
    ) -> None:
        """Write the rows of a group by its timeline.

        Parameters:
            fact: the fact that was stated just now, whose statement is in the group.
            reopens: whether rows hold again that an event outside the group replaced, or an ending ended.
        """
        statements = self.statements.of_group(group, topic)
        spans = timeline(acting_on(statements, group, topic))
        rows = {row.id: row for row in self.rows.select(OF_GROUP, group)}
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
                self.rows.strengthen(stated, rows[owner], reactivates=span.status == "active")
            for statement in span.statements:
                if statement.fact_id != owner:
                    self.statements.assign(group, statement.id, owner)
                    if statement.fact_id is not None:
                        moved[statement.fact_id] = owner
                        changed |= {statement.fact_id, owner}
        for id in changed:
            self.rows.set_evidence(id, self.statements.evidence(group, id))
        for id in (moved.keys() & rows.keys()) - set(owners):
            # All its statements are in another span now.
            self.rows.close(event, rows[id], "superseded", moved[id], None)
        self._close_spans(event, spans, [owner or "" for owner in owners])
        for span, owner in zip(spans, owners, strict=True):
            if span.status == "active" and owner is not None:
                self.rows.reopen(owner, span.end_us, None if reopens else group)

    def _insert_span(self, event: RecordedEvent, span: ValidSpan, stated: StatedMemory | None) -> str:
        """Add the row of a span: of the new fact, or of a fact whose time another statement cuts in two."""
        if stated is not None:
            self.rows.insert(event, stated, "active")
            return stated.id
        first = min(span.statements, key=lambda statement: statement.key)
        self.rows.copy(first.id, first.fact_id, first.from_us, first.until_us)
        return first.id

    def _close_spans(self, event: RecordedEvent, spans: Sequence[ValidSpan], owners: Sequence[str]) -> None:
        """Set status and end of validity of the rows of spans that are over."""
        ids = {id(span): owner for span, owner in zip(spans, owners, strict=True)}
        for span, owner in zip(spans, owners, strict=True):
            if span.status == "active":
                continue
            by = ids.get(id(span.replaced_by)) if isinstance(span.replaced_by, ValidSpan) else span.replaced_by
            for row in self.rows.select("id = ?", owner):
                present = (row.status, row.superseded_by, row.valid_until_us)
                if row.status != "invalidated" and present != (span.status, by, span.end_us):
                    self.rows.close(event, row, span.status, by, span.end_us)


def _owners(spans: Sequence[ValidSpan], rows: Mapping[str, FactRow]) -> list[str | None]:
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
