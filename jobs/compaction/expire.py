"""Expired episodes leave the read models, by event; their words stay in the log."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.events.envelope import DAY_US, EventDraft
from recollect.jobs.derivation.derived_events import episodes_expired
from recollect.jobs.derivation.job_context import JobContext
from recollect.projections.queries.snapshot import Snapshot

#: Episodes in one event, and found at a time.
_IDS_MAX = 500
_FOUND_MAX = 20_000


def expire(context: JobContext, _: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `episodes.expired` for what is past its time."""
    settings = context.settings
    cutoff_us = now_us - int(settings.compaction.raw_expires_after_days * DAY_US)
    ids = snapshot.episodes.expired_raw_ids(
        importance_kept=settings.compaction.raw_importance_kept, cutoff_us=cutoff_us, limit=_FOUND_MAX
    )
    ids += snapshot.episodes.expired_summary_ids(now_us, limit=_FOUND_MAX)
    return [episodes_expired(ids[first : first + _IDS_MAX], now_us) for first in range(0, len(ids), _IDS_MAX)]
