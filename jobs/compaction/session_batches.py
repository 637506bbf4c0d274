"""Which raw episodes become one summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recollect.events.envelope import DAY_US
from recollect.projections.queries.episode_queries import EpisodeRow
from recollect.projections.queries.snapshot import Snapshot


def due_batches(snapshot: Snapshot, cutoff_us: int, turns_max: int) -> Iterator[list[EpisodeRow]]:
    """Yield the raw episodes from before `cutoff_us` in groups, each to become one summary.

    A session that has been quiet since is one group. Of a session that goes on, and of messages without a session, each
    whole day (UTC) is one. A group over `turns_max` is split.
    """
    last = snapshot.sessions.last_activity()
    groups: dict[tuple[str | None, int | None], list[EpisodeRow]] = {}
    for raw in snapshot.episodes.unsummarised_before(cutoff_us):
        quiet = raw.session_id is not None and last.get(raw.session_id, 0) < cutoff_us
        day = None if quiet else raw.occurred_at_us // DAY_US
        if day is None or (day + 1) * DAY_US <= cutoff_us:
            groups.setdefault((raw.session_id, day), []).append(raw)
    for group in groups.values():
        yield from _split(group, turns_max)


def _split(group: Sequence[EpisodeRow], turns_max: int) -> Iterator[list[EpisodeRow]]:
    """Split evenly, so that no part is left with a turn or two."""
    parts = -(-len(group) // turns_max)
    for part in range(parts):
        yield list(group[part * len(group) // parts : (part + 1) * len(group) // parts])
