"""Which raw episodes become one summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from recollect.events.envelope import DAY_US
from recollect.jobs.summarising.episode_rows import Turn, read_turns

#: Old, active, and without a summary that stands for them.
_RAW = """
WHERE tier = 'raw' AND status = 'active' AND occurred_at_us < ?
    AND NOT EXISTS (SELECT 1 FROM episode_sources WHERE source = episodes.version)
ORDER BY session_id, version
"""


def due_groups(connection: apsw.Connection, cutoff_us: int, turns_max: int) -> Iterator[list[Turn]]:
    """Yield the raw episodes from before `cutoff_us` in groups, each to become one summary.

    A session that has been quiet since is one group. Of a session that goes on, and of messages without a session, each
    whole day (UTC) is one. A group over `turns_max` is split.
    """
    sessions: list[tuple[Any, ...]] = connection.execute("SELECT id, last_at_us FROM sessions").fetchall()
    last: dict[str, int] = {row[0]: row[1] for row in sessions}
    groups: dict[tuple[str | None, int | None], list[Turn]] = {}
    for raw in read_turns(connection, _RAW, (cutoff_us,)):
        quiet = raw.session_id is not None and last.get(raw.session_id, 0) < cutoff_us
        day = None if quiet else raw.occurred_at_us // DAY_US
        if day is None or (day + 1) * DAY_US <= cutoff_us:
            groups.setdefault((raw.session_id, day), []).append(raw)
    for group in groups.values():
        yield from _split(group, turns_max)


def _split(group: Sequence[Turn], turns_max: int) -> Iterator[list[Turn]]:
    """Split evenly, so that no part is left with a turn or two."""
    parts = -(-len(group) // turns_max)
    for part in range(parts):
        yield list(group[part * len(group) // parts : (part + 1) * len(group) // parts])
