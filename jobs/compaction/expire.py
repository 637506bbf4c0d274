"""Expired episodes leave the read models, by event; their words stay in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.events.envelope import DAY_US, EventDraft
from recollect.jobs.derivation.derived_events import episodes_expired
from recollect.jobs.derivation.job_context import JobContext
from recollect.projections.queries.snapshot import Snapshot

#: Episodes in one event, and found at a time.
_IDS_MAX = 500
_FOUND_MAX = 20_000

#: Raw ones that a summary stands for, or that were found wrong; never what is pinned, or what a correction came from.
_RAW = """
SELECT id FROM episodes
WHERE tier = 'raw' AND pinned = 0 AND importance < ? AND occurred_at_us < ?
    AND (status <> 'active' OR EXISTS (SELECT 1 FROM episode_sources WHERE source = episodes.version))
    AND id NOT IN (
        SELECT source.value FROM facts, json_each(facts.source_events) AS source WHERE source_type = 'corrected'
    )
ORDER BY version LIMIT ?
"""
_SUMMARIES = "SELECT id FROM episodes WHERE pinned = 0 AND expires_at_us < ? ORDER BY version LIMIT ?"


def expire(context: JobContext, _: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `episodes.expired` for what is past its time."""
    settings = context.settings
    cutoff_us = now_us - int(settings.compaction.raw_expires_after_days * DAY_US)
    rows: list[tuple[Any, ...]] = snapshot.connection.execute(
        _RAW, (settings.compaction.raw_importance_kept, cutoff_us, _FOUND_MAX)
    ).fetchall()
    rows += snapshot.connection.execute(_SUMMARIES, (now_us, _FOUND_MAX)).fetchall()
    ids = [row[0] for row in rows]
    return [episodes_expired(ids[first : first + _IDS_MAX], now_us) for first in range(0, len(ids), _IDS_MAX)]
