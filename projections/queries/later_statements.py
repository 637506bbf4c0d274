"""Later statements: the events that ended or replaced what a message said, or may have, by the id of its event.

A message is evidence and stays as it is. What was said later is shown with it, so that a reader sees both. What is in
doubt is found by the id of the memory, too, which holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import apsw
import orjson

from recollect.projections.queries.records import fetch_dicts, json_list
from recollect.projections.text.statement_lines import fact_line

#: Replacements that are followed from a statement to the newest one.
_STEPS_MAX = 20

# The facts of a condition, with what replaced them. A fact that was merged into an equal one has no end of validity.
_FACTS = """
SELECT id, status, superseded_by, valid_until_us IS NOT NULL AS is_closed, source_events, object AS about,
    created_at_us, subject, predicate, object
FROM current_facts WHERE {condition} ORDER BY key
"""
_PREFERENCES = """
SELECT id, status, superseded_by, valid_until_us IS NOT NULL AS is_closed, source_events, name || ' ' || value AS about,
    created_at_us
FROM preferences WHERE {condition} ORDER BY key
"""
_RELATIONSHIPS = """
SELECT r.id AS id, r.status, superseded_by, 1 AS is_closed, source_events, target.name AS about, created_at_us
FROM (SELECT * FROM relationships WHERE {condition}) AS r JOIN entities AS target ON target.id = target_id
ORDER BY r.key
"""
# What holds no more, and what has taken its place, which may hold: most memories are neither.
_CLOSED = "status IN ('superseded', 'ended')"
_NAMED = "status IN ('active', 'stale') AND id IN (SELECT value FROM json_each(?))"
# The newest ending of each fact and preference that ended, and the ending of each relationship.
_ENDINGS = """
WITH ended (id, value, until_us) AS (
    SELECT id, value, valid_until_us FROM facts WHERE status = 'ended'
    UNION ALL SELECT id, value, valid_until_us FROM preferences WHERE status = 'ended'
)
SELECT ended.id AS id, fact_endings.source_events AS source_events, fact_endings.at_us AS at_us,
    fact_endings.about AS names FROM ended
JOIN fact_statements AS said ON said.fact_id = ended.id AND said.kind IN ('state', 'correct')
JOIN fact_statements AS over ON over.group_key = said.group_key AND over.kind = 'end'
    AND coalesce(over.value, ended.value) = ended.value AND over.at_us <= ended.until_us
JOIN fact_endings ON fact_endings.id = over.id
UNION SELECT relationships.id, fact_endings.source_events, at_us, '[]'
FROM relationships JOIN fact_endings ON fact_endings.id = ended_by
ORDER BY id, at_us
"""
# The memories that hold and may have changed since they were said last, with what says so: the newest of those that are
# likely last, or else the likeliest. A topic is subject and predicate, and who says it of others, after a control sign.
_DOUBTS = """
WITH doubts AS (SELECT * FROM fact_endings WHERE probability < 1)
SELECT facts.id, facts.source_events, doubts.about, doubts.source_events AS doubted_by, at_us,
    min(probability, 0.75) AS chance
FROM doubts JOIN json_each(doubts.predicates) AS named
JOIN facts ON facts.topic = doubts.subject || '|' || named.value || iif(voice = '', '', char(30) || voice)
    AND facts.value = doubts.object
WHERE facts.status IN ('active', 'stale') AND at_us > updated_at_us
UNION ALL SELECT preferences.id, preferences.source_events, doubts.about, doubts.source_events, at_us,
    min(probability, 0.75)
FROM doubts JOIN preferences ON preferences.subject = doubts.subject
    AND trim(lower(value), ' .,;:!?"“”‘’()') = doubts.object
