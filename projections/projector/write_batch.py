"""Write batch: collects the rows of a batch of events in memory, and writes them with few statements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import apsw
import orjson
from msgspec import Struct

from recollect.events.envelope import RecordedEvent, parse_rfc3339
from recollect.projections.projector.deferred_updates import DeferredUpdates
from recollect.projections.projector.edit_changes import EditChanges
from recollect.projections.projector.entity_evidence import EntityEvidence
from recollect.projections.projector.entity_resolution import resolve_entities
from recollect.projections.projector.episode_events import Episode
from recollect.projections.projector.episode_rows import (
    ADD_EPISODE,
    READ_CHARS_MAX,
    SAVE_USER_ZONE,
    AddedEpisode,
    episode_offset,
    episode_row,
    json_or_none,
    search_terms,
    user_zone,
)
from recollect.projections.projector.episode_updates import EpisodeUpdates
from recollect.projections.projector.fact_endings import FactEndings
from recollect.projections.projector.facts import Facts
from recollect.projections.projector.knowledge import Knowledge
from recollect.projections.projector.known_entities import EntityRegister
from recollect.projections.projector.memory_edits import MemoryEdits
from recollect.projections.projector.preferences import Preferences
from recollect.projections.projector.restrictions import Restrictions
from recollect.projections.projector.session_rows import (
    SAVE_SESSION,
    SELECT_SESSION,
    SessionRow,
    bindings,
    new_session,
    session_of,
)
from recollect.projections.text.entity_roles import role_name
from recollect.projections.text.names import names_by_key
from recollect.projections.text.tokens import estimate_tokens

_ADD_METADATA = "INSERT OR IGNORE INTO episode_metadata (name, value, version) VALUES (?, ?, ?)"
_ADD_SUMMARY = """
INSERT INTO episodes (
    version, id, session_id, occurred_at_us, type, speaker, text, importance, tier, token_count, status, pinned,
    expires_at_us, source_tokens, actor, tags, utc_offset
) VALUES (
    :version, :id, :session_id, :occurred_at_us, 'conversation', 'summary', :text, :importance, :tier, :token_count,
    'active', 0, :expires_at_us, :source_tokens, :actor, :tags, :utc_offset
)
"""
# An entity that a text names for the first time.
_ADD_ENTITY = """
INSERT INTO entities (
    id, name, type, aliases, first_seen_us, last_seen_us, mention_count, spoken_count, forgotten_version
) VALUES (?, ?, 'other', '[]', ?, ?, 0, 0, 0)
"""
_FORGET_ENTITY = """
UPDATE entities SET forgotten_version = ?, description = NULL, importance = NULL, metadata = NULL WHERE id = ?
"""
_ADD_NAME = "INSERT OR REPLACE INTO entity_names (name, entity_id) VALUES (?, ?)"
_ADD_MENTION = "INSERT INTO mentions (entity_id, version) VALUES (?, ?)"
_COUNT_ENTITY = """
UPDATE entities SET
    first_seen_us = min(first_seen_us, ?), last_seen_us = max(last_seen_us, ?), mention_count = mention_count + ?,
    spoken_count = spoken_count + ?
WHERE id = ?
"""
_DESCRIBE_ENTITY = """
UPDATE entities SET description = coalesce(?, description), importance = coalesce(?, importance),
    metadata = coalesce(?, metadata), forgotten_version = 0
