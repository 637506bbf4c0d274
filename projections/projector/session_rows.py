"""Session rows: the table of sessions, one row for each conversation."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

SAVE_SESSION = """
INSERT OR REPLACE INTO sessions (
    id, channel, user_id, started_at_us, ended_at_us, last_at_us, last_version, episode_count, summary, metadata,
    timezone, utc_offset
) VALUES (
    :id, :channel, :user_id, :started_at_us, :ended_at_us, :last_at_us, :last_version, :episode_count, :summary,
    :metadata, :timezone, :utc_offset
)
"""
SELECT_SESSION = """
SELECT id, channel, user_id, started_at_us, ended_at_us, last_at_us, last_version, episode_count, summary, metadata,
    timezone, utc_offset
FROM sessions WHERE id = ?
"""


class SessionRow(Struct, kw_only=True):
    """A row of the table `sessions` while a batch changes it; every field has the name of its column."""

    id: str
    channel: str | None
    user_id: str | None
    started_at_us: int
    #: None: the session has not ended.
    ended_at_us: int | None
    #: Time of the newest event.
    last_at_us: int
    #: Version of the newest episode.
    last_version: int | None
    episode_count: int
    summary: str | None
    #: JSON.
    metadata: str | None
    #: The zone that the metadata names.
    timezone: str | None
    #: Minutes east of UTC of its last event that has a zone.
    utc_offset: int | None


_SESSION_COLUMNS = SessionRow.__struct_fields__


def session_of(row: tuple[Any, ...]) -> SessionRow:
    """Return the session of a row of `SELECT_SESSION`."""
    return SessionRow(**dict(zip(_SESSION_COLUMNS, row, strict=True)))


def new_session(id: str, occurred_at_us: int) -> SessionRow:
    """Return a session that starts with an event at this time."""
    return SessionRow(
        id=id,
        channel=None,
        user_id=None,
        started_at_us=occurred_at_us,
        ended_at_us=None,
        last_at_us=occurred_at_us,
        last_version=None,
        episode_count=0,
        summary=None,
        metadata=None,
        timezone=None,
        utc_offset=None,
    )


def bindings(session: SessionRow) -> dict[str, Any]:
    """Return the bindings of `SAVE_SESSION`."""
    return {column: getattr(session, column) for column in _SESSION_COLUMNS}
