"""What happens to episodes that are there: summaries stand for them, they expire, are pinned or found to be wrong.

Every change names episodes by the ids of their events and concerns those that came before it. Changes are deferred
until the batch's episodes are written and indexed, so that live folding and replay agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import apsw

from recollect.events.envelope import RecordedEvent
from recollect.projections.projector.deferred_updates import DeferredUpdates
from recollect.projections.text.segments import search_segments
from recollect.projections.text.words import distinct_words

#: Days in a few sentences that are kept; older ones stay in the log.
DAILY_DIGESTS_MAX = 7

_FIND = "SELECT version, session_id, tier, status FROM episodes WHERE id = ? AND version < ?"
_UNINDEX = (
    "INSERT INTO episodes_fts (episodes_fts, rowid, text, caption, previous) "
    "SELECT 'delete', version, text, caption, previous FROM episodes_search WHERE version = ?"
)
_INDEX = (
    "INSERT INTO episodes_fts (rowid, text, caption, previous) "
    "SELECT version, text, caption, previous FROM episodes_search WHERE version = ?"
)
#: The next turn in the session holds the turn before it in its row of the keyword index.
_NEXT = (
    "SELECT version, previous FROM episodes "
    "WHERE session_id = ? AND version > ? AND previous IS NOT NULL ORDER BY version LIMIT 1"
)
_RAW_TEXTS = """
SELECT concat_ws(' ', text, caption, terms) FROM episodes
WHERE version IN (SELECT source FROM episode_sources WHERE version = ?) ORDER BY version
"""
_OWN_TEXT = "SELECT text FROM episodes WHERE version = ?"
_INHERIT_MENTIONS = (
    "INSERT OR IGNORE INTO mentions SELECT DISTINCT entity_id, ?1 FROM mentions "
    "WHERE version IN (SELECT source FROM episode_sources WHERE version = ?1)"
)

Status = Literal["active", "stale", "superseded", "invalidated", "rejected"]


class EpisodeUpdates:
    """The changes of one batch to episodes that are there."""

    def __init__(self, connection: apsw.Connection, deferred: DeferredUpdates) -> None:
        self._connection = connection
        self._deferred = deferred

    def add_summary_sources(self, event: RecordedEvent, sources: Sequence[str], *, replaces: bool) -> None:
        """Let the episode of `event` stand for the episodes `sources`.

        Parameters:
            replaces: take summaries among the sources away; the new one stands for what they stood for.
        """
        self._deferred.add(event, lambda: self._summarise(event, sources, replaces), episodes=True)

    def expire(self, event: RecordedEvent, ids: Sequence[str]) -> None:
        """Take the episodes `ids` out of the read model. Their words stay in the log."""
        self._deferred.add(
            event, lambda: self._remove(event, [row[0] for row in self._found(event, ids)]), episodes=True
        )

    def pin(self, event: RecordedEvent, episode_id: str) -> None:
        """Keep an episode whatever its age."""
        self._deferred.add(event, lambda: self._set(event, episode_id, "pinned", 1), episodes=True)

    def set_short_form(self, event: RecordedEvent, episode_id: str, text: str) -> None:
        """Give a long episode a short form."""
        self._deferred.add(event, lambda: self._set(event, episode_id, "short", text), episodes=True)

    def set_status(self, event: RecordedEvent, ids: Sequence[str], status: Status) -> None:
        """Set the status of episodes; only active ones are found."""
        self._deferred.add(event, lambda: self._set_status(event, ids, status), episodes=True)

    def add_daily_digest(self, event: RecordedEvent, day: str, text: str) -> None:
        """Put a day in a few sentences; the last days are kept."""
        self._deferred.add(event, lambda: self._tell_day(event, day, text), episodes=True)

    def _found(self, event: RecordedEvent, ids: Sequence[str]) -> list[tuple[Any, ...]]:
        rows = (self._connection.execute(_FIND, (id, event.version)).fetchone() for id in dict.fromkeys(ids))
        return [row for row in rows if row is not None]

    def _summarise(self, event: RecordedEvent, sources: Sequence[str], replaces: bool) -> None:
        add = "INSERT OR IGNORE INTO episode_sources VALUES (?, ?, ?)"
        replaced: list[int] = []
        for source_id in dict.fromkeys(sources):
            for version, _, tier, _ in self._found(event, [source_id]):
                if tier == "raw":
                    self._connection.execute(add, (event.version, version, source_id))
                elif replaces:
                    replaced.append(version)
                    self._connection.execute(
                        "INSERT OR IGNORE INTO episode_sources "
                        "SELECT ?, source, id FROM episode_sources WHERE version = ?",
                        (event.version, version),
                    )
                    # Whatever the summary before was found by, this one is found by too.
                    self._connection.execute(
                        "INSERT OR IGNORE INTO mentions SELECT entity_id, ? FROM mentions WHERE version = ?",
                        (event.version, version),
                    )
        self._connection.execute(_INHERIT_MENTIONS, (event.version,))
        self._set_terms(event, replaced)
        self._remove(event, replaced)

    def _set_terms(self, event: RecordedEvent, replaced: Sequence[int]) -> None:
        """Let a summary be found by every word of what it stands for; those of a replaced summary are known already."""
        words: dict[str, None] = {}
        rows = list(self._connection.execute(_RAW_TEXTS, (event.version,)))
        for version in replaced:
            rows += self._connection.execute("SELECT terms FROM episodes WHERE version = ?", (version,))
        for (text,) in list[Any](rows):
            words.update(dict.fromkeys(distinct_words(text or "")))
        for (text,) in list[Any](self._connection.execute(_OWN_TEXT, (event.version,))):
            words.update(dict.fromkeys(search_segments(text)))
        self._connection.execute(_UNINDEX, (event.version,))
        self._connection.execute(
            "UPDATE episodes SET terms = ? WHERE version = ?", (" ".join(words) or None, event.version)
        )
        self._connection.execute(_INDEX, (event.version,))

    def _remove(self, event: RecordedEvent, versions: Sequence[int]) -> None:
        removed = set(versions)
        followers = {next for version in removed if (next := self._follower(version)) is not None} - removed
        self._connection.executemany(_UNINDEX, [(version,) for version in sorted(removed | followers)])
        for query in (
            "DELETE FROM episodes WHERE version = ?",
            "DELETE FROM mentions WHERE version = ?",
            "DELETE FROM episode_sources WHERE version = ?",
        ):
            self._connection.executemany(query, [(version,) for version in sorted(removed)])
        self._connection.executemany(_INDEX, [(version,) for version in sorted(followers)])
        if removed:
            self._connection.execute("UPDATE read_model SET last_removal_version = ?", (event.version,))

    def _follower(self, version: int) -> int | None:
        """Return the episode whose row of the keyword index holds the text of `version`, if there is one."""
        row = self._connection.execute("SELECT session_id FROM episodes WHERE version = ?", (version,)).fetchone()
        following: Any = self._connection.execute(_NEXT, (row[0], version)).fetchone() if row else None
        return following[0] if following and following[1] == version else None

    def _set(self, event: RecordedEvent, episode_id: str, column: str, value: int | str) -> None:
        self._connection.execute(
            f"UPDATE episodes SET {column} = ? WHERE id = ? AND version < ?", (value, episode_id, event.version)
        )

    def _set_status(self, event: RecordedEvent, ids: Sequence[str], status: Status) -> None:
        for version, _, _, before in self._found(event, ids):
            if before == status:
                continue
            self._connection.execute(_UNINDEX, (version,))
            self._connection.execute("UPDATE episodes SET status = ? WHERE version = ?", (status, version))
            self._connection.execute(_INDEX, (version,))
            self._connection.execute("UPDATE read_model SET last_removal_version = ?", (event.version,))

    def _tell_day(self, event: RecordedEvent, day: str, text: str) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO daily_digests VALUES (?, ?, ?)", (day, text, event.occurred_at_us)
        )
        self._connection.execute(
            "DELETE FROM daily_digests WHERE day NOT IN (SELECT day FROM daily_digests ORDER BY day DESC LIMIT ?)",
            (DAILY_DIGESTS_MAX,),
        )
