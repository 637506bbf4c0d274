"""Session batches: groups the raw episodes that are due for compression, by session and day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recollect.projections.queries.day_zone import day_end_us
from recollect.projections.queries.queried_episodes import EpisodeRow
from recollect.projections.queries.snapshot import Snapshot


def due_batches(snapshot: Snapshot, cutoff_us: int, turns_max: int) -> Iterator[list[EpisodeRow]]:
    """Yield the raw episodes from before `cutoff_us` in batches; each becomes one summary.

    A session without activity since `cutoff_us` is one batch. Of an active session, and of messages without a session,
    each complete day, in its zone, is one batch. A batch of more than `turns_max` episodes is split.
    """
    last = snapshot.sessions.last_activity()
    groups: dict[tuple[str | None, int | None], list[EpisodeRow]] = {}
    for raw in snapshot.episodes.unsummarised_before(cutoff_us):
        is_quiet = raw.session_id is not None and last.get(raw.session_id, 0) < cutoff_us
        end_us = None if is_quiet else day_end_us(raw.occurred_at_us, raw.utc_offset or 0)
        if end_us is None or end_us <= cutoff_us:
            groups.setdefault((raw.session_id, end_us), []).append(raw)
    for group in groups.values():
        yield from _split(group, turns_max)


def _split(group: Sequence[EpisodeRow], turns_max: int) -> Iterator[list[EpisodeRow]]:
    """Yield parts of at most `turns_max` episodes, of nearly equal size, so that no part has only one or two turns."""
    parts = -(-len(group) // turns_max)
    for part in range(parts):
        yield list(group[part * len(group) // parts : (part + 1) * len(group) // parts])
