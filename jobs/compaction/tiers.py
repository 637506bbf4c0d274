"""How much a memory holds, by tier."""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw

_TIERS = """
SELECT tier, count(*), sum(
    token_count + (length(coalesce(caption, '')) + 3) / 4
) FROM episodes GROUP BY tier
"""


class Tier(NamedTuple):
    """The episodes of one tier."""

    episodes: int
    #: Estimated tokens of their texts and captions.
    tokens: int


def tiers(connection: apsw.Connection) -> dict[str, Tier]:
    """Return what the read model holds, by tier: ``raw``, ``compressed``, ``distilled``."""
    rows: list[tuple[Any, ...]] = connection.execute(_TIERS).fetchall()
    found = {tier: Tier(episodes, tokens) for tier, episodes, tokens in rows}
    return {tier: found.get(tier, Tier(0, 0)) for tier in ("raw", "compressed", "distilled")}
