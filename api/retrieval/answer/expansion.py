"""Expansion: adds the original messages of summaries to the items of a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recollect.api.retrieval.contract.result import Item, Source
from recollect.events.backends.log import EventLog
from recollect.events.envelope import RecordedEvent
from recollect.projections.projector.episode_events import episode_from_event, is_episode_event
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.queries.summary_sources import read_events


def expand_summaries(items: Sequence[Item], snapshot: Snapshot, log: EventLog, namespace: str) -> list[Item]:
    """Return `items`, with the sources of each summary."""
    return [replace(item, sources=read_sources(item.id, snapshot, log, namespace)) for item in items]


def read_sources(episode_id: str, snapshot: Snapshot, log: EventLog, namespace: str) -> tuple[Source, ...]:
    """Return the sources of a summary, oldest first; empty for any other episode."""
    version = snapshot.episodes.version_of(episode_id)
    versions = [] if version is None else snapshot.episodes.source_versions(version)
    return tuple(_source(event) for event in read_events(log, namespace, versions) if is_episode_event(event))


def _source(event: RecordedEvent) -> Source:
    """Return the source of an event, with its caption."""
    episode = episode_from_event(event, event.data())
    text = f"{episode.text} ({episode.caption})" if episode.caption else episode.text
    return Source(event.id, event.occurred_at_us, episode.speaker, text)
