"""Daily digests: summarises each of the last days in a few sentences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from recollect.events.envelope import DAY_US, EventDraft
from recollect.jobs.derivation.derived_events import day_digested
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.summarising.summaries import summarise_episodes
from recollect.projections.projector.episode_updates import DAILY_DIGESTS_MAX
from recollect.projections.queries.snapshot import Snapshot

#: Episodes that a digest summarises: the first ones of the day.
_EPISODES_MAX = 2_000


def add_daily_digests(context: JobContext, namespace: str, now_us: int, snapshot: Snapshot) -> Sequence[EventDraft]:
    """Return `day.digested` for the last past days (UTC) that have turns and no digest yet."""
    digested_days = snapshot.sessions.digest_days()
    today = now_us // DAY_US
    drafts: list[EventDraft] = []
    for day in range(today - DAILY_DIGESTS_MAX, today):
        name = datetime.fromtimestamp(day * DAY_US // 1_000_000, UTC).date().isoformat()
        if name in digested_days:
            continue
        turns = snapshot.episodes.live_between(day * DAY_US, (day + 1) * DAY_US, limit=_EPISODES_MAX)
        if turns:
            summary = summarise_episodes(
                context, namespace, snapshot, turns, tokens_max=context.settings.compaction.digest_tokens
            )
            drafts.append(day_digested(day, name, summary.text, turns))
    return drafts
