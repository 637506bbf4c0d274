"""Expiry: removes episodes that have expired, and the least important memories of a namespace that has too many.

They leave the read models by event; their texts stay in the log.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.events.envelope import DAY_US, EventDraft
from recollect.jobs.derivation.event_drafts import episodes_expired, memory_stale
from recollect.jobs.derivation.job_context import JobContext
from recollect.projections.queries.snapshot import Snapshot

#: Episodes in one event.
_IDS_MAX = 500
#: Episodes of each kind that one round expires.
_EXPIRED_MAX = 20_000


def expire(context: JobContext, _: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `episodes.expired` for raw episodes with a summary and for summaries whose time is over."""
    settings = context.settings
    cutoff_us = now_us - int(settings.compaction.raw_expires_after_days * DAY_US)
    ids = snapshot.episodes.expired_raw_ids(
        importance_kept=settings.compaction.raw_importance_kept, cutoff_us=cutoff_us, limit=_EXPIRED_MAX
    )
    ids += snapshot.episodes.expired_summary_ids(now_us, limit=_EXPIRED_MAX)
    return _expired(ids, now_us)


def enforce_retention_limit(context: JobContext, _: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return the events that bring a namespace back to its limit: memories become stale, summaries expire.

    The memories with the least confidence go first, then those with the least evidence, then the oldest.
    """
    memories_max = context.settings.compaction.memories_max
    memories = sorted(
        snapshot.knowledge.active_memories(),
        key=lambda memory: (memory.confidence, memory.evidence, memory.updated_at_us, memory.id),
    )
    over = memories[: max(0, len(memories) - memories_max)]
    stale = [memory_stale(memory.id, "over the cap", now_us) for memory in over]
    return [*stale, *_expired(snapshot.episodes.summary_ids_over(memories_max), now_us)]


def _expired(ids: Sequence[str], now_us: int) -> list[EventDraft]:
    return [episodes_expired(ids[first : first + _IDS_MAX], now_us) for first in range(0, len(ids), _IDS_MAX)]
