"""Reciprocal rank fusion: several ranked lists become one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Damps the lead of first places (Cormack, Clarke and Büttcher 2009; `000` and `001` use the same).
K = 60


@dataclass(frozen=True, slots=True)
class Ranked:
    """One candidate after fusion."""

    version: int
    score: float
    #: Its rank, from 1, in each list that has it.
    ranks: dict[str, int]


def fuse(lists: Mapping[str, Sequence[int]]) -> list[Ranked]:
    """Return the candidates of all `lists`, best first: score = Σ 1 / (K + rank). Equal scores: the newest first."""
    ranks: dict[int, dict[str, int]] = {}
    for name, versions in lists.items():
        for rank, version in enumerate(versions, start=1):
            ranks.setdefault(version, {}).setdefault(name, rank)
    ranked = [
        Ranked(version, sum(1 / (K + rank) for rank in places.values()), places) for version, places in ranks.items()
    ]
    return sorted(ranked, key=lambda candidate: (-candidate.score, -candidate.version))
