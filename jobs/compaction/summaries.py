"""Summaries of turns, in the tokens that a tier allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recollect.jobs.compaction.extractive import Told, summarise
from recollect.jobs.context import JobContext
from recollect.projections.models import Snapshot
from recollect.projections.tokens import estimate_tokens

#: However little there was: a sentence needs some room.
_TOKENS_MIN = 16
#: What a summary of turns without any words says.
_WORDLESS = "(nothing was said)"


class Summary(NamedTuple):
    """A summary and its sizes, in estimated tokens."""

    text: str
    token_count: int
    source_tokens: int


def summary_of(
    context: JobContext,
    namespace: str,
    snapshot: Snapshot,
    turns: Sequence[Told],
    *,
    tokens_max: int | None = None,
    share: float = 0,
) -> Summary:
    """Return a summary of `turns`.

    Parameters:
        tokens_max: its length; a `share` of what it stands for when None.
    """
    source_tokens = sum(estimate_tokens(f"{turn.speaker}: {turn.line()}") for turn in turns)
    budget = max(_TOKENS_MIN, int(share * source_tokens)) if tokens_max is None else tokens_max
    vectors = context.vectors_in_use().of_turns(namespace, snapshot, [turn.version for turn in turns])
    text = summarise(turns, [vectors.get(turn.version) for turn in turns], budget) or _WORDLESS
    return Summary(text, estimate_tokens(text), source_tokens)
