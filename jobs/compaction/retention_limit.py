"""Retention limit: removes the least important memories of a namespace that has too many."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.events.envelope import EventDraft
from recollect.jobs.derivation.derived_events import episodes_expired, memory_stale
from recollect.jobs.derivation.job_context import JobContext
from recollect.projections.queries.snapshot import Snapshot

#: Summaries in one event.
_IDS_MAX = 500


def enforce_retention_limit(context: JobContext, _: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return the events that bring a namespace back to its limit: memories become stale, summaries expire.

    The memories with the least confidence go first, then those with the least evidence, then the oldest.
    """
    memories_max = context.settings.compaction.memories_max
    memories = sorted(
        snapshot.knowledge.active_memories(),
        key=lambda memory: (memory.confidence, memory.evidence, memory.updated_at_us, memory.id),
    )
    drafts = [
        memory_stale(memory.id, "over the cap", now_us) for memory in memories[: max(0, len(memories) - memories_max)]
    ]
    ids = snapshot.episodes.summary_ids_over(memories_max)
    drafts += [episodes_expired(ids[first : first + _IDS_MAX], now_us) for first in range(0, len(ids), _IDS_MAX)]
    return drafts
