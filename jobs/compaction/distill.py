"""Compressed → distilled: last week's summaries become their essence, which does not expire."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.events.envelope import DAY_US, EventDraft, RecordedEvent
from recollect.jobs.derivation.derived_events import episode_distilled
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.episode_rows import Turn, read_turns
from recollect.jobs.summarising.summaries import summary_of
from recollect.projections.projector.episode_events import tells, told
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.queries.summary_sources import read_events, source_versions

_SUMMARIES_MAX = 20

_COMPRESSED = """
WHERE tier = 'compressed' AND status = 'active' AND pinned = 0 AND occurred_at_us < ? ORDER BY version LIMIT ?
"""


def distill(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `episode.distilled` for the next compressed episodes that are old enough."""
    cutoff_us = now_us - int(context.settings.compaction.distill_after_days * DAY_US)
    due = read_turns(snapshot.connection, _COMPRESSED, (cutoff_us, _SUMMARIES_MAX))
    return [_distilled(context, namespace, snapshot, compressed) for compressed in due]


def _distilled(context: JobContext, namespace: str, snapshot: Snapshot, compressed: Turn) -> EventDraft:
    """Distil the words behind a summary rather than its own: what was left out there may be what matters now."""
    events = read_events(context.log, namespace, source_versions(snapshot.connection, compressed.version))
    turns = [_turn(event) for event in events if tells(event)] or [compressed]
    summary = summary_of(context, namespace, snapshot, turns, share=context.settings.compaction.distilled_share)
    return episode_distilled(compressed, summary)


def _turn(event: RecordedEvent) -> Turn:
    one = told(event, event.data())
    return Turn(
        event.version,
        event.id,
        event.session_id,
        one.role,
        one.speaker,
        one.text,
        one.caption,
        one.importance,
        event.occurred_at_us,
    )
