"""Compression, the tier raw → compressed: summarises the episodes of a session that are a day old."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from recollect.events.envelope import DAY_US, EventDraft
from recollect.jobs.compaction.file_size import MODEL_BYTES_MAX
from recollect.jobs.compaction.session_batches import due_batches
from recollect.jobs.derivation.derived_events import episodes_compressed
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.summaries import COMPRESSED_SHARE, LLM_SUMMARIES_MAX, summarise_episodes
from recollect.projections.queries.queried_episodes import EpisodeRow
from recollect.projections.queries.snapshot import Snapshot

#: Turns in one compressed episode.
_TURNS_MAX = 200
#: Summaries in one append: a conflict with another worker loses at most this work.
_BATCHES_MAX = 20
_HOUR_US = 3_600_000_000


def compress(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `episodes.compressed` for the next batches of raw episodes that are old enough."""
    settings = context.settings
    # The episodes of a read model that is too large are compressed without delay.
    large = snapshot.progress.file_size_bytes() > MODEL_BYTES_MAX
    cutoff_us = now_us - (0 if large else int(settings.compaction.compress_after_hours * _HOUR_US))
    batches = due_batches(snapshot, cutoff_us, _TURNS_MAX)
    batches_max = _BATCHES_MAX if context.llm is None else LLM_SUMMARIES_MAX
    return [_compressed(context, namespace, snapshot, batch) for batch in islice(batches, batches_max)]


def _compressed(context: JobContext, namespace: str, snapshot: Snapshot, batch: Sequence[EpisodeRow]) -> EventDraft:
    """Return `episodes.compressed` with the summary of one batch."""
    settings = context.settings
    summary = summarise_episodes(context, namespace, snapshot, batch, share=COMPRESSED_SHARE)
    return episodes_compressed(
        batch, summary, expires_after_us=int(settings.compaction.compressed_expires_after_days * DAY_US)
    )
