"""Profile queries: read who said what, and the values that were replaced or ended, for the profile of a namespace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import apsw
import orjson

from recollect.projections.queries.day_zone import DayZone
from recollect.projections.queries.records import fetch_dicts, fetch_tuples
from recollect.projections.text.statement_lines import fact_line, preference_line, relationship_line

# Messages by id. Of one that has expired, the time alone is still here, with a summary that stands for it.
_SPOKEN = """
SELECT id, '' AS speaker, occurred_at_us, utc_offset FROM episode_sources WHERE id IN (SELECT value FROM json_each(?1))
UNION ALL SELECT id, speaker, occurred_at_us, utc_offset FROM episodes WHERE id IN (SELECT value FROM json_each(?1))
"""
_NAMES = "SELECT id, name FROM entities WHERE id IN (SELECT value FROM json_each(?))"
# Facts that were replaced, ended or withdrawn, the last ones first. One that was merged into an equal one has no end of
# validity; one that was over when it was said (`I used to live in Oslo`) changed nothing.
_FACTS = """
SELECT old.id, coalesce(old.valid_from_us, old.created_at_us) AS since_us,
    coalesce(old.valid_until_us, old.updated_at_us) AS at_us, old.status, old.source_events,
    old.statement_kind AS topic, old.subject AS person, old.subject, old.predicate, old.object, old.statement,
    new.id AS after_id, coalesce(new.statement, new.object) AS after
FROM current_facts AS old
LEFT JOIN facts AS new ON new.id = old.superseded_by AND new.status NOT IN ('forgotten', 'rejected')
WHERE old.status = 'invalidated' OR (old.status = 'superseded' AND old.valid_until_us IS NOT NULL)
    OR (old.status = 'ended' AND old.valid_until_us > old.created_at_us)
ORDER BY at_us DESC, old.key DESC LIMIT ?
"""
_PREFERENCES = """
SELECT old.id, coalesce(old.valid_from_us, old.created_at_us) AS since_us,
    coalesce(old.valid_until_us, old.updated_at_us) AS at_us, old.status, old.source_events,
    iif(old.standing, 'rule', 'preference') AS topic, old.subject AS person, old.subject, old.category, old.name,
    old.value, new.id AS after_id, new.value AS after
FROM preferences AS old
LEFT JOIN preferences AS new ON new.id = old.superseded_by AND new.status NOT IN ('forgotten', 'rejected')
WHERE old.status IN ('invalidated', 'ended') OR (old.status = 'superseded' AND old.valid_until_us IS NOT NULL)
ORDER BY at_us DESC, old.key DESC LIMIT ?
"""
_RELATIONSHIPS = """
SELECT r.id, r.created_at_us AS since_us, r.updated_at_us AS at_us, r.status, r.source_events, 'relation' AS topic,
    source.name AS person, source.name AS source, r.type, target.name AS target, NULL AS after_id, NULL AS after
FROM relationships AS r
JOIN entities AS source ON source.id = source_id JOIN entities AS target ON target.id = target_id
WHERE r.status IN ('ended', 'superseded') ORDER BY at_us DESC, r.key DESC LIMIT ?
"""


class Spoken(NamedTuple):
    """A message that states something."""

    #: Empty: the message has expired.
    speaker: str
    at_us: int
    #: Minutes east of UTC.
    utc_offset: int


class ValueChange(NamedTuple):
    """A memory that was replaced, ended or withdrawn."""

    kind: str
    #: Of the memory that holds no longer.
    id: str
    #: Name of the subject; empty: the user.
    person: str
    #: What a fact is about; None: not known.
    topic: str | None
    since_us: int
    #: End of its validity, which is the time of the change.
    at_us: int
    #: superseded, ended or invalidated.
    status: str
    #: Ids of the events that stated it.
    source_events: tuple[str, ...]
    #: What it said, as a line.
    before: str
    #: The new value; None: nothing replaced it.
    after: str | None
    #: The id of the memory with the new value.
    after_id: str | None


class ProfileQueries:
    """Queries on speakers and changes."""

    def __init__(self, connection: apsw.Connection, days: DayZone) -> None:
        self._connection = connection
        self._days = days

    def spoken(self, event_ids: Collection[str]) -> dict[str, Spoken]:
        """Return those of these events that are messages, by id."""
        rows = fetch_tuples(self._connection, _SPOKEN, (orjson.dumps([*event_ids]).decode(),))
        return {id: Spoken(speaker, at_us, self._days.offset(at_us, zone)) for id, speaker, at_us, zone in rows}

    def names(self, entity_ids: Iterable[int]) -> dict[int, str]:
        """Return the names of these entities by id."""
        return dict(fetch_tuples(self._connection, _NAMES, (orjson.dumps([*entity_ids]).decode(),)))

    def changes(self, limit: int) -> list[ValueChange]:
        """Return the last `limit` changes of values, the newest first."""
        changes = [
            _change(kind, line, row)
            for kind, statement, line in _CHANGES
            for row in fetch_dicts(self._connection, statement, (limit,))
        ]
        return sorted(changes, key=lambda change: -change.at_us)[:limit]


def _fact_line(row: dict[str, Any]) -> str:
    return row["statement"] or fact_line(row["subject"], row["predicate"], row["object"])


def _preference_line(row: dict[str, Any]) -> str:
    is_rule = row["topic"] == "rule"
    return row["value"] if is_rule else preference_line(row["subject"], row["category"], row["name"], row["value"])


def _relationship_line(row: dict[str, Any]) -> str:
    return relationship_line(row["source"], row["type"], row["target"])


#: Each kind with its statement and the line of a row.
_CHANGES = (
    ("fact", _FACTS, _fact_line),
    ("preference", _PREFERENCES, _preference_line),
    ("relationship", _RELATIONSHIPS, _relationship_line),
)


def _change(kind: str, line: Callable[[dict[str, Any]], str], row: dict[str, Any]) -> ValueChange:
    """Return a row as a change."""
    return ValueChange(
        kind=kind,
        id=row["id"],
        person=row["person"],
        topic=row["topic"],
        since_us=row["since_us"],
        at_us=row["at_us"],
        status=row["status"],
        source_events=tuple(orjson.loads(row["source_events"])),
        before=line(row),
        after=row["after"],
        after_id=row["after_id"],
    )
