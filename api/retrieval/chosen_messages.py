"""Chosen messages: the messages that hold the answer of a query, as items, and whether memory has an answer at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.knowledge_search import KnowledgeMatch
from recollect.api.retrieval.ranking.asked_time import limiting_scope
from recollect.api.retrieval.ranking.choice import (
    ANSWER_MIN,
    DOUBTFUL_ANSWER_MIN,
    PASSIVE_ANSWER_MIN,
    Choice,
    enough,
    enough_in_turn,
)
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.ranking.repeated_texts import DistinctEpisodes, distinct_episodes
from recollect.api.retrieval.ranking.search_result import DroppedCandidate
from recollect.api.retrieval.result_items import episode_item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.projections.embeddings.token_codes import Vector


def chosen_messages(
    context: SearchContext, choice: Choice, matches: Sequence[KnowledgeMatch], dropped: list[DroppedCandidate]
) -> list[Item]:
    """Return the messages that hold the answer, best first; those that are not needed are added to `dropped`.

    Parameters:
        matches: knowledge for the query: where it holds the answer, fewer messages are needed.
    """
    request, ranked = context.request, choice.ranked
    distinct = distinct_episodes(context, ranked, 2 * request.limit)
    probabilities = choice.probabilities[distinct.positions]
    if request.gate:
        if _is_turn(context):
            count = enough_in_turn(probabilities, asks_memory=choice.asks_memory)
        else:
            of_facts = _of_stated_facts(context, matches)
            count = enough(_in_addition(context, probabilities, of_facts), of_facts)
        dropped += _not_needed(context, ranked, distinct, probabilities, count)
        distinct, probabilities = distinct.where(np.arange(len(probabilities)) < count), probabilities[:count]
    # In the order of the ranking, whose first message is right as often; so the probabilities belong to the places.
    return episode_items(context, ranked, distinct.by(ranked.scores), probabilities)


def _in_addition(context: SearchContext, probabilities: Vector, of_facts: Sequence[float]) -> Vector:
    """Return how probable it is that each message is needed in addition to facts, one of which may be the value."""
    intent = context.query.intent
    has_parts = intent.overview or intent.list or intent.count
    return probabilities if has_parts or not of_facts else probabilities * np.float32(1 - max(of_facts))


def _of_stated_facts(context: SearchContext, matches: Sequence[KnowledgeMatch]) -> list[float]:
    """Return the probabilities of the facts that a program stated and that are surely shown.

    A fact that was read in a message is left out where the message is shown. By its time or its trust, any may be.
    """
    if limiting_scope(context) is not None or context.request.min_trust:
        return []
    version_of = context.snapshot.episodes.version_of
    facts = (match for match in matches if match.item.kind == "fact" and not match.required)
    return [match.probability for match in facts if all(version_of(id) is None for id in match.item.source_events)]


def _is_turn(context: SearchContext) -> bool:
    """Return whether the query is a message of a conversation, which need not ask for anything."""
    return context.request.mode == "passive"


def _not_needed(
    context: SearchContext, ranked: RankedEpisodes, distinct: DistinctEpisodes, probabilities: Vector, count: int
) -> list[DroppedCandidate]:
    """Return the messages after the first `count` as dropped candidates."""
    versions = context.episodes.versions[ranked.candidates.rows[distinct.candidates[count:]]].tolist()
    reason = "the messages before it are enough"
    ids = context.snapshot.episodes.ids(versions)
    return [
        DroppedCandidate(ids[version], "episode", probability, reason)
        for version, probability in zip(versions, probabilities[count:].tolist(), strict=True)
    ]


def answers(context: SearchContext, choice: Choice, matches: Sequence[KnowledgeMatch]) -> bool:
    """Return whether memory has an answer, in a message or in what is known; for a turn, whether a message helps."""
    given_min = context.settings.gate_answer_min
    if _is_turn(context):
        return choice.answer >= (PASSIVE_ANSWER_MIN if given_min is None else given_min)
    message_min, known_min = ANSWER_MIN, ANSWER_MIN if choice.asks_memory else DOUBTFUL_ANSWER_MIN
    if given_min is not None:
        message_min = known_min = given_min
    probability = max((match.probability for match in matches if not match.required), default=0.0)
    return choice.answer >= message_min or probability >= known_min


def episode_items(
    context: SearchContext, ranked: RankedEpisodes, distinct: DistinctEpisodes, scores: Vector
) -> list[Item]:
    """Return the items of candidates with different texts; `scores` are in the same order."""
    items: list[Item] = []
    rows: list[int] = ranked.candidates.rows[distinct.candidates].tolist()
    versions: list[int] = context.episodes.versions[rows].tolist()
    context.snapshot.episodes.read_details(versions)
    ranks = ranked.candidates.ranks(rows)
    for row, version, older_ids, score in zip(rows, versions, distinct.older_ids, scores.tolist(), strict=True):
        item = episode_item(context, version, score, ranks[row])
        items.append(replace(item, source_events=(*item.source_events, *older_ids)) if older_ids else item)
    return items
