"""Episode rows: the table `episodes` while a batch adds to it, except the summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from recollect.events.envelope import RecordedEvent
from recollect.events.local_time import zone_offset
from recollect.projections.projector.episode_events import Episode, stated_offset
from recollect.projections.projector.session_rows import SessionRow
from recollect.projections.text.segments import search_segments
from recollect.projections.text.tokens import estimate_tokens

#: Characters of an episode in which names and the words of languages other than English are looked for: 20 pages. More
#: is a pasted file, whose stems would take 10 s for 1 MiB; its other words are in the keyword index.
READ_CHARS_MAX = 32_768

# Bound by tuples, which is faster than by names: a replay writes this row once per event. See `episode_row`.
ADD_EPISODE = """
INSERT INTO episodes (
    version, id, session_id, previous, occurred_at_us, type, role, speaker, text, caption, importance, outcome, tier,
    token_count, status, pinned, terms, actor, parent_id, tags, details, metadata, utc_offset
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'raw', ?, 'active', 0, ?, ?, ?, ?, ?, ?, ?)
"""

# See `user_zone`. A message of the past that is added later says nothing about the zone of today.
SAVE_USER_ZONE = """
INSERT INTO user_zones (speaker, version, at_us, utc_offset, timezone) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (speaker) DO UPDATE SET version = excluded.version, at_us = excluded.at_us,
    utc_offset = excluded.utc_offset, timezone = excluded.timezone
WHERE excluded.at_us >= at_us
"""

#: An episode whose row is not complete: its event, the episode, the version of the episode before it in its
#: session, the names of the participants who wrote it, once for each message, and the minutes of its zone east of UTC.
AddedEpisode = tuple[RecordedEvent, Episode, int | None, Sequence[str], int | None]


def episode_row(added: AddedEpisode, importance: int, terms: str | None) -> tuple[Any, ...]:
    """Return the bindings of `ADD_EPISODE`."""
    event, episode, previous, _, utc_offset = added
    # Unpacked, which takes half the time of reading the fields by name.
    _, version, id, _, _, occurred_at_us, _, session_id, actor, causation_id, *_ = event
    type, speaker, text, _, role, caption, outcome, metadata, tags, details, _ = episode
    return (
        version,
        id,
        session_id,
        previous,
        occurred_at_us,
        type,
        role,
        speaker,
        text,
        caption,
        importance,
        outcome,
        estimate_tokens(text),
        terms,
        actor,
        causation_id,
        json_or_none(tags) if tags else None,
        details,
        json_or_none(metadata) if metadata else None,
        utc_offset,
    )


def episode_offset(event: RecordedEvent, episode: Episode, session: SessionRow | None) -> int | None:
    """Return the minutes of an episode's zone east of UTC: its own offset, else that of the zone that it names.

    Else that of its session's zone; an assistant or a tool, whose clock is mostly UTC, has the zone of the last turn.
    None: none of them has one.
    """
    offset = stated_offset(event, episode)
    if session is None:
        return offset
    if offset is None and session.timezone is not None:
        offset = zone_offset(session.timezone, event.occurred_at_us)
    if offset is not None:
        session.utc_offset = offset
    return session.utc_offset if offset is None and episode.role != "user" else offset


def user_zone(
    event: RecordedEvent, episode: Episode, session: SessionRow | None, utc_offset: int | None
) -> tuple[Any, ...]:
    """Return the bindings of `SAVE_USER_ZONE` for a message of a user: its offset, and the zone name that it is of."""
    timezone: str | None = None
    named: object = episode.metadata.get("timezone") if episode.metadata else None
    for name in (named, session and session.timezone):
        if isinstance(name, str) and zone_offset(name, event.occurred_at_us) == utc_offset is not None:
            timezone = name
            break
    return episode.speaker.casefold(), event.version, event.occurred_at_us, utc_offset, timezone


def search_terms(episode: Episode) -> str | None:
    """Return the search terms of an episode: its own, and the segments of its texts; None without any."""
    if not episode.caption and not episode.terms:
        segments = search_segments(episode.text[:READ_CHARS_MAX])
        return " ".join(segments) if segments else None
    text = " ".join(part for part in (episode.text[:READ_CHARS_MAX], episode.caption, episode.terms) if part)
    return " ".join([*([episode.terms] if episode.terms else []), *search_segments(text)]) or None


def json_or_none(value: Any) -> str | None:
    """Return a value as JSON; None when it is empty."""
    return orjson.dumps(value).decode() if value else None
