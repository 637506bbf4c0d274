"""What a batch of events changes in a read model: collected in memory, written with few statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw
import orjson

from recollect.events.envelope import RecordedEvent, parse_rfc3339
from recollect.projections.projector.deferred_updates import DeferredUpdates
from recollect.projections.projector.episode_events import Episode
from recollect.projections.projector.episode_updates import EpisodeUpdates
from recollect.projections.projector.facts import Facts
from recollect.projections.projector.knowledge import Knowledge
from recollect.projections.text.names import mentioned_names
from recollect.projections.text.segments import search_segments
from recollect.projections.text.tokens import estimate_tokens

_ADD_EPISODE = (
    "INSERT INTO episodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'raw', ?, 'active', 0, NULL, NULL, ?, NULL)"
)
_ADD_SUMMARY = (
    "INSERT INTO episodes VALUES (?, ?, ?, NULL, ?, 'conversation', NULL, 'summary', ?, NULL, ?, NULL, ?, ?, "
    "'active', 0, ?, NULL, NULL, ?)"
)
_SAVE_SESSION = "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_ENTITY = "INSERT INTO entities VALUES (?, ?, 'other', NULL, '[]', ?, ?, 0, 0)"
_ADD_NAME = "INSERT OR REPLACE INTO entity_names VALUES (?, ?)"
_SEEN = (
    "UPDATE entities SET first_seen_us = min(first_seen_us, ?), last_seen_us = max(last_seen_us, ?), "
    "mention_count = mention_count + ?, spoken_count = spoken_count + ? WHERE id = ?"
)
_DESCRIBE = "UPDATE entities SET type = ?, description = coalesce(?, description), aliases = ? WHERE id = ?"
_LOOKED = (
    "INSERT INTO job_cursors VALUES (?, ?) ON CONFLICT (job) DO UPDATE SET through = max(through, excluded.through)"
)
_INDEX = (
    "INSERT INTO episodes_fts (rowid, text, caption, previous) "
    "SELECT version, text, caption, previous FROM episodes_search WHERE version >= ?"
)


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


class _Seen:
    """How often, and between when, an entity was seen."""

    __slots__ = ("first_us", "last_us", "mentions", "spoken")

    def __init__(self, at_us: int) -> None:
        self.first_us = at_us
        self.last_us = at_us
        self.mentions = 0
        self.spoken = 0


@dataclass(slots=True)
class _Description:
    """What was said of an entity."""

    kind: str
    description: str | None
    aliases: dict[str, None]


class EntityNames(dict[str, int]):
    """Case-folded name → id of the entity, with the id that the next new entity gets.

    Kept between batches, since a namespace may know thousands; valid as long as nobody else has folded in between.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        super().__init__(connection.execute("SELECT name, entity_id FROM entity_names"))
        row: tuple[Any, ...] = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM entities").fetchall()[0]
        self.next_id = row[0]


