"""Episode updates: sets sources, status, pins and short forms of existing episodes, and removes expired ones.

Every update names episodes by the ids of their events and changes only episodes from before its own event. Updates are
deferred until the batch's episodes are written and indexed, so that live projection and replay write the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import apsw

from recollect.events.envelope import RecordedEvent
from recollect.projections.projector.deferred_updates import DeferredUpdates
from recollect.projections.text.segments import search_segments
from recollect.projections.text.words import distinct_words

# An episode from before an event.
_FIND = "SELECT version, session_id, tier, status FROM episodes WHERE id = ? AND version < ?"
# FTS5 removes a row of an external-content table by the values that it was indexed with.
UNINDEX_EPISODE = (
    "INSERT INTO episodes_fts (episodes_fts, rowid, text, caption, previous) "
    "SELECT 'delete', version, text, caption, previous FROM episodes_search WHERE version = ?"
)
INDEX_EPISODE = (
    "INSERT INTO episodes_fts (rowid, text, caption, previous) "
    "SELECT version, text, caption, previous FROM episodes_search WHERE version = ?"
)
# The next episode of the session, whose row of the keyword index contains the text of the previous episode.
NEXT_EPISODE = (
    "SELECT version, previous FROM episodes "
    "WHERE session_id = ? AND version > ? AND previous IS NOT NULL ORDER BY version LIMIT 1"
)
# The texts of the sources of a summary.
_RAW_TEXTS = """
SELECT concat_ws(' ', text, caption, terms) FROM episodes
WHERE version IN (SELECT source FROM episode_sources WHERE version = ?) ORDER BY version
"""
_OWN_TEXT = "SELECT text FROM episodes WHERE version = ?"
_ADD_SOURCE = """
INSERT OR IGNORE INTO episode_sources (version, source, id, status, occurred_at_us, utc_offset)
SELECT ?, version, id, status, occurred_at_us, utc_offset FROM episodes WHERE version = ?
"""
_COPY_SOURCES = """
INSERT OR IGNORE INTO episode_sources (version, source, id, status, occurred_at_us, utc_offset)
SELECT ?, source, id, status, occurred_at_us, utc_offset FROM episode_sources WHERE version = ?
"""
# The source may have expired, so the summary keeps its status.
_SET_SOURCE_STATUS = "UPDATE episode_sources SET status = ? WHERE id = ? AND version < ?"
_SOURCES = "SELECT source FROM episode_sources WHERE version = ?"
# The mentions of an episode that neither is in the read model nor is the source of a summary.
_DELETE_MENTIONS = """
DELETE FROM mentions WHERE version = ?1
AND NOT EXISTS (SELECT 1 FROM episodes WHERE version = ?1)
AND NOT EXISTS (SELECT 1 FROM episode_sources WHERE source = ?1)
"""
_DELETE_METADATA = """
DELETE FROM episode_metadata WHERE version = ?1
AND NOT EXISTS (SELECT 1 FROM episodes WHERE version = ?1)
AND NOT EXISTS (SELECT 1 FROM episode_sources WHERE source = ?1)
"""
# The summaries of a source, with the number of their other active sources.
_SUMMARIES_OF = """
SELECT version, (
    SELECT count(*) FROM episode_sources AS other
    WHERE other.version = own.version AND other.id <> own.id AND other.status = 'active'
) FROM episode_sources AS own WHERE id = ? AND version < ? ORDER BY version
"""
_FORGET_SUMMARY = "UPDATE episodes SET status = 'forgotten', terms = NULL WHERE version = ?"
Status = Literal["active", "stale", "superseded", "invalidated", "rejected", "quarantined", "echo"]


class EpisodeUpdates:
    """The updates of one batch to existing episodes."""

    def __init__(self, connection: apsw.Connection, deferred: DeferredUpdates) -> None:
        self._connection = connection
        self._deferred = deferred

    def add_summary_sources(self, event: RecordedEvent, sources: Sequence[str], *, replaces: bool) -> None:
        """Set the sources of the summary that `event` adds, and add it to the keyword index.

        Parameters:
            sources: ids of episodes.
            replaces: whether the summary takes over the sources of the summaries among `sources` and removes them.
        """
        self._deferred.add(event, lambda: self._summarise(event, sources, replaces), episodes=True)

    def expire(self, event: RecordedEvent, ids: Sequence[str]) -> None:
        """Remove the episodes `ids` from the read model. Their texts stay in the log."""
        self._deferred.add(
            event, lambda: self._remove(event, [version for version, *_ in self._rows(event, ids)]), episodes=True
        )

    def pin(self, event: RecordedEvent, episode_id: str) -> None:
        """Pin an episode: compaction never removes it."""
        self._deferred.add(event, lambda: self._set(event, episode_id, "pinned", 1), episodes=True)

    def unpin(self, event: RecordedEvent, episode_id: str) -> None:
        """Remove the pin of an episode."""
        self._deferred.add(event, lambda: self._set(event, episode_id, "pinned", 0), episodes=True)

    def forget(self, event: RecordedEvent, episode_id: str) -> None:
        """Remove an episode, and hide the summaries of it. A summary that follows may replace a hidden one."""
        self._deferred.add(event, lambda: self._forget(event, episode_id), episodes=True)

    def set_short_form(self, event: RecordedEvent, episode_id: str, text: str) -> None:
        """Set the short form of a long episode."""
        self._deferred.add(event, lambda: self._set(event, episode_id, "short", text), episodes=True)

    def set_status(self, event: RecordedEvent, ids: Sequence[str], status: Status) -> None:
        """Set the status of episodes; retrieval returns only active ones."""
        self._deferred.add(event, lambda: self._set_status(event, ids, status), episodes=True)

    def _rows(self, event: RecordedEvent, ids: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return version, session, tier and status of the episodes `ids` from before the event."""
        rows = (self._connection.execute(_FIND, (id, event.version)).fetchone() for id in dict.fromkeys(ids))
        return [row for row in rows if row is not None]

    def _summarise(self, event: RecordedEvent, sources: Sequence[str], replaces: bool) -> None:
        """Write the sources and search terms of a summary, and remove the summaries that it replaces."""
        replaced: list[int] = []
        for source_id in dict.fromkeys(sources):
            for version, _, tier, _ in self._rows(event, [source_id]):
                if tier == "raw":
                    self._connection.execute(_ADD_SOURCE, (event.version, version))
                elif replaces:
                    replaced.append(version)
                    self._connection.execute(_COPY_SOURCES, (event.version, version))
        self._set_terms(event, replaced)
        self._remove(event, replaced)

    def _set_terms(self, event: RecordedEvent, replaced: Sequence[int]) -> None:
        """Set the search terms of a summary, with which it is indexed.

        They are the words of its sources and the terms of the summaries it replaces.
        """
        words: dict[str, None] = {}
        rows = list(self._connection.execute(_RAW_TEXTS, (event.version,)))
        for version in replaced:
            rows += self._connection.execute("SELECT terms FROM episodes WHERE version = ?", (version,))
        for (text,) in list[Any](rows):
            words.update(dict.fromkeys(distinct_words(text or "")))
        for (text,) in list[Any](self._connection.execute(_OWN_TEXT, (event.version,))):
            words.update(dict.fromkeys(search_segments(text)))
        self._connection.execute(
            "UPDATE episodes SET terms = ? WHERE version = ?", (" ".join(words) or None, event.version)
        )
        self._connection.execute(INDEX_EPISODE, (event.version,))

    def _remove(self, event: RecordedEvent, versions: Sequence[int]) -> None:
        """Delete episodes with their sources, and index again the episodes that follow them.

        The mentions of a source stay as long as a summary has it, since retrieval ranks the sources of summaries.
        """
        removed = set(versions)
        followers = {follower for version in removed if (follower := self._follower(version)) is not None} - removed
        self._connection.executemany(UNINDEX_EPISODE, [(version,) for version in sorted(removed | followers)])
        sources = [source for version in removed for (source,) in self._connection.execute(_SOURCES, (version,))]
        for query in ("DELETE FROM episodes WHERE version = ?", "DELETE FROM episode_sources WHERE version = ?"):
            self._connection.executemany(query, [(version,) for version in sorted(removed)])
        for query in (_DELETE_MENTIONS, _DELETE_METADATA):
            self._connection.executemany(query, [(version,) for version in sorted(removed.union(sources))])
        self._connection.executemany(INDEX_EPISODE, [(version,) for version in sorted(followers)])
        if removed:
            self._connection.execute("UPDATE read_model SET last_removal_version = ?", (event.version,))

    def _forget(self, event: RecordedEvent, episode_id: str) -> None:
        """Remove an episode with its mentions and metadata, and hide its summaries, which may quote it."""
        self._connection.execute(_SET_SOURCE_STATUS, ("forgotten", episode_id, event.version))
        summaries: list[tuple[Any, ...]] = self._connection.execute(
            _SUMMARIES_OF, (episode_id, event.version)
        ).fetchall()
        sources: list[tuple[Any, ...]] = self._connection.execute(
            "SELECT DISTINCT source FROM episode_sources WHERE id = ?", (episode_id,)
        ).fetchall()
        own = [version for version, *_ in self._rows(event, [episode_id])]
        self._connection.executemany(
            "INSERT OR IGNORE INTO forgotten_entities (entity_id) SELECT entity_id FROM mentions WHERE version = ?",
            [*((version,) for version in own), *sources],
        )
        for version, _ in summaries:
            self._connection.execute(UNINDEX_EPISODE, (version,))
            self._connection.execute(_FORGET_SUMMARY, (version,))
        self._remove(event, [*own, *(version for version, others in summaries if not others)])
        for table in ("mentions", "episode_metadata"):
            self._connection.executemany(f"DELETE FROM {table} WHERE version = ?", sources)
        if summaries:
            self._connection.execute("UPDATE read_model SET last_removal_version = ?", (event.version,))

    def _follower(self, version: int) -> int | None:
        """Return the episode whose row of the keyword index contains the text of `version`; None: no such episode."""
        row = self._connection.execute("SELECT session_id FROM episodes WHERE version = ?", (version,)).fetchone()
        following: Any = self._connection.execute(NEXT_EPISODE, (row[0], version)).fetchone() if row else None
        return following[0] if following and following[1] == version else None

    def _set(self, event: RecordedEvent, episode_id: str, column: str, value: int | str) -> None:
        """Set a column of an episode from before the event."""
        self._connection.execute(
            f"UPDATE episodes SET {column} = ? WHERE id = ? AND version < ?", (value, episode_id, event.version)
        )

    def _set_status(self, event: RecordedEvent, ids: Sequence[str], status: Status) -> None:
        """Set the status of episodes, also as sources of summaries, and index them again when it differs."""
        self._connection.executemany(_SET_SOURCE_STATUS, [(status, id, event.version) for id in ids])
        for version, _, _, old_status in self._rows(event, ids):
            if old_status == status:
                continue
            self._connection.execute(UNINDEX_EPISODE, (version,))
            self._connection.execute("UPDATE episodes SET status = ? WHERE version = ?", (status, version))
            self._connection.execute(INDEX_EPISODE, (version,))
            self._connection.execute("UPDATE read_model SET last_removal_version = ?", (event.version,))
