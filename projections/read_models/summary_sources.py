"""Summary sources: read the source events of a summary from the log, including expired episodes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from recollect.events.backends.log import EventLog
from recollect.events.envelope import RecordedEvent
from recollect.projections.projector.episode_events import episode_from_event, is_episode_event, stated_offset
from recollect.projections.queries.day_zone import DayZone
from recollect.projections.queries.queried_episodes import EpisodeRow

#: Most events between two sources that one read includes: another read costs more than these events.
_GAP_EVENTS = 50


def read_turns(log: EventLog, namespace: str, versions: Sequence[int], days: DayZone | None = None) -> list[EpisodeRow]:
    """Return the messages, actions and observations of `namespace` with these ascending `versions`, in order.

    Parameters:
        days: the zones of turns without a zone of their own; without `days` their offset is None.

    Raises:
        StorageError: the log cannot be read.
    """
    turns = [_turn(event) for event in _read_events(log, namespace, versions) if is_episode_event(event)]
    if days is None:
        return turns
    return [
        replace(turn, utc_offset=days.offset(turn.occurred_at_us, turn.utc_offset, turn.session_id)) for turn in turns
    ]


def _turn(event: RecordedEvent) -> EpisodeRow:
    """Return the episode of an event as a row."""
    episode = episode_from_event(event, event.data())
    return EpisodeRow(
        version=event.version,
        id=event.id,
        session_id=event.session_id,
        role=episode.role,
        speaker=episode.speaker,
        text=episode.text,
        caption=episode.caption,
        importance=episode.importance,
        occurred_at_us=event.occurred_at_us,
        utc_offset=stated_offset(event, episode),
    )


def _read_events(log: EventLog, namespace: str, versions: Sequence[int]) -> list[RecordedEvent]:
    """Return the events with these ascending `versions`, in order."""
    events: list[RecordedEvent] = []
    for run in _runs(versions):
        wanted = set(run)
        after = run[0] - 1
        while after < run[-1] and (span := log.read(namespace, after=after, limit=run[-1] - after)):
            events += [event for event in span if event.version in wanted]
            after = span[-1].version
    return events


def _runs(versions: Sequence[int]) -> list[list[int]]:
    """Split `versions` at gaps of more than `_GAP_EVENTS`."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and version - runs[-1][-1] <= _GAP_EVENTS:
            runs[-1].append(version)
        else:
            runs.append([version])
    return runs
