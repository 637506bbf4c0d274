"""Expansion: adds the original messages of summaries to the items of a result."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from recollect.api.retrieval.contract.result import Item, Source
from recollect.events.backends.log import EventLog
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.summary_sources import read_turns


def expand_summaries(items: Sequence[Item], snapshot: Snapshot, log: EventLog, namespace: str) -> list[Item]:
    """Return `items`, with the messages of the summary of each that is a summary or was found by one."""
    sources: dict[str, tuple[Source, ...]] = {}
    for item in items:
        if item.kind == "episode" and item.tier != "raw":
            summary_id = item.summary_id or item.id
            if summary_id not in sources:
                sources[summary_id] = read_sources(summary_id, snapshot, log, namespace)
    return [replace(item, sources=sources.get(item.summary_id or item.id, ())) for item in items]


def read_sources(episode_id: str, snapshot: Snapshot, log: EventLog, namespace: str) -> tuple[Source, ...]:
    """Return the sources of a summary, oldest first; empty for any other episode."""
    version = snapshot.episodes.version_of(episode_id)
    versions = [] if version is None else snapshot.episodes.source_versions(version)
    turns = read_turns(log, namespace, versions, snapshot.days)
    return tuple(
        Source(turn.id, turn.occurred_at_us, turn.speaker, turn.line(), turn.utc_offset or 0) for turn in turns
    )
