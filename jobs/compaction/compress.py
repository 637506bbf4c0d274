"""Raw → compressed: yesterday's episodes of a session become one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from recollect.events.envelope import EventDraft, instant
from recollect.events.validation import draft
from recollect.jobs.compaction.file_size import size_bytes
from recollect.jobs.compaction.session_batches import DAY_US, due_groups
from recollect.jobs.derivation.append_derived import derived_id
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.episode_rows import Turn
from recollect.jobs.summarising.summaries import summary_of
from recollect.projections.read_models.read_models import Snapshot

#: Summaries decided from one read model: what a race with another worker can cost.
_GROUPS_MAX = 20
_HOUR_US = 3_600_000_000


def compress(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `episodes.compressed` for the next groups of raw episodes that are old enough."""
    policy = context.policy
    # A read model that has grown too large is compressed at once.
    large = size_bytes(snapshot.connection) > policy.model_bytes_max
    cutoff_us = now_us - (0 if large else int(policy.compress_after_hours * _HOUR_US))
    groups = due_groups(snapshot.connection, cutoff_us, policy.compressed_turns_max)
    return [_compressed(context, namespace, snapshot, group) for group in islice(groups, _GROUPS_MAX)]


def _compressed(context: JobContext, namespace: str, snapshot: Snapshot, group: Sequence[Turn]) -> EventDraft:
    policy = context.policy
    summary = summary_of(context, namespace, snapshot, group, share=policy.compressed_share)
    # Dated like what it tells of, so that whoever makes it, and whenever, makes the same.
    occurred_at_us = max(raw.occurred_at_us for raw in group)
    expires_at_us = occurred_at_us + int(policy.compressed_expires_after_days * DAY_US)
    return draft(
        {
            "id": derived_id("compress", *(raw.id for raw in group)),
            "type": "episodes.compressed",
            "session_id": group[0].session_id,
            "occurred_at": instant(occurred_at_us),
            "actor": "compaction",
            "payload": {
                "text": summary.text,
                "source_events": [raw.id for raw in group],
                "importance": max(raw.importance for raw in group),
                "token_count": summary.token_count,
                "source_tokens": summary.source_tokens,
                "expires_at": instant(expires_at_us),
            },
        }
    )
