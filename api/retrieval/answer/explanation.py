"""How an answer came about: what was understood, every candidate with its ranks and features, why it was dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from recollect.api.retrieval.answer.prompt_context import Line
from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.ranking.candidates import Candidates
from recollect.api.retrieval.ranking.features import FEATURES
from recollect.api.retrieval.ranking.relevance_gate import MEASURES, answer_measures
from recollect.api.retrieval.ranking.search_result import SearchResult
from recollect.api.retrieval.ranking.weighted_sum import load_weights
from recollect.events.envelope import rfc3339

#: Candidates in one trace: the best ones.
_CANDIDATES_MAX = 50


def explanation(
    found: Sequence[SearchResult], wanted: Sequence[Item], lines: Sequence[Line], items: Sequence[Item]
) -> dict[str, Any]:
    """Return the explanation of an answer, ready for JSON.

    Parameters:
        wanted: what was to be written, as far as the budget goes.
    """
    written = {_key(line.item) for line in lines}
    chosen = {_key(item) for item in wanted}
    others = [item for one in found for item in one.items if _key(item) not in chosen]
    cut = [
        *(_cut(item, "over the limit") for item in others),
        *(_cut(item, "over the token budget") for item in wanted if _key(item) not in written),
    ]
    dropped = [drop._asdict() for one in found for drop in one.dropped]
    return {
        "understood": [_understood(one) for one in found],
        "candidates": [candidate for one in found for candidate in _candidates(one)],
        "gate": [_gate(one) for one in found],
        "dropped": [*dropped, *cut],
        "lines": [{"id": line.item.id, "category": line.category, "tokens": line.cost} for line in lines],
        "sources": {item.id: item.source_events for item in items},
    }


def _key(item: Item) -> tuple[str, str, str]:
    return item.namespace, item.kind, item.id


def _cut(item: Item, reason: str) -> dict[str, Any]:
    return {"id": item.id, "kind": item.kind, "score": round(item.score, 4), "reason": reason}


def _understood(one: SearchResult) -> dict[str, Any]:
    query = one.context.query
    return {
        "namespace": one.context.namespace,
        "question": query.question,
        "text": query.text,
        "keywords": query.words,
        "participants": sorted(query.participant_names),
        "entities": query.entities,
        "phrases": query.phrases,
        "intent": query.intent.intent,
        "cues": asdict(query.intent),
        "time_ranges": [[rfc3339(span.start_us), rfc3339(span.end_us)] for span in query.time_ranges],
        "continued": query.continued,
    }


def _candidates(one: SearchResult) -> list[dict[str, Any]]:
    if one.ranked is None:
        return []
    ranked = one.ranked
    ranks = _ranks(ranked.candidates)
    listed: list[dict[str, Any]] = []
    for place in ranked.order[:_CANDIDATES_MAX]:
        row = int(ranked.candidates.rows[place])
        features = {
            name: round(float(value), 3) for name, value in zip(FEATURES, ranked.matrix[place], strict=True) if value
        }
        listed.append(
            {
                "version": int(one.context.episodes.versions[row]),
                "score": round(float(ranked.scores[place]), 4),
                "ranks": ranks[row],
                "features": features,
            }
        )
    return listed


def _ranks(found: Candidates) -> dict[int, dict[str, int]]:
    ranks: dict[int, dict[str, int]] = {int(row): {} for row in found.rows}
    for name, rows in found.lists.items():
        for rank, row in enumerate(rows, start=1):
            ranks[int(row)][name] = rank
    return ranks


def _gate(one: SearchResult) -> dict[str, Any]:
    if one.ranked is None:
        return {"grounding": round(one.grounding, 4)}
    semantic = one.ranked.signals.semantics is not None
    values = answer_measures(one.ranked, one.context.query)
    return {
        "grounding": round(one.grounding, 4),
        "measures": {name: round(float(value), 4) for name, value in zip(MEASURES, values, strict=True)},
        "weights": load_weights(semantic=semantic).version,
    }
