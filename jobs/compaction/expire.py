"""Expiry: removes expired episodes from the read models, by event; their texts stay in the log."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.events.envelope import DAY_US, EventDraft
from recollect.jobs.derivation.derived_events import episodes_expired
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
    return [episodes_expired(ids[first : first + _IDS_MAX], now_us) for first in range(0, len(ids), _IDS_MAX)]
