"""Compression, the tier raw → compressed: summarises the episodes of a session that are a day old."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from recollect.events.envelope import DAY_US, EventDraft
from recollect.jobs.compaction.file_size import MODEL_BYTES_MAX
from recollect.jobs.derivation.event_drafts import episodes_compressed
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.summaries import COMPRESSED_SHARE, LLM_SUMMARIES_MAX, summarise_episodes
from recollect.projections.queries.day_zone import day_end_us
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
    batches = _due_batches(snapshot, cutoff_us)
    batches_max = _BATCHES_MAX if context.llm is None else LLM_SUMMARIES_MAX
    return [_compressed(context, namespace, snapshot, batch) for batch in islice(batches, batches_max)]


def _due_batches(snapshot: Snapshot, cutoff_us: int) -> Iterator[Sequence[EpisodeRow]]:
    """Yield the raw episodes from before `cutoff_us` in batches, by session and day; each becomes one summary.

    A session without activity since `cutoff_us` is one batch. Of an active session, and of messages without a session,
    each complete day, in its zone, is one batch. A batch of more than `_TURNS_MAX` episodes is split.
    """
    last = snapshot.sessions.last_activity()
    groups: dict[tuple[str | None, int | None], list[EpisodeRow]] = {}
    for raw in snapshot.episodes.unsummarised_before(cutoff_us):
        is_quiet = raw.session_id is not None and last.get(raw.session_id, 0) < cutoff_us
        end_us = None if is_quiet else day_end_us(raw.occurred_at_us, raw.utc_offset or 0)
        if end_us is None or end_us <= cutoff_us:
            groups.setdefault((raw.session_id, end_us), []).append(raw)
    for group in groups.values():
        # Parts of nearly equal size, so that none has only one or two turns.
        parts = -(-len(group) // _TURNS_MAX)
        yield from (group[part * len(group) // parts : (part + 1) * len(group) // parts] for part in range(parts))


def _compressed(context: JobContext, namespace: str, snapshot: Snapshot, batch: Sequence[EpisodeRow]) -> EventDraft:
    """Return `episodes.compressed` with the summary of one batch."""
    settings = context.settings
    summary = summarise_episodes(context, namespace, snapshot, batch, share=COMPRESSED_SHARE)
    return episodes_compressed(
        batch, summary, expires_after_us=int(settings.compaction.compressed_expires_after_days * DAY_US)
    )
