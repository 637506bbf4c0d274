"""Which raw episodes become one summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apsw

#: Microseconds in a day.
DAY_US = 86_400_000_000

#: Old, active, and without a summary that stands for them.
_RAW = """
SELECT version, id, session_id, occurred_at_us, speaker, text, caption, importance, token_count
FROM episodes
WHERE tier = 'raw' AND status = 'active' AND occurred_at_us < ?
    AND NOT EXISTS (SELECT 1 FROM episode_sources WHERE source = episodes.version)
ORDER BY session_id, version
"""


class Raw(NamedTuple):
    """A raw episode on its way into a summary."""

    version: int
    id: str
    session_id: str | None
    occurred_at_us: int
    speaker: str
    text: str
    caption: str | None
    importance: int
    token_count: int


def due_groups(connection: apsw.Connection, cutoff_us: int, turns_max: int) -> Iterator[list[Raw]]:
    """Yield the raw episodes from before `cutoff_us` in groups, each to become one summary.

    A session that has been quiet since is one group. Of a session that goes on, and of messages without a session, each
    whole day (UTC) is one. A group over `turns_max` is split.
    """
    rows: list[tuple[Any, ...]] = connection.execute(_RAW, (cutoff_us,)).fetchall()
    sessions: list[tuple[Any, ...]] = connection.execute("SELECT id, last_at_us FROM sessions").fetchall()
    last: dict[str, int] = {row[0]: row[1] for row in sessions}
    groups: dict[tuple[str | None, int | None], list[Raw]] = {}
    for raw in (Raw(*row) for row in rows):
        quiet = raw.session_id is not None and last.get(raw.session_id, 0) < cutoff_us
        day = None if quiet else raw.occurred_at_us // DAY_US
        if day is None or (day + 1) * DAY_US <= cutoff_us:
            groups.setdefault((raw.session_id, day), []).append(raw)
    for group in groups.values():
        yield from _split(group, turns_max)


def _split(group: Sequence[Raw], turns_max: int) -> Iterator[list[Raw]]:
    """Split evenly, so that no part is left with a turn or two."""
    parts = -(-len(group) // turns_max)
    for part in range(parts):
        yield list(group[part * len(group) // parts : (part + 1) * len(group) // parts])
