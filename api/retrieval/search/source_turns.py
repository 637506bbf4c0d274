"""Source turns: puts the messages that summaries stand for in their place, so that a search ranks the messages.

A summary is found by the words and the vectors of its sources, but its few sentences seldom hold the answer. So the
expired sources of the summaries that a search finds first are read from the log, and the search is repeated over the
episodes of the read model and these turns. A source that has not expired is an episode itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from recollect.api.retrieval.search.keyword_search import KeywordScores
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.search.semantic_search import SemanticScores
from recollect.events.envelope import DAY_US
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.queries.day_zone import DayZone
from recollect.projections.queries.queried_episodes import EpisodeDetails, EpisodeRow
from recollect.projections.read_models.summary_sources import read_turns
from recollect.projections.search_index.expired_turns import ExpiredTurn
from recollect.projections.search_index.postings import PostingsWithTurns

#: Summaries whose sources are read: the best ones. Of 207 sessions of a user and an assistant, they hold as much of the
#: evidence in the context as all messages did before compaction (`ops/evaluation compaction`).
_SUMMARIES_MAX = 48
#: Added to a summary within a time range of the query: more than the words can differ.
_IN_SPAN_BONUS = 10.0
#: Sources that are read, and characters of the texts that are ranked, over all summaries.
_TURNS_MAX = 500
_CHARS_MAX = 500_000


def best_summaries(
    context: SearchContext, allowed: NDArray[np.bool_], keywords: KeywordScores, semantics: SemanticScores | None
) -> list[int]:
    """Return the versions of the summaries that match the query best, best first, at most `_SUMMARIES_MAX`.

    It is a rough choice by the sum of z-scores, with room for the turns that the ranking finds in them: a summary has
    the words and the best cosines of all its sources.

    Parameters:
        allowed: mask of the summaries to choose from, shape (episodes,).
    """
    rows = np.flatnonzero(allowed)
    scores = _standardised(keywords.turn[rows]) + _standardised(keywords.session[rows])
    if semantics is not None:
        scores = scores + sum(_standardised(np.nan_to_num(values[rows])) for values in semantics.parts.values())
    for span in context.query.time_ranges:
        times = context.episodes.occurred_at_us[rows]
        scores[(times >= span.start_us) & (times < span.end_us + DAY_US)] += _IN_SPAN_BONUS
    order = np.lexsort((-rows, -scores))[:_SUMMARIES_MAX]
    return context.episodes.versions[rows[order]].tolist()


def _standardised(values: Vector) -> Vector:
    """Return the z-scores of `values`; 0 where all are equal."""
    return (values - values.mean()) / max(float(values.std()), 1e-6) if len(values) else values


def with_source_turns(context: SearchContext, summaries: Sequence[int]) -> SearchContext:
    """Return the context of a search over the episodes, in which turns take the place of all summaries.

    A summary without sources stays.

    Parameters:
        summaries: the versions of the best summaries, best first.

    Raises:
        StorageError: the log cannot be read.
    """
    kept = context.episodes.raw == 1
    summary_by_source: dict[int, int] = {}
    for version in summaries:
        sources = context.snapshot.episodes.expired_sources(version)
        if sources is None:
            kept[context.episodes.rows_of(np.array([version]))] = True
            continue
        for source in sources[: _TURNS_MAX - len(summary_by_source)]:
            summary_by_source.setdefault(source, version)
    turns = context.index.expired_turns.get(
        sorted(summary_by_source),
        lambda versions: read_turns(context.log, context.namespace, versions),
        context.snapshot.keywords.stemmer(),
    )
    turns = _bounded(turns, {version: rank for rank, version in enumerate(summaries)}, summary_by_source)
    return _with_turns(context, kept, turns, summary_by_source)


def keep_text_flags(context: SearchContext, expanded: SearchContext) -> None:
    """Keep the flags of texts that the ranking of a context `with_source_turns` has computed, for later searches."""
    rows, is_live = context.episodes.live_rows(expanded.episodes.versions)
    flags = expanded.episodes.text_flags
    context.episodes.text_flags[rows] |= flags[is_live]
    turns = expanded.episodes.versions[~is_live]
    context.index.expired_turns.add_text_flags(turns.tolist(), flags[~is_live].tolist())


def _bounded(
    turns: Sequence[ExpiredTurn], ranks: Mapping[int, int], summary_by_source: Mapping[int, int]
) -> list[ExpiredTurn]:
    """Return the turns of the best summaries whose texts have `_CHARS_MAX` characters together, in order.

    Parameters:
        ranks: the rank of each summary.
    """
    best_first = sorted(turns, key=lambda turn: (ranks[summary_by_source[turn.row.version]], turn.row.version))
    total_chars = np.cumsum([len(turn.row.text) for turn in best_first])
    chosen = best_first[: int(np.searchsorted(total_chars, _CHARS_MAX, side="right"))]
    return sorted(chosen, key=lambda turn: turn.row.version)


def _with_turns(
    context: SearchContext,
    kept: NDArray[np.bool_],
    turns: Sequence[ExpiredTurn],
    summary_by_source: Mapping[int, int],
) -> SearchContext:
    """Return the context with the `kept` episodes and `turns`."""
    rows = [turn.row for turn in turns]
    summaries = {
        version: context.snapshot.episodes.details(version)
        for version in {summary_by_source[row.version] for row in rows}
    }
    days = context.snapshot.days
    details = {row.version: _details(row, summaries[summary_by_source[row.version]], days) for row in rows}
    before = _turns_before(rows, summary_by_source)
    array_rows = [_array_row(turn, before.get(turn.row.version)) for turn in turns]
    stems = [(turn.row.version, turn.stems, before.get(turn.row.version)) for turn in turns]
    index = context.index._replace(
        episodes=context.episodes.with_turns(kept, array_rows, [turn.text_flags for turn in turns]),
        postings=PostingsWithTurns(context.index.postings, stems),
    )
    return replace(context, snapshot=context.snapshot.with_turns(details), index=index)


def _details(turn: EpisodeRow, summary: EpisodeDetails, days: DayZone) -> EpisodeDetails:
    """Return the turn as the item of a result, in the tier of its summary."""
    return EpisodeDetails(
        version=turn.version,
        id=turn.id,
        type="conversation",
        text=turn.text,
        caption=turn.caption,
        occurred_at_us=turn.occurred_at_us,
        session_id=turn.session_id,
        speaker=turn.speaker,
        tier=summary.tier,
        role=turn.role,
        summary_id=summary.id,
        utc_offset=days.offset(turn.occurred_at_us, turn.utc_offset, turn.session_id),
    )


def _turns_before(turns: Sequence[EpisodeRow], summary_by_source: Mapping[int, int]) -> dict[int, int]:
    """Return the turn before each of `turns` in its session and summary, by version."""
    before: dict[int, int] = {}
    last: dict[tuple[str | None, int], int] = {}
    for turn in turns:
        key = (turn.session_id, summary_by_source[turn.version])
        if turn.session_id is not None and key in last:
            before[turn.version] = last[key]
        last[key] = turn.version
    return before


def _array_row(turn: ExpiredTurn, previous: int | None) -> tuple[Any, ...]:
    """Return a turn in the columns of `EpisodeQueries.array_rows`."""
    row = turn.row
    return (
        row.version,
        row.occurred_at_us,
        row.session_id,
        row.role,
        row.speaker,
        row.importance,
        previous,
        turn.length,
        1,
        row.utc_offset,
    )
