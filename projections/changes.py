"""What a batch of events changes in a read model: collected in memory, written with few statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import orjson

from recollect.events.envelope import RecordedEvent
from recollect.projections.names import mentioned_names
from recollect.projections.tokens import estimate_tokens

_ADD_EPISODE = "INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'raw', ?)"
_SAVE_SESSION = "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_ENTITY = "INSERT INTO entities VALUES (?, ?, 'other', NULL, '[]', ?, ?, 0, 0)"
_ADD_NAME = "INSERT OR REPLACE INTO entity_names VALUES (?, ?)"
_SEEN = (
    "UPDATE entities SET first_seen_us = min(first_seen_us, ?), last_seen_us = max(last_seen_us, ?), "
    "mention_count = mention_count + ?, spoken_count = spoken_count + ? WHERE id = ?"
)
_DESCRIBE = "UPDATE entities SET type = ?, description = coalesce(?, description), aliases = ? WHERE id = ?"
_INDEX = (
    "INSERT INTO episodes_fts (rowid, text, caption, previous) "
    "SELECT version, text, caption, previous FROM episodes_search WHERE version >= ?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """What a handler says of an episode; the rest comes from the event and its session."""

    #: conversation, action or observation.
    type: str
    speaker: str
    text: str
    role: str | None = None
    caption: str | None = None
    importance: int
    outcome: str | None = None


@dataclass(slots=True)
class Session:
    """One row of `sessions` while a batch works on it, in the order of its columns."""

    id: str
    channel: str | None
    user_id: str | None
    started_at_us: int
    ended_at_us: int | None
    last_at_us: int
    last_version: int | None
    episode_count: int
    summary: str | None
    metadata: str | None

    def row(self) -> tuple[Any, ...]:
        """Return the parameters of `_SAVE_SESSION`."""
        return (
            self.id,
            self.channel,
            self.user_id,
            self.started_at_us,
            self.ended_at_us,
            self.last_at_us,
            self.last_version,
            self.episode_count,
            self.summary,
            self.metadata,
        )


@dataclass(slots=True)
class _Seen:
    """How often, and between when, a batch saw an entity."""

    first_us: int
    last_us: int
    mentions: int = 0
    spoken: int = 0


class EntityNames(dict[str, int]):
    """Case-folded name → id of the entity, with the id that the next new entity gets.

    Kept between batches, since a namespace may know thousands; valid as long as nobody else has folded in between.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection.execute("SELECT name, entity_id FROM entity_names"))
        row: tuple[Any, ...] = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM entities").fetchall()[0]
        self.next_id = row[0]


class Changes:
    """What the batch changes so far.

    Parameters:
        connection: the read model, inside the transaction that `write` belongs to.
        names: the entities known so far; grows with the batch, so it must be dropped when the batch is rolled back.
    """

    def __init__(self, connection: apsw.Connection, names: EntityNames) -> None:
        self._connection = connection
        self._names = names
        self._episodes: list[tuple[Any, ...]] = []
        self._sessions: dict[str, Session] = {}
        self._new_entities: list[tuple[int, str, int, int]] = []
        self._new_names: dict[str, int] = {}
        self._seen: dict[int, _Seen] = {}
        self._mentions: list[tuple[int, int]] = []

    def session(self, event: RecordedEvent) -> Session:
        """Return the event's session, begun by this event when it is new."""
        assert event.session_id is not None
        session = self._sessions.get(event.session_id)
        if session is None:
            row: tuple[Any, ...] | None = self._connection.execute(
                "SELECT * FROM sessions WHERE id = ?", (event.session_id,)
            ).fetchone()
            at = event.occurred_at_us
            session = Session(*row) if row else Session(event.session_id, None, None, at, None, at, None, 0, None, None)
            self._sessions[event.session_id] = session
        session.last_at_us = max(session.last_at_us, event.occurred_at_us)
        return session

    def add_episode(self, event: RecordedEvent, episode: Episode) -> None:
        """Add the episode that `event` tells, and the entities its text names."""
        previous: int | None = None
        if event.session_id is not None:
            session = self.session(event)
            previous, session.last_version = session.last_version, event.version
            session.episode_count += 1
        self._episodes.append(
            (
                event.version,
                event.id,
                event.session_id,
                previous,
                event.occurred_at_us,
                episode.type,
                episode.role,
                episode.speaker,
                episode.text,
                episode.caption,
                episode.importance,
                episode.outcome,
                estimate_tokens(episode.text),
            )
        )
        for entity_id in {self._entity(event, name) for name in mentioned_names(episode.text, self._names)}:
            self._see(event, entity_id).mentions += 1
            self._mentions.append((entity_id, event.version))

    def spoke(self, event: RecordedEvent, name: str) -> None:
        """Count `name` as the speaker of `event`."""
        self._see(event, self._entity(event, name)).spoken += 1

    def describe(
        self, event: RecordedEvent, name: str, *, kind: str, description: str | None, aliases: Sequence[str]
    ) -> None:
        """Set what an entity is, and give it further names; a later description wins, aliases add up."""
        entity_id = self._entity(event, name)
        self._see(event, entity_id)
        self._write_entities()
        known: tuple[Any, ...] = self._connection.execute(
            "SELECT aliases FROM entities WHERE id = ?", (entity_id,)
        ).fetchall()[0]
        merged = list(dict.fromkeys([*orjson.loads(known[0]), *aliases]))
        self._connection.execute(_DESCRIBE, (kind, description, orjson.dumps(merged).decode(), entity_id))
        for alias in aliases:
            self._name(alias.casefold(), entity_id)

    def write(self, *, index: bool) -> None:
        """Write everything; `index` adds the new episodes to the keyword index too."""
        self._connection.executemany(_ADD_EPISODE, self._episodes)
        self._connection.executemany(_SAVE_SESSION, [session.row() for session in self._sessions.values()])
        self._write_entities()
        self._connection.executemany("INSERT INTO mentions VALUES (?, ?)", self._mentions)
        seen = [(at.first_us, at.last_us, at.mentions, at.spoken, id) for id, at in self._seen.items()]
        self._connection.executemany(_SEEN, seen)
        if index and self._episodes:
            self._connection.execute(_INDEX, (self._episodes[0][0],))

    def _entity(self, event: RecordedEvent, name: str) -> int:
        """Return the id of the entity that `name` leads to; a new one when nobody has named it before."""
        key = name.casefold()
        entity_id = self._names.get(key)
        if entity_id is None:
            entity_id = self._names.next_id
            self._names.next_id += 1
            self._new_entities.append((entity_id, name, event.occurred_at_us, event.occurred_at_us))
            self._name(key, entity_id)
        return entity_id

    def _name(self, key: str, entity_id: int) -> None:
        self._names[key] = entity_id
        self._new_names[key] = entity_id

    def _see(self, event: RecordedEvent, entity_id: int) -> _Seen:
        at = event.occurred_at_us
        seen = self._seen.get(entity_id)
        if seen is None:
            seen = self._seen[entity_id] = _Seen(at, at)
        seen.first_us = min(seen.first_us, at)
        seen.last_us = max(seen.last_us, at)
        return seen

    def _write_entities(self) -> None:
        self._connection.executemany(_ADD_ENTITY, self._new_entities)
        self._connection.executemany(_ADD_NAME, self._new_names.items())
        self._new_entities.clear()
        self._new_names.clear()
