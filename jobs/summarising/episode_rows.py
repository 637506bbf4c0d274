"""Episode rows of plain texts, so that texts without an episode can be summarised as turns are."""

from __future__ import annotations

from collections.abc import Iterable

from recollect.projections.queries.episode_queries import EpisodeRow


def plain_rows(texts: Iterable[str]) -> list[EpisodeRow]:
    """Return rows of these texts, without a speaker, in order."""
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