WHERE predicates = '[]' AND status IN ('active', 'stale') AND at_us > updated_at_us
UNION ALL SELECT facts.id, '[]', '[]', doubts.source_events, at_us, min(probability, 0.75)
FROM facts CROSS JOIN fact_endings AS doubts ON doubts.event = json_extract(facts.source_events, '$[0]')
WHERE facts.status IN ('active', 'stale') AND at_us > updated_at_us
UNION ALL SELECT event, '[]', '[]', source_events, at_us, min(probability, 0.75) FROM fact_endings
WHERE event IS NOT NULL
ORDER BY chance, at_us
"""


class LaterStatement(NamedTuple):
    """What ended or replaced a statement, or may have."""

    #: The id of the event that says so: a message, or the correction of a producer.
    source_event: str
    #: When it was said.
    at_us: int
    #: Words of the statement, with which its sentence is found in the message.
    about: str
    #: The statement as a line, for an event that is not a message; empty for an ending.
    line: str
    #: Stems of the thing that an ending names; a message that it ends has one of them. Empty: it names nothing.
    names: frozenset[str] = frozenset()
    #: Whether it only may have changed the statement, which holds.
    is_doubt: bool = False


#: The source events of an ending, its time, and the stems of what it names.
_Ending = tuple[list[str], int, frozenset[str]]


def later_statements(connection: apsw.Connection) -> dict[str, LaterStatement]:
    """Return the newest statement that ended or replaced one of an event, by the id of that event.

    What may have changed one is there by the id of the memory, too. It gives way to what surely did.
    """
    endings = {
        row["id"]: (orjson.loads(row["source_events"]), row["at_us"], frozenset(orjson.loads(row["names"])))
        for row in fetch_dicts(connection, _ENDINGS)
    }
    later = _doubts(connection)
    for query in (_FACTS, _PREFERENCES, _RELATIONSHIPS):
        closed = {row["id"]: row for row in fetch_dicts(connection, query.format(condition=_CLOSED))}
        following = json_list({row["superseded_by"] for row in closed.values() if row["superseded_by"]} - closed.keys())
        holding = fetch_dicts(connection, query.format(condition=_NAMED), (following,)) if closed else ()
        rows = closed | {row["id"]: row for row in holding}
        for row in closed.values():
            statement = _newest(row, rows, endings)
            if statement is None:
                continue
            for source in orjson.loads(row["source_events"]):
                other = later.get(source)
                is_newest = other is None or other.is_doubt or other.at_us < statement.at_us
                if is_newest and source != statement.source_event:
                    later[source] = statement
    return later


def _doubts(connection: apsw.Connection) -> dict[str, LaterStatement]:
    """Return the statements that may have changed a memory that holds, by its id and those of its events."""
    later: dict[str, LaterStatement] = {}
    for row in fetch_dicts(connection, _DOUBTS):
        source = orjson.loads(row["doubted_by"])[0]
        about = " ".join(orjson.loads(row["about"]))
        statement = LaterStatement(source, row["at_us"], about, "", is_doubt=True)
        later |= {id: statement for id in (row["id"], *orjson.loads(row["source_events"])) if id != source}
    return later


def _newest(row: dict[str, Any], rows: dict[str, dict[str, Any]], endings: dict[str, _Ending]) -> LaterStatement | None:
    """Return the last statement of the replacements of a row; None for a row that holds."""
    statement: LaterStatement | None = None
    for closed in _replacements(row, rows):
        if closed is not row:
            # Its first source stated it first; a correction of a producer is its own source.
            source: str = orjson.loads(closed["source_events"])[0]
            names = ("subject", "predicate", "object")
            line = fact_line(*(closed[name] for name in names)) if "predicate" in closed else ""
            statement = LaterStatement(source, closed["created_at_us"], closed["about"], line)
        ending = endings.get(closed["id"]) if closed["status"] == "ended" else None
        if ending is not None and ending[0]:
            sources, at_us, names = ending
            statement = LaterStatement(sources[0], at_us, closed["about"], "", names)
    return statement


def _replacements(row: dict[str, Any], rows: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row and the rows that replaced it, one after the other."""
    following: dict[str, Any] | None = row
    for _ in range(_STEPS_MAX):
        if following is None:
            return
        yield following
        is_replaced = following["status"] == "superseded" and following["is_closed"]
        following = rows.get(following["superseded_by"]) if is_replaced else None