class WriteBatch:
    """What a batch changes so far; or a whole log, when a read model is built anew.

    Parameters:
        connection: the read model, inside the transaction that the writing belongs to. Nothing is read from it when
            the model is new.
        names: the entities known so far; grows with the batch, so it must be dropped when the batch is rolled back.
        new: whether the model is empty, so that there is nothing to look up.
    """

    def __init__(self, connection: apsw.Connection, names: EntityNames, *, new: bool = False) -> None:
        self._connection = connection
        self._names = names
        self._new = new
        self._first_new_id = names.next_id
        self._episodes: list[tuple[Any, ...]] = []
        self._sessions: dict[str, Session] = {}
        self._new_entities: list[tuple[int, str, int, int]] = []
        self._new_names: dict[str, int] = {}
        self._descriptions: dict[int, _Description] = {}
        self._seen: dict[int, _Seen] = {}
        self._mentions: list[tuple[int, int]] = []
        self._looked: dict[str, int] = {}
        self._summaries: list[tuple[Any, ...]] = []
        #: Version of the last event that changed what is known.
        self.learned = 0
        #: Changes to rows that are there.
        self.deferred = DeferredUpdates(connection, new=new)
        self.tiers = EpisodeUpdates(connection, self.deferred)
        self.facts = Facts(connection)
        self.knowledge = Knowledge(connection)

    def set_job_cursor(self, job: str, through: int) -> None:
        """Note that `job` has looked at all events up to the version `through`."""
        self._looked[job] = max(through, self._looked.get(job, 0))

    def session(self, event: RecordedEvent) -> Session:
        """Return the event's session, begun by this event when it is new."""
        if event.session_id is None:
            raise ValueError(f"{event.type} names no session")
        session = self._sessions.get(event.session_id)
        at = event.occurred_at_us
        if session is None:
            row = None if self._new else self._row("SELECT * FROM sessions WHERE id = ?", event.session_id)
            session = Session(*row) if row else Session(event.session_id, None, None, at, None, at, None, 0, None, None)
            self._sessions[event.session_id] = session
        session.last_at_us = max(session.last_at_us, at)
        return session

    def add_episode(self, event: RecordedEvent, episode: Episode) -> None:
        """Add the episode that `event` tells, and the entities its text names."""
        version = event.version
        previous: int | None = None
        if event.session_id is not None:
            session = self.session(event)
            previous, session.last_version = session.last_version, version
            session.episode_count += 1
        text = episode.text
        self._episodes.append(
            (
                version,
                event.id,
                event.session_id,
                previous,
                event.occurred_at_us,
                episode.type,
                episode.role,
                episode.speaker,
                text,
                episode.caption,
                episode.importance,
                episode.outcome,
                estimate_tokens(text),
                " ".join(search_segments(f"{text} {episode.caption}" if episode.caption else text)) or None,
            )
        )
        names = mentioned_names(text, self._names)
        if names:
            for entity_id in {self._entity(event, name) for name in names}:
                self._see(event, entity_id).mentions += 1
                self._mentions.append((entity_id, version))

    def add_summary(self, event: RecordedEvent, payload: dict[str, Any], tier: str) -> None:
        """Add the summary that `event` tells. It is no turn of its session, and dated like what it tells of."""
        text: str = payload["text"]
        self._summaries.append(
            (
                event.version,
                event.id,
                event.session_id,
                event.occurred_at_us,
                text,
                payload.get("importance", 5),
                tier,
                estimate_tokens(text),
                parse_rfc3339(payload.get("expires_at")),
                payload.get("source_tokens"),
            )
        )

    def entity_id(self, event: RecordedEvent, name: str) -> int:
        """Return the entity that `name` leads to, a new one when nobody has named it before; count the mention."""
        entity_id = self._entity(event, name)
        self._see(event, entity_id).mentions += 1
        return entity_id

    def count_message_by(self, event: RecordedEvent, name: str) -> None:
        """Count `name` as the speaker of `event`."""
        self._see(event, self._entity(event, name)).spoken += 1

    def describe(
        self, event: RecordedEvent, name: str, *, kind: str, description: str | None, aliases: Sequence[str]
    ) -> None:
        """Set what an entity is, and give it further names; a later description wins, aliases add up."""
        entity_id = self._entity(event, name)
        self._see(event, entity_id)
        known = self._descriptions.get(entity_id)
        if known is None:
            known = self._descriptions[entity_id] = _Description(kind, None, dict.fromkeys(self._aliases(entity_id)))
        known.kind = kind
        if description is not None:
            known.description = description
        known.aliases.update(dict.fromkeys(aliases))
        for alias in aliases:
            self._name(alias.casefold(), entity_id)

    def write(self, through: int) -> None:
        """Write everything, the keyword index included; `through` is the version of the batch's last event."""
        added = [*self._episodes[:1], *self._summaries[:1]]
        self.write_episodes()
        self.write_rest()
        if added:
            index_episodes(self._connection, min(row[0] for row in added))
        self.deferred.apply(through)

    def write_episodes(self) -> None:
        """Write the episodes so far and what they mention, and forget them."""
        self._connection.executemany(_ADD_EPISODE, self._episodes)
        self._connection.executemany(_ADD_SUMMARY, self._summaries)
        # In the order of the table, so that its pages are visited once.
        self._mentions.sort()
        self._connection.executemany("INSERT INTO mentions VALUES (?, ?)", self._mentions)
        self._episodes.clear()
        self._summaries.clear()
        self._mentions.clear()

    def write_rest(self) -> None:
        """Write sessions and entities, after the last episode."""
        self._connection.executemany(_SAVE_SESSION, [session.row() for session in self._sessions.values()])
        self._connection.executemany(_ADD_ENTITY, self._new_entities)
        self._connection.executemany(_ADD_NAME, self._new_names.items())
        self._connection.executemany(
            _DESCRIBE,
            [
                (one.kind, one.description, orjson.dumps(list(one.aliases)).decode(), entity_id)
                for entity_id, one in self._descriptions.items()
            ],
        )
        seen = [(at.first_us, at.last_us, at.mentions, at.spoken, id) for id, at in self._seen.items()]
        self._connection.executemany(_SEEN, seen)
        self._connection.executemany(_LOOKED, self._looked.items())
        if self.learned:
            self._connection.execute("UPDATE read_model SET knowledge_version = ?", (self.learned,))

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
            seen = self._seen[entity_id] = _Seen(at)
        elif at > seen.last_us:
            seen.last_us = at
        elif at < seen.first_us:
            seen.first_us = at
        return seen

    def _aliases(self, entity_id: int) -> list[str]:
        """Return the aliases that the model holds for an entity."""
        if entity_id >= self._first_new_id:
            return []
        row = self._row("SELECT aliases FROM entities WHERE id = ?", entity_id)
        return orjson.loads(row[0]) if row else []

    def _row(self, query: str, value: int | str) -> tuple[Any, ...] | None:
        return self._connection.execute(query, (value,)).fetchone()


def index_episodes(connection: apsw.Connection, first: int) -> None:
    """Add the episodes from version `first` on to the keyword index."""
    connection.execute(_INDEX, (first,))
