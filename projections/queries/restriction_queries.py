"""Restriction queries: read who must not be shown which messages, and all that was derived from a set of messages."""

from __future__ import annotations

from collections.abc import Collection

import apsw
import orjson
from msgspec import Struct

from recollect.events.memory_kinds import TABLES_WITH_STATUS
from recollect.projections.queries.records import fetch_tuples, fetch_values

_ALL = "SELECT id, not_for, speaker, session_id FROM restrictions ORDER BY version"
_USERS = "SELECT DISTINCT speaker FROM episodes WHERE role = 'user' AND tier = 'raw'"
_REPETITIONS = "SELECT id, source FROM repetitions ORDER BY version"
# The memories that name an event among their sources.
_DERIVED = " UNION ALL ".join(
    f"SELECT id FROM {table} AS memory WHERE EXISTS ("
    "SELECT 1 FROM json_each(memory.source_events) AS source WHERE source.value IN (SELECT value FROM json_each(?1)))"
    for table in TABLES_WITH_STATUS
)
# The episodes with these ids, of which some have expired, and the summaries of them.
_EPISODES = """
SELECT version, id FROM restrictions WHERE id IN (SELECT value FROM json_each(?1))
UNION SELECT version, id FROM repetitions WHERE id IN (SELECT value FROM json_each(?1))
UNION SELECT version, id FROM episodes WHERE version IN (
    SELECT version FROM episode_sources WHERE id IN (SELECT value FROM json_each(?1))
)
"""
_LINKED = """
SELECT group_id FROM entity_groups JOIN entity_links USING (entity_id) WHERE source IN (SELECT value FROM json_each(?1))
"""
_DESCRIBED = """
SELECT group_id FROM entity_groups JOIN entity_evidence USING (entity_id)
WHERE source IN (SELECT value FROM json_each(?1))
"""

_NAMED_BY_OTHERS = """
SELECT DISTINCT group_id FROM entity_groups JOIN mentions USING (entity_id)
WHERE group_id IN (SELECT value FROM json_each(?1)) AND version NOT IN (SELECT value FROM json_each(?2))
"""


class Restriction(Struct, frozen=True, kw_only=True):
    """The people who must not be shown a message."""

    id: str
    #: Their names; `*`: every person but the speaker.
    not_for: tuple[str, ...]
    speaker: str
    session_id: str | None


class HiddenMemories(Struct, frozen=True, kw_only=True):
    """The memories that the asker must not be shown."""

    #: Ids of messages, summaries, facts and other memories.
    ids: frozenset[str] = frozenset()
    #: Versions of the messages and summaries among them, also of those that have expired.
    versions: tuple[int, ...] = ()
    #: Sessions with such a message.
    sessions: frozenset[str] = frozenset()
    #: Entities with a name, or a description, from such a message.
    linked_entities: frozenset[int] = frozenset()
    described_entities: frozenset[int] = frozenset()

    def hides(self, id: str, source_events: Collection[str]) -> bool:
        """Return whether a memory is hidden, or one of the events that it is derived from."""
        return bool(self.ids) and (id in self.ids or not self.ids.isdisjoint(source_events))


NOTHING_HIDDEN = HiddenMemories()


class RestrictionQueries:
    """Queries on the tables `restrictions` and `repetitions`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def all(self) -> list[Restriction]:
        """Return the restricted messages, in the order of the log."""
        rows = fetch_tuples(self._connection, _ALL)
        return [
            Restriction(id=id, not_for=tuple(orjson.loads(not_for)), speaker=speaker, session_id=session_id)
            for id, not_for, speaker, session_id in rows
        ]

    def users(self) -> frozenset[str]:
        """Return the names of the users whose messages have not expired, case folded."""
        return frozenset(name.casefold() for name in fetch_values(self._connection, _USERS))

    def derived(self, messages: Collection[Restriction]) -> HiddenMemories:
        """Return messages with all that was derived from them; a memory with one such source is among it."""
        ids = {message.id for message in messages}
        repetitions = fetch_tuples(self._connection, _REPETITIONS)
        # Each round adds a repetition at least, or is the last one.
        for _ in range(len(repetitions) + 1):
            before, encoded = len(ids), _json(ids)
            ids.update(fetch_values(self._connection, _DERIVED, (encoded,)))
            ids.update(id for _, id in fetch_tuples(self._connection, _EPISODES, (encoded,)))
            ids.update(id for id, source in repetitions if source in ids)
            if len(ids) == before:
                break
        encoded = _json(ids)
        return HiddenMemories(
            ids=frozenset(ids),
            versions=tuple(version for version, _ in fetch_tuples(self._connection, _EPISODES, (encoded,))),
            sessions=frozenset(message.session_id for message in messages if message.session_id is not None),
            linked_entities=frozenset(fetch_values(self._connection, _LINKED, (encoded,))),
            described_entities=frozenset(fetch_values(self._connection, _DESCRIBED, (encoded,))),
        )

    def named_by_others(self, entities: Collection[int], hidden: HiddenMemories) -> frozenset[int]:
        """Return the entities that a message names which is not hidden."""
        bindings = (orjson.dumps(sorted(entities)).decode(), orjson.dumps(hidden.versions).decode())
        return frozenset(fetch_values(self._connection, _NAMED_BY_OTHERS, bindings))


def _json(ids: Collection[str]) -> str:
    return orjson.dumps(sorted(ids)).decode()
