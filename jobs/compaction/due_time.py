"""Due time: the time from which compaction has work again in a namespace without new events."""

from __future__ import annotations

import math
from collections.abc import Iterator

from recollect.events.envelope import DAY_US
from recollect.jobs.compaction.staleness import DECAY_FLOOR, DECAY_HALF_LIFE_DAYS, LOSS_MIN, stale_at_us
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.job_settings import QUIET_US, CompactionSettings
from recollect.projections.queries.snapshot import Snapshot

_HOUR_US = 3_600_000_000


def compaction_due_us(context: JobContext, namespace: str, now_us: int) -> int | None:
    """Return when the first step of compaction has work again, in microseconds; None: not without new events.

    A time that is too early costs one opening of the namespace; none is too late. What is due at `now_us` already was
    left by the run that has just ended, and is left to the next one.
    """
    with context.read_models.reading(namespace) as snapshot:
        if snapshot.version == 0:
            return None
        return min(_due_times(context.settings.compaction, snapshot, now_us), default=None)


def _due_times(settings: CompactionSettings, snapshot: Snapshot, now_us: int) -> Iterator[int]:
    """Yield the time at which each step has work: the same limits as in the modules of the steps."""
    yield from _compression_times(settings, snapshot)
    raw_us = snapshot.due.first_expiring_raw_us(importance_kept=settings.raw_importance_kept)
    compressed_us = snapshot.due.first_compressed_us()
    summary_us = snapshot.due.first_expiring_summary_us()
    if raw_us is not None:
        yield raw_us + int(settings.raw_expires_after_days * DAY_US)
    if compressed_us is not None:
        yield compressed_us + int(settings.distill_after_days * DAY_US)
    if summary_us is not None:
        yield summary_us
    yield from _staleness_times(settings, snapshot)
    unread_us = snapshot.due.last_unread_us()
    if unread_us is not None and unread_us + QUIET_US > now_us:
        # The extraction waits for the end of the conversation.
        yield unread_us + QUIET_US


def _compression_times(settings: CompactionSettings, snapshot: Snapshot) -> Iterator[int]:
    """Yield when each session, or each day of an active session, is compressed."""
    after_us = int(settings.compress_after_hours * _HOUR_US)
    last_us = snapshot.sessions.last_activity()
    for group in snapshot.due.unsummarised_days():
        due_us = group.end_us
        if group.session_id is not None:
            due_us = min(due_us, max(group.last_us, last_us.get(group.session_id, 0)))
        yield due_us + after_us


def _staleness_times(settings: CompactionSettings, snapshot: Snapshot) -> Iterator[int]:
    """Yield when each memory is past its time to live, or has lost enough of its confidence."""
    half_life_us = DECAY_HALF_LIFE_DAYS * DAY_US
    for memory in snapshot.knowledge.active_memories():
        stale_us = stale_at_us(memory, settings.ttl_days)
        if stale_us is not None:
            yield stale_us
        if memory.kind == "fact" and memory.source_type == "inferred":
            remaining = max(1 - LOSS_MIN, min(1.0, DECAY_FLOOR / max(memory.confidence, 1e-9)))
            yield memory.updated_at_us + int(-half_life_us * math.log2(remaining))
