"""Compressed → distilled: last week's summaries become their essence, which does not expire."""

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

_SUMMARIES_MAX = 20


def distill(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `episode.distilled` for the next compressed episodes that are old enough."""
    cutoff_us = now_us - int(context.settings.compaction.distill_after_days * DAY_US)
    due = snapshot.episodes.compressed_before(cutoff_us, limit=_SUMMARIES_MAX)
    return [_distilled(context, namespace, snapshot, compressed) for compressed in due]


def _distilled(context: JobContext, namespace: str, snapshot: Snapshot, compressed: EpisodeRow) -> EventDraft:
    """Distil the words behind a summary rather than its own: what was left out there may be what matters now."""
    events = read_events(context.log, namespace, snapshot.episodes.source_versions(compressed.version))
    turns = [_turn(event) for event in events if is_episode_event(event)] or [compressed]
    summary = summarise_episodes(context, namespace, snapshot, turns, share=context.settings.compaction.distilled_share)
    return episode_distilled(compressed, summary)


def _turn(event: RecordedEvent) -> EpisodeRow:
    one = episode_from_event(event, event.data())
    return EpisodeRow(
        version=event.version,
        id=event.id,
        session_id=event.session_id,
        role=one.role,
        speaker=one.speaker,
        text=one.text,
        caption=one.caption,
        importance=one.importance,
        occurred_at_us=event.occurred_at_us,
    )