WHERE id = ?
"""
_MOVE_JOB_CURSOR = """
INSERT INTO job_cursors (job, through) VALUES (?, ?)
ON CONFLICT (job) DO UPDATE SET through = max(through, excluded.through)
"""
_CONFIGURE = "INSERT OR REPLACE INTO namespace_settings (name, value) VALUES (?, ?)"
# Summaries are indexed when their search terms are set: to remove a row from the index takes milliseconds.
_INDEX = (
    "INSERT INTO episodes_fts (rowid, text, caption, previous) "
    "SELECT version, search.text, search.caption, search.previous "
    "FROM episodes_search AS search JOIN episodes USING (version) WHERE version >= ? AND tier = 'raw'"
)


class _EntityCounts:
    """The mentions of an entity in a batch, with the times of the first and the last one."""

    __slots__ = ("first_us", "last_us", "mentions", "spoken")

    def __init__(self, occurred_at_us: int) -> None:
        self.first_us = occurred_at_us
        self.last_us = occurred_at_us
        #: Episodes and statements that name the entity.
        self.mentions = 0
        #: Messages by the entity.
        self.spoken = 0


class _Description(Struct):
    """The description of an entity in a batch."""

    #: None: the batch does not change the text.
    description: str | None
    #: 1 to 10; None: the batch does not change it.
    importance: int | None = None
    #: JSON; None: the batch does not change it.
    metadata: str | None = None


class WriteBatch:
    """The changes of a batch of events; a replay uses one write batch for the whole log.

    Parameters:
        connection: the read model, in the transaction of the batch.
        names: the entities so far. The batch adds to them, so the caller drops them after a rollback.
        new: whether the read model is empty; the batch reads no rows then.
    """

    def __init__(self, connection: apsw.Connection, names: EntityRegister, *, new: bool = False) -> None:
        self._connection = connection
        self._names = names
        self._new = new
        #: Episodes whose rows are not complete.
        self._added: list[AddedEpisode] = []
        #: The event of the episode that `complete_episodes` works on; after it has failed, the one that made it fail.
        self.completing: RecordedEvent | None = None
        #: Bindings of `ADD_EPISODE`; the first one is the version.
        self._episodes: list[tuple[Any, ...]] = []
        self._sessions: dict[str, SessionRow] = {}
        #: Bindings of `SAVE_USER_ZONE`, by speaker.
        self._user_zones: dict[str, tuple[Any, ...]] = {}
        #: Bindings of `_ADD_ENTITY`.
        self._new_entities: list[tuple[int, str, int, int]] = []
        self._new_names: dict[str, int] = {}
        self._descriptions: dict[int, _Description] = {}
        #: Version of the event that forgot the entity.
        self._forgotten_entities: dict[int, int] = {}
        self._counts: dict[int, _EntityCounts] = {}
        #: Entity and version of the episode.
        self._mentions: list[tuple[int, int]] = []
        #: Bindings of `_ADD_METADATA`.
        self._metadata: list[tuple[str, str, int]] = []
        self._job_cursors: dict[str, int] = {}
        #: Settings of the namespace.
        self._settings: dict[str, str] = {}
        #: Bindings of `_ADD_SUMMARY`.
        self._summaries: list[dict[str, Any]] = []
        #: Version of the last event that changed knowledge, or who takes part in conversations; 0: none in this batch.
        self.knowledge_version = 0
        #: Updates of existing rows.
        self.deferred = DeferredUpdates(connection, new=new)
        self.episode_updates = EpisodeUpdates(connection, self.deferred)
        self.entities = EntityEvidence(connection)
        self.endings = FactEndings(connection)
        self.facts = Facts(connection, self.endings)
        self.preferences = Preferences(connection, self.endings)
        #: The tables whose rows follow timelines.
        self.timelines = (self.facts, self.preferences)
        self.knowledge = Knowledge(connection, self.endings)
        self.memory_edits = MemoryEdits(connection)
        self.edits = EditChanges(connection)
        self.restrictions = Restrictions(connection, new=new)
        #: Ids of the memories that were forgotten before the next event.
        self.forgotten: set[str] = set() if new else {id for (id,) in connection.execute("SELECT id FROM forgotten")}
        #: The memory that each event forgot, by the id of the event; also of those that were undone.
        self.forgettings: dict[str, str] = {} if new else self.edits.forgettings()

    def set_job_cursor(self, job: str, through: int) -> None:
        """Move the cursor of `job`, which has read all events up to the version `through`."""
        self._job_cursors[job] = max(through, self._job_cursors.get(job, 0))

    def session(self, event: RecordedEvent, *, is_activity: bool = True) -> SessionRow:
        """Return the session of an event; a new one starts with the event.

        Parameters:
            is_activity: whether the event belongs to the conversation; other events do not change its last time.

        Raises:
            ValueError: the event has no session.
        """
        if event.session_id is None:
            raise ValueError(f"{event.type} has no session_id")
        session = self._sessions.get(event.session_id)
        if session is None:
            row = None if self._new else self._connection.execute(SELECT_SESSION, (event.session_id,)).fetchone()
            session = new_session(event.session_id, event.occurred_at_us) if row is None else session_of(row)
            self._sessions[event.session_id] = session
        if is_activity and event.occurred_at_us > session.last_at_us:
            session.last_at_us = event.occurred_at_us
        return session

    def configure(self, name: str, value: str) -> None:
        """Set a setting of the namespace."""
        self._settings[name] = value

    def add_episode(
        self, event: RecordedEvent, episode: Episode, payload: dict[str, Any], speakers: Sequence[str]
    ) -> None:
        """Add the episode of `event`; `complete_episodes` does the rest.

        Parameters:
            payload: that of the event.
            speakers: the names of the participants who wrote it, once for each message.
        """
        previous: int | None = None
        session: SessionRow | None = None
        if event.session_id is not None:
            session = self.session(event)
            previous, session.last_version = session.last_version, event.version
            session.episode_count += 1
        if episode.metadata:
            self._metadata += [
                (name, orjson.dumps(value).decode(), event.version)
                for name, value in episode.metadata.items()
                if not isinstance(value, dict | list)
            ]
        self.restrictions.add_episode(event, episode, payload, previous)
        utc_offset = episode_offset(event, episode, session)
        if episode.role == "user":
            newest = self._user_zones.get(episode.speaker)
            if newest is None or newest[2] <= event.occurred_at_us:
                self._user_zones[episode.speaker] = user_zone(event, episode, session, utc_offset)
        self._added.append((event, episode, previous, speakers, utc_offset))

    def complete_episodes(self) -> None:
        """Complete the rows of the episodes added so far, and add the mentions of the entities that they name.

        Each part is computed for all of them before the next part: its tables stay in the processor's cache. Part by
        part for one episode after the other takes half as long again. Events of other types read and add entities, so
        the episodes before them are completed first.
        """
        added = self._added
        if not added:
            return
        self._added = []
        importances: list[int] = []
        for event, episode, *_ in added:
            self.completing = event
            importances.append(episode.importance)
        terms: list[str | None] = []
        for event, episode, *_ in added:
            self.completing = event
            terms.append(search_terms(episode))
        for event, episode, _, speakers, _ in added:
            self.completing = event
            self._add_mentions(event, episode.text)
            for name in speakers:
                self._count_message_by(event, name)
        self.completing = None
        self._episodes += map(episode_row, added, importances, terms)

    def add_summary(self, event: RecordedEvent, payload: dict[str, Any], tier: str) -> None:
        """Add the summary of `event`. It does not count as an episode of its session."""
        text: str = payload["text"]
        self._summaries.append(
            {
                "version": event.version,
                "id": event.id,
                "session_id": event.session_id,
                "occurred_at_us": event.occurred_at_us,
                "text": text,
                "importance": payload.get("importance", 5),
                "tier": tier,
                "token_count": estimate_tokens(text),
                "expires_at_us": parse_rfc3339(payload.get("expires_at")),
                "source_tokens": payload.get("source_tokens"),
                "actor": event.actor,
                "tags": json_or_none(payload.get("tags")),
                "utc_offset": event.utc_offset,
            }
        )

    def entity_id(self, event: RecordedEvent, name: str) -> int:
        """Count a mention of `name` and return the id of its entity, which is added when it is new."""
        entity_id = self._entity(event, name)
        self._count(event, entity_id).mentions += 1
        return entity_id

    def forget_entity(self, event: RecordedEvent, name: str) -> int | None:
        """Remove the description of an entity and hide it from the list; return its id, None for an unknown name."""
        entity_id = self._names.get(name.casefold())
        if entity_id is not None:
            self._forgotten_entities[entity_id] = event.version
            self._descriptions.pop(entity_id, None)
        return entity_id

    def describe(
        self,
        event: RecordedEvent,
        name: str,
        *,
        kind: str,
        confidence: float = 1.0,
        sources: Sequence[str] = (),
        description: str | None,
        aliases: Sequence[str],
        importance: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Set the fields of an entity that are given; add the evidence for its type and for its other names.

        Parameters:
            confidence, sources: as in `EntityEvidence.add_type`.
        """
        entity_id = self._entity(event, name)
        self._count(event, entity_id)
        change = self._descriptions.setdefault(entity_id, _Description(None))
        if description is not None:
            change.description = description
        change.importance = importance if importance is not None else change.importance
        change.metadata = json_or_none(metadata) or change.metadata
        evidence, at_us = sources or (event.id,), event.occurred_at_us
        self.deferred.add(event, lambda: self.entities.add_type(entity_id, kind, confidence, evidence, at_us))
        stated = event.version if confidence >= 1 else 0
        for other_id in {self._entity(event, alias) for alias in aliases} - {entity_id}:
            self.deferred.add(
                event, lambda other_id=other_id: self.entities.add_link(entity_id, other_id, evidence, stated)
            )

    def write(self, through: int) -> None:
        """Write all changes, including the keyword index; `through` is the version of the batch's last event."""
        self.complete_episodes()
        added = [row[0] for row in self._episodes[:1]] + [row["version"] for row in self._summaries[:1]]
        self.write_episodes()
        self.write_sessions_and_entities()
        if added:
            index_episodes(self._connection, min(added))
        self.deferred.apply(through)
        self.resolve()

    def resolve(self) -> None:
        """Compute types and merges of entities when something about them has changed, after all other changes."""
        if self.knowledge_version:
            resolve_entities(self._connection)

    def write_episodes(self) -> None:
        """Write the episodes so far with their mentions, and clear them."""
        # Sorted by the primary key, so that SQLite visits each page once.
        self._mentions.sort()
        self._write_rows(
            (ADD_EPISODE, self._episodes),
            (_ADD_SUMMARY, self._summaries),
            (_ADD_MENTION, self._mentions),
            (_ADD_METADATA, self._metadata),
        )
        self._episodes.clear()
        self._summaries.clear()
        self._mentions.clear()
        self._metadata.clear()
        self.restrictions.write()

    def write_sessions_and_entities(self) -> None:
        """Write sessions, entities and cursors, after the last episode."""
        described = [(it.description, it.importance, it.metadata, id) for id, it in self._descriptions.items()]
        counted = [(it.first_us, it.last_us, it.mentions, it.spoken, id) for id, it in self._counts.items()]
        self._write_rows(
            (SAVE_SESSION, [bindings(session) for session in self._sessions.values()]),
            (SAVE_USER_ZONE, self._user_zones.values()),
            (_ADD_ENTITY, self._new_entities),
            (_ADD_NAME, self._new_names.items()),
            (_FORGET_ENTITY, [(version, entity_id) for entity_id, version in self._forgotten_entities.items()]),
            (_DESCRIBE_ENTITY, described),
            (_COUNT_ENTITY, counted),
            (_MOVE_JOB_CURSOR, self._job_cursors.items()),
            (_CONFIGURE, self._settings.items()),
        )
        if self.knowledge_version:
            self._connection.execute("UPDATE read_model SET knowledge_version = ?", (self.knowledge_version,))

    def _write_rows(self, *tables: tuple[str, Collection[Any]]) -> None:
        """Execute statements, each with all its bindings; one without bindings would take 2 µs, too."""
        for statement, rows in tables:
            if rows:
                self._connection.executemany(statement, rows)

    def _add_mentions(self, event: RecordedEvent, text: str) -> None:
        """Add mentions of the entities that the text of an episode names."""
        names = names_by_key(text[:READ_CHARS_MAX], self._names)
        if names:
            id_of = self._names.get
            for entity_id in {id_of(key) or self._entity(event, name) for key, name in names.items()}:
                self._count(event, entity_id).mentions += 1
                self._mentions.append((entity_id, event.version))

    def _count_message_by(self, event: RecordedEvent, name: str) -> None:
        """Count a message by the speaker `name`, who is a person when it looks like a name and not like an id.

        The first one changes knowledge: what is known of a speaker is ranked as that of who asks.
        """
        names = self._names
        entity_id = names.get(name.casefold()) or self._entity(event, name)
        self._count(event, entity_id).spoken += 1
        if entity_id not in names.speakers:
            names.speakers.add(entity_id)
            self.knowledge_version = event.version
        if entity_id not in names.named_speakers and name[:1].isupper() and name.replace(" ", "").isalpha():
            names.named_speakers.add(entity_id)
            self.knowledge_version = event.version
            self.deferred.add(event, lambda: self.entities.add_speaker(entity_id))

    def _entity(self, event: RecordedEvent, name: str) -> int:
        """Return the id of the entity with this name, which is added when it is new."""
        key = name.casefold()
        entity_id = self._names.get(key)
        if entity_id is None:
            entity_id = self._names.next_id
            self._names.next_id += 1
            self._new_entities.append((entity_id, name, event.occurred_at_us, event.occurred_at_us))
            self._add_name(key, entity_id)
            role = role_name(name)
            if role is not None or key == "user":
                # Both are people by their names, and that of `Ann's mom` is resolved by that of Ann.
                self.knowledge_version = event.version
            if role is not None:
                self._entity(event, name[: len(role.owner)])
        return entity_id

    def _add_name(self, key: str, entity_id: int) -> None:
        """Add a case-folded name of an entity."""
        self._names[key] = entity_id
        self._new_names[key] = entity_id

    def _count(self, event: RecordedEvent, entity_id: int) -> _EntityCounts:
        """Return the counts of an entity, whose times include the event."""
        occurred_at_us = event.occurred_at_us
        counts = self._counts.get(entity_id)
        if counts is None:
            counts = self._counts[entity_id] = _EntityCounts(occurred_at_us)
        elif occurred_at_us > counts.last_us:
            counts.last_us = occurred_at_us
        elif occurred_at_us < counts.first_us:
            counts.first_us = occurred_at_us
        return counts


def index_episodes(connection: apsw.Connection, first: int) -> None:
    """Add the episodes from the version `first` on to the keyword index, without summaries."""
    connection.execute(_INDEX, (first,))
