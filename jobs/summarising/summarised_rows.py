"""Episode rows: wraps plain texts in episode rows, so that they can be summarised like turns."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.projections.queries.queried_episodes import EpisodeRow


def plain_rows(texts: Iterable[str]) -> list[EpisodeRow]:
    """Return one row a text, in order, without speaker, session and time."""
    return [
        EpisodeRow(
            version=number,
            id="",
            session_id=None,
            role=None,
            speaker="",
            text=text,
            caption=None,
            importance=5,
            occurred_at_us=0,
        )
        for number, text in enumerate(texts)
    ]
