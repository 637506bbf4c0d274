"""Distillation, the tier compressed → distilled: writes short summaries that do not expire."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.events.envelope import DAY_US, EventDraft, RecordedEvent
from recollect.jobs.derivation.derived_events import episode_distilled
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.summaries import summarise_episodes
from recollect.projections.projector.episode_events import episode_from_event, is_episode_event
from recollect.projections.queries.episode_queries import EpisodeRow
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.queries.summary_sources import read_events

#: Summaries in one append: a conflict with another worker loses at most this work.
_SUMMARIES_MAX = 20


def distill(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `episode.distilled` for the next compressed episodes that are old enough."""
    cutoff_us = now_us - int(context.settings.compaction.distill_after_days * DAY_US)
    due = snapshot.episodes.compressed_before(cutoff_us, limit=_SUMMARIES_MAX)
    return [_distilled(context, namespace, snapshot, compressed) for compressed in due]


def _distilled(context: JobContext, namespace: str, snapshot: Snapshot, compressed: EpisodeRow) -> EventDraft:
    """Return `episode.distilled`, made from the sources of a summary, since the summary may lack what matters now."""
    events = read_events(context.log, namespace, snapshot.episodes.source_versions(compressed.version))
    turns = [_turn(event) for event in events if is_episode_event(event)] or [compressed]
    summary = summarise_episodes(context, namespace, snapshot, turns, share=context.settings.compaction.distilled_share)
    return episode_distilled(compressed, summary)


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
    )
