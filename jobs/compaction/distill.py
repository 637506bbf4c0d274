"""Compressed → distilled: last week's summaries become their essence, which does not expire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from recollect.events.envelope import EventDraft, instant
from recollect.events.validation import draft
from recollect.jobs.compaction.extractive import Told
from recollect.jobs.compaction.groups import DAY_US
from recollect.jobs.compaction.summaries import summary_of
from recollect.jobs.context import JobContext
from recollect.jobs.derivation import derived_id
from recollect.projections.models import Snapshot
from recollect.projections.sources import read_events, source_versions
from recollect.projections.turns import tells, told

_SUMMARIES_MAX = 20

_COMPRESSED = """
SELECT version, id, session_id, occurred_at_us, text, importance FROM episodes
WHERE tier = 'compressed' AND status = 'active' AND pinned = 0 AND occurred_at_us < ?
ORDER BY version LIMIT ?
"""


class _Compressed(NamedTuple):
    version: int
    id: str
    session_id: str | None
    occurred_at_us: int
    text: str
    importance: int


def distill(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `episode.distilled` for the next compressed episodes that are old enough."""
    cutoff_us = now_us - int(context.policy.distill_after_days * DAY_US)
    rows: list[tuple[Any, ...]] = snapshot.connection.execute(_COMPRESSED, (cutoff_us, _SUMMARIES_MAX)).fetchall()
    return [_distilled(context, namespace, snapshot, _Compressed(*row)) for row in rows]


def _distilled(context: JobContext, namespace: str, snapshot: Snapshot, compressed: _Compressed) -> EventDraft:
    """Distil the words behind a summary rather than its own: what was left out there may be what matters now."""
    events = read_events(context.log, namespace, source_versions(snapshot.connection, compressed.version))
    turns = [
        Told(event.version, one.speaker, one.text, one.caption, one.importance)
        for event in events
        if tells(event)
        for one in [told(event, event.data())]
    ] or [Told(compressed.version, "summary", compressed.text, None, compressed.importance)]
    summary = summary_of(context, namespace, snapshot, turns, share=context.policy.distilled_share)
    return draft(
        {
            "id": derived_id("distill", compressed.id),
            "type": "episode.distilled",
            "session_id": compressed.session_id,
            "occurred_at": instant(compressed.occurred_at_us),
            "actor": "compaction",
            "payload": {
                "text": summary.text,
                "source_events": [compressed.id],
                "importance": compressed.importance,
                "token_count": summary.token_count,
                "source_tokens": summary.source_tokens,
            },
        }
    )
