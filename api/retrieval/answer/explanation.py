"""Explanation: the understood query, the candidates with ranks and features, and the dropped items, for traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from recollect.api.retrieval.answer.prompt_context import Line
from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.ranking.features import FEATURES
from recollect.api.retrieval.ranking.relevance_gate import MEASURES, answer_measures
from recollect.api.retrieval.ranking.search_result import SearchResult
from recollect.api.retrieval.ranking.weighted_sum import load_weights
from recollect.api.retrieval.search.semantic_search import weights_name
from recollect.events.envelope import rfc3339

#: Candidates in one trace: the best ones.
_CANDIDATES_MAX = 50


def explanation(
    results: Sequence[SearchResult], selected: Sequence[Item], lines: Sequence[Line], items: Sequence[Item]
) -> dict[str, Any]:
    """Return the explanation of a result, ready for JSON.

    Parameters:
        results: the search results, one per namespace.
        selected: the items before the token budget.
        lines: the lines of the context.
        items: the items in the context.
    """
    line_keys = {_key(line.item) for line in lines}
    selected_keys = {_key(item) for item in selected}
    others = [item for result in results for item in result.items if _key(item) not in selected_keys]
    cut = [
        *(_cut(item, "over the limit") for item in others),
        *(_cut(item, "over the token budget") for item in selected if _key(item) not in line_keys),
    ]
    dropped = [drop._asdict() for result in results for drop in result.dropped]
    return {
        "understood": [_understood(result) for result in results],
        "candidates": [candidate for result in results for candidate in _candidates(result)],
        "gate": [_gate(result) for result in results],
        "dropped": [*dropped, *cut],
        "lines": [{"id": line.item.id, "category": line.category, "tokens": line.tokens} for line in lines],
        "sources": {item.id: item.source_events for item in items},
    }


def _key(item: Item) -> tuple[str, str, str]:
    """Return the key of an item among several namespaces and kinds."""
    return item.namespace, item.kind, item.id


def _cut(item: Item, reason: str) -> dict[str, Any]:
    """Return an item that was left out, with the reason."""
    return {"id": item.id, "kind": item.kind, "score": round(item.score, 4), "reason": reason}


def _understood(result: SearchResult) -> dict[str, Any]:
    """Return the understood query."""
    query = result.context.query
    return {
        "namespace": result.context.namespace,
        "question": query.question,
        "text": query.text,
        "keywords": query.words,
        "participants": sorted(query.participant_names),
        "entities": query.entities,
        "phrases": query.phrases,
        "intent": query.intent.intent,
        "cues": asdict(query.intent) | {"answer": [kind.name for kind in query.intent.answer]},
        "time_ranges": [[rfc3339(span.start_us), rfc3339(span.end_us)] for span in query.time_ranges],
        "continued": query.continued,
    }


def _candidates(result: SearchResult) -> list[dict[str, Any]]:
    """Return the best candidates with ranks and features."""
    if result.ranked is None:
        return []
    ranked = result.ranked
    ranks = ranked.candidates.ranks(ranked.candidates.rows.tolist())
    listed: list[dict[str, Any]] = []
    for index in ranked.order[:_CANDIDATES_MAX]:
        row = int(ranked.candidates.rows[index])
        features = {
            name: round(float(value), 3) for name, value in zip(FEATURES, ranked.matrix[index], strict=True) if value
        }
        listed.append(
            {
                "version": int(result.context.episodes.versions[row]),
                "score": round(float(ranked.scores[index]), 4),
                "ranks": ranks[row],
                "features": features,
            }
        )
    return listed


def _gate(result: SearchResult) -> dict[str, Any]:
    """Return the measures of the relevance gate, and the version of the weights."""
    if result.ranked is None:
        return {"grounding": round(result.grounding, 4)}
    values = answer_measures(result.ranked, result.context.query)
    return {
        "grounding": round(result.grounding, 4),
        "measures": {name: round(float(value), 4) for name, value in zip(MEASURES, values, strict=True)},
        "weights": load_weights(weights_name(result.ranked.signals.semantics)).version,
    }
