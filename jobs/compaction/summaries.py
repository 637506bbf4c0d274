"""Summaries of turns, in the tokens that a tier allows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from recollect.jobs.context import JobContext
from recollect.projections.embedder import Vector
from recollect.projections.models import Snapshot
from recollect.projections.tokens import estimate_tokens

#: However little there was: a sentence needs some room.
_TOKENS_MIN = 12


class Told(NamedTuple):
    """A turn on its way into a summary."""

    version: int
    speaker: str
    text: str
    #: What its attachments show.
    caption: str | None
    importance: int

    def line(self) -> str:
        """Return what was said and shown."""
        return f"{self.text} ({self.caption})" if self.caption else self.text


class Summary(NamedTuple):
    """A summary and its sizes, in estimated tokens."""

    text: str
    token_count: int
    source_tokens: int


_SENT = re.compile(r"(?<=[.!?…])\s+|\n+")


def summary_of(
    context: JobContext,
    namespace: str,
    snapshot: Snapshot,
    turns: Sequence[Told],
    *,
    share: float | None = None,
    tokens_max: int | None = None,
) -> Summary:
    source_tokens = sum(estimate_tokens(f"{t.speaker}: {t.line()}") for t in turns)
    budget = tokens_max or max(_TOKENS_MIN, int((share or 0) * source_tokens))
    vectors = context.vectors_in_use().of_turns(namespace, snapshot, [t.version for t in turns])
    text = _extract(turns, vectors, budget)
    return Summary(text, estimate_tokens(text), source_tokens)


def _extract(turns: Sequence[Told], vectors: dict[int, Vector], budget: int) -> str:
    units = [(i, s.strip()) for i, t in enumerate(turns) for s in _SENT.split(t.line()) if s.strip()]
    if not units:
        return "…"
    if vectors:
        dims = len(next(iter(vectors.values())))
        m = np.stack([vectors.get(t.version, np.zeros(dims, np.float32)) for t in turns])
        c = m.mean(0)
        c /= np.linalg.norm(c) + 1e-9
        cent = m @ c
    else:
        m = np.eye(len(turns), dtype=np.float32)
        cent = np.ones(len(turns))
    info = [
        min(1.0, len(s) / 80) + 0.3 * len(re.findall(r"\d+|\b[A-Z]\w+", s)[:3]) - 0.5 * s.endswith("?")
        for _, s in units
    ]
    chosen: list[int] = []
    used = 0
    left = set(range(len(units)))
    while left:
        best, score = -1, -1e9
        for u in left:
            i = units[u][0]
            red = max((float(m[i] @ m[units[c2][0]]) for c2 in chosen), default=0.0)
            sc = float(cent[i]) + 0.5 * info[u] - 0.5 * red
            if sc > score:
                best, score = u, sc
        left.discard(best)
        cost = estimate_tokens(f"{turns[units[best][0]].speaker}: {units[best][1]} ")
        if used + cost <= budget:
            chosen.append(best)
            used += cost
        if used > 0.9 * budget:
            break
    if not chosen:
        s = units[int(np.argmax(info))]
        return f"{turns[s[0]].speaker}: {s[1]}"[: budget * 4]
    out, last = [], None
    for u in sorted(chosen):
        i, s = units[u]
        out.append(s if turns[i].speaker == last else f"{turns[i].speaker}: {s}")
        last = turns[i].speaker
    return " ".join(out)
