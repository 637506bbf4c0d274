"""Distillation, the tier compressed → distilled: writes short summaries that do not expire."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.events.envelope import DAY_US, EventDraft
from recollect.jobs.derivation.event_drafts import episode_distilled
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.summaries import LLM_SUMMARIES_MAX, summarise_episodes
from recollect.projections.queries.queried_episodes import EpisodeRow
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.summary_sources import read_turns

#: Tokens of a distilled episode, as a share of its sources'.
_DISTILLED_SHARE = 0.05
#: Summaries in one append: a conflict with another worker loses at most this work.
_SUMMARIES_MAX = 20


def distill(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `episode.distilled` for the next compressed episodes that are old enough."""
    cutoff_us = now_us - int(context.settings.compaction.distill_after_days * DAY_US)
    summaries_max = _SUMMARIES_MAX if context.llm is None else LLM_SUMMARIES_MAX
    due = snapshot.episodes.compressed_before(cutoff_us, limit=summaries_max)
    return [_distilled(context, namespace, snapshot, compressed) for compressed in due]


def _distilled(context: JobContext, namespace: str, snapshot: Snapshot, compressed: EpisodeRow) -> EventDraft:
    """Return `episode.distilled`, made from the sources of a summary, since the summary may lack what matters now."""
    versions = snapshot.episodes.source_versions(compressed.version)
    turns = read_turns(context.log, namespace, versions, snapshot.days) or [compressed]
    summary = summarise_episodes(context, namespace, snapshot, turns, share=_DISTILLED_SHARE)
    return episode_distilled(compressed, summary)
