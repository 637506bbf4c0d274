"""Due queries: the times by which episodes fall due for compaction, without new events."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from recollect.projections.queries.day_zone import DayZone, day_end_us
from recollect.projections.queries.records import fetch_tuples, fetch_value

# Live raw episodes without a summary, as compression groups them.
_UNSUMMARISED = """
SELECT session_id, occurred_at_us, utc_offset FROM episodes
WHERE tier = 'raw' AND status = 'active'
    AND NOT EXISTS (SELECT 1 FROM episode_sources WHERE source = episodes.version)
"""
_FIRST_COMPRESSED = """
SELECT min(occurred_at_us) FROM episodes WHERE tier = 'compressed' AND status = 'active' AND pinned = 0
"""
# The condition of expiry, at any time.
_FIRST_EXPIRING_RAW = """
SELECT min(occurred_at_us) FROM episodes
WHERE tier = 'raw' AND pinned = 0 AND importance < ?
    AND (status <> 'active' OR EXISTS (SELECT 1 FROM episode_sources WHERE source = episodes.version))
    AND id NOT IN (
        SELECT source.value FROM facts, json_each(facts.source_events) AS source WHERE source_type = 'corrected'
    )
"""
_FIRST_EXPIRING_SUMMARY = "SELECT min(expires_at_us) FROM episodes WHERE pinned = 0"
# The newest message that the extraction has not recorded as read.
_LAST_UNREAD = """
SELECT max(occurred_at_us) FROM episodes WHERE type = 'conversation' AND tier = 'raw'
    AND version > coalesce((SELECT through FROM job_cursors WHERE job = 'extraction'), 0)
"""


class SessionDay(NamedTuple):
    """The episodes of a session and a day that are in no summary; the day is that of their zone."""

    session_id: str | None
    #: The end of the day, in microseconds since 1970 UTC.
    end_us: int
    #: The newest of them, in microseconds since 1970 UTC.
    last_us: int


class DueQueries:
    """Queries for the times at which the episodes of a read model fall due."""

    def __init__(self, connection: apsw.Connection, days: DayZone) -> None:
        self._connection = connection
        self._days = days

    def unsummarised_days(self) -> list[SessionDay]:
        """Return the sessions and days with live raw episodes that are in no summary."""
        last: dict[tuple[str | None, int], int] = {}
        for session_id, at_us, offset in fetch_tuples(self._connection, _UNSUMMARISED):
            key = (session_id, day_end_us(at_us, self._days.offset(at_us, offset)))
            last[key] = max(at_us, last.get(key, at_us))
        return [SessionDay(session_id, end_us, last_us) for (session_id, end_us), last_us in last.items()]

    def first_compressed_us(self) -> int | None:
        """Return the time of the oldest compressed episode that is not distilled."""
        return fetch_value(self._connection, _FIRST_COMPRESSED)

    def first_expiring_raw_us(self, *, importance_kept: int) -> int | None:
        """Return the time of the oldest raw episode that may expire.

        Parameters:
            importance_kept: lowest importance of the episodes that never expire.
        """
        return fetch_value(self._connection, _FIRST_EXPIRING_RAW, (importance_kept,))

    def first_expiring_summary_us(self) -> int | None:
        """Return the earliest time of expiry of a summary."""
        return fetch_value(self._connection, _FIRST_EXPIRING_SUMMARY)

    def last_unread_us(self) -> int | None:
        """Return the time of the newest message that the extraction has not recorded as read."""
        return fetch_value(self._connection, _LAST_UNREAD)
