"""Session queries: read the activity and observations of sessions, and select sessions to observe."""

from __future__ import annotations

from datetime import datetime

import apsw
from msgspec import Struct

from recollect.projections.queries.day_zone import DayZone
from recollect.projections.queries.records import fetch_records, fetch_tuples, fetch_value, fetch_values

# Sessions with enough unobserved turns, among the sessions with the newest episodes. Older sessions were observed when
# they had the newest ones.
_UNOBSERVED = """
SELECT recent.id FROM (SELECT id FROM sessions ORDER BY last_version DESC LIMIT ?2) AS recent
LEFT JOIN observation_cursors ON observation_cursors.session_id = recent.id
JOIN episodes ON episodes.session_id = recent.id AND version > coalesce(through, 0)
WHERE tier = 'raw' AND type = 'conversation' AND status = 'active'
GROUP BY recent.id HAVING sum(token_count) >= ?1 ORDER BY min(version)
"""
# Sessions whose active observations take more tokens than a maximum, each with the time of its newest
# observation.
_OVER_OBSERVED = """
SELECT session_id, max(occurred_at_us) FROM observations WHERE status = 'active' AND session_id IS NOT NULL
GROUP BY session_id HAVING sum(token_count) > ? ORDER BY session_id LIMIT ?
"""
# The sessions with the newest episodes, without the running one.
_RECENT = """
SELECT id, started_at_us, last_at_us, summary FROM sessions WHERE last_version IS NOT NULL AND id <> ?
ORDER BY last_version DESC LIMIT ?
"""
# The messages of a session up to a version, newest first.
_EARLIER_TURNS = """
SELECT id, role, speaker, text, occurred_at_us, utc_offset FROM episodes
WHERE session_id = ? AND version <= ? AND tier = 'raw' AND type = 'conversation' AND status = 'active'
ORDER BY version DESC LIMIT ?
"""
# The active observations of a session.
_OBSERVATIONS = "SELECT event_id, text FROM observations WHERE session_id = ? AND status = 'active' ORDER BY key"

# The newest messages in which a user asks something. Those after the last extracted question may not be read yet, so
# their text decides.
_ASKING = """
WITH last (version) AS (
    SELECT coalesce(max(version), 0) FROM episodes WHERE id IN (SELECT event_id FROM questions)
)
SELECT id FROM episodes, last WHERE episodes.version > last.version AND role = 'user' AND text LIKE '%?%'
UNION ALL SELECT event_id FROM (SELECT DISTINCT event_id FROM questions ORDER BY key DESC)
LIMIT ?
"""


class ObservationRow(Struct, frozen=True, kw_only=True):
    """One line about a running conversation."""

    #: Id of the event that recorded it.
    event_id: str
    text: str


class EarlierTurn(Struct, frozen=True, kw_only=True):
    """A message before those that are read."""

    id: str
    role: str | None
    speaker: str
    text: str
    #: In its own zone.
    sent_at: datetime


class RecentSession(Struct, frozen=True, kw_only=True):
    """A session with its newest event."""

    id: str
    started_at_us: int
    last_at_us: int
    #: The summary that its end was recorded with; None: no summary.
    summary: str | None


class SessionQueries:
    """Queries on the tables `sessions`, `observations` and `observation_cursors`."""

    def __init__(self, connection: apsw.Connection, days: DayZone) -> None:
        self._connection = connection
        self._days = days

    def last_activity(self) -> dict[str, int]:
        """Return the time of each session's newest event in microseconds, by session id."""
        return dict(fetch_tuples(self._connection, "SELECT id, last_at_us FROM sessions"))

    def channel(self, session_id: str) -> str | None:
        """Return the channel of a session, such as telegram; None when it is not recorded."""
        return fetch_value(self._connection, "SELECT channel FROM sessions WHERE id = ?", (session_id,))

    def recent(self, *, running: str | None, limit: int) -> list[RecentSession]:
        """Return the sessions with the newest episodes, newest first, without the running one."""
        return fetch_records(self._connection, RecentSession, _RECENT, (running or "", limit))

    def unobserved(self, *, tokens_min: int, limit: int) -> list[str]:
        """Return the ids of sessions with at least `tokens_min` tokens of unobserved turns, oldest turns first.

        Parameters:
            limit: number of sessions with the newest episodes to check.
        """
        return fetch_values(self._connection, _UNOBSERVED, (tokens_min, limit))

    def over_observed(self, *, tokens_max: int, limit: int) -> list[tuple[str, int]]:
        """Return the ids of sessions with over `tokens_max` tokens of observations, with the newest one's time."""
        rows = fetch_tuples(self._connection, _OVER_OBSERVED, (tokens_max, limit))
        return [(session_id, occurred_at_us) for session_id, occurred_at_us in rows]

    def earlier_turns(self, session_id: str, *, through: int, limit: int) -> list[EarlierTurn]:
        """Return the last messages of a session up to the version `through`, in order."""
        rows = fetch_tuples(self._connection, _EARLIER_TURNS, (session_id, through, limit))
        return [
            EarlierTurn(id=id, role=role, speaker=speaker, text=text, sent_at=self._days.local(at_us, offset))
            for id, role, speaker, text, at_us, offset in rows[::-1]
        ]

    def observations(self, session_id: str) -> list[ObservationRow]:
        """Return the active observations of a session, in order."""
        return fetch_records(self._connection, ObservationRow, _OBSERVATIONS, (session_id,))

    def asking_messages(self, *, limit: int) -> list[str]:
        """Return the ids of messages in which a user asks something, of expired ones too; the newest at most."""
        return fetch_values(self._connection, _ASKING, (limit,))
