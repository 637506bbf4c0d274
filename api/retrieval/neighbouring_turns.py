"""Neighbouring turns: adds what the user said right before and after the best messages of a result, and what ended one.

People spread a thing over several messages, and only one has the words of a question: "the car is in the garage
again", "the timing belt this time". A result that has room brings both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.api.retrieval.result_items import episode_item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.events.late_pattern import late_pattern
from recollect.projections.search_index.episode_arrays import ROLES
from recollect.projections.text.text_flags import is_question
from recollect.projections.text.words import content_words

#: Messages whose neighbours are added, and their lowest probability.
_ANCHORS_MAX = 3
_ANCHOR_MIN = 0.02
#: Neighbours in a result.
_NEIGHBOURS_MAX = 4
#: Turns between a message and its neighbour: the reply of the assistant.
_DISTANCE_MAX = 2
#: Content words that a neighbour has at least; shorter texts have no content by themselves.
_WORDS_MIN = 3
#: Codes and passwords are shown only when they are asked for, never as neighbours.
_SECRET = late_pattern(r"\b(?:pin|codes?|passwords?|passcode|cvv|iban|combination)\b", re.IGNORECASE)
#: The score of a neighbour as a share of that of its message.
_SCORE_SHARE = 0.1


def with_neighbours(
    context: SearchContext, items: Sequence[Item], ranked: RankedEpisodes, dropped_ids: Collection[str]
) -> list[Item]:
    """Return the items, and after them the neighbours of the best messages, at most the limit of the request.

    Parameters:
        dropped_ids: ids of candidates that were left out, such as repetitions of an item.
    """
    count = min(_NEIGHBOURS_MAX, context.request.limit - len(items))
    if count <= 0:
        return [*items]
    # A turn that a summary stands for names the summary; a summary itself has no neighbours.
    turns = [item for item in items if item.kind == "episode" and (item.tier == "raw" or item.summary_id is not None)]
    anchors = [item for item in turns if item.score >= _ANCHOR_MIN]
    present = {id for item in items for id in (item.id, *item.source_events)} | {*dropped_ids}
    added: list[Item] = []
    for anchor in anchors[:_ANCHORS_MAX]:
        for neighbour in _neighbours(context, anchor, ranked):
            if neighbour.id not in present:
                added.append(replace(neighbour, score=min(anchor.score * _SCORE_SHARE, items[-1].score)))
                present.add(neighbour.id)
    added.sort(key=lambda item: -item.score)
    return [*items, *added[:count]]


def with_later(context: SearchContext, items: Sequence[Item], ranked: RankedEpisodes) -> list[Item]:
    """Return the messages, with each one that probably ended or replaced what another says.

    It comes before the other one, unless both were found and the present is not asked for.
    """
    by_id = {item.id: item for item in items}
    shown = {*by_id}
    placed: list[Item] = []
    for item in _newest_first(items, by_id) if context.query.intent.present else items:
        if item.later is not None and item.later.source_event not in shown:
            version = context.snapshot.episodes.version_of(item.later.source_event)
            rows = context.episodes.rows_of(np.array([] if version is None else [version], np.int64))
            placed += [
                episode_item(context, int(context.episodes.versions[row]), item.score, {"neighbour": 1})
                for row in rows[ranked.signals.allowed[rows]].tolist()
            ]
            shown.add(item.later.source_event)
        placed.append(item)
    return placed


def _newest_first(items: Sequence[Item], by_id: Mapping[str, Item]) -> Iterator[Item]:
    """Yield messages, each after those that ended or replaced what it says, which get its score."""
    yielded = set[str]()
    for item in items:
        chain, last = {item.id: item}, item
        while last.later is not None and (later := by_id.get(last.later.source_event)) is not None:
            if later.id in chain or later.id in yielded:
                break
            chain[later.id] = last = replace(later, score=item.score)
        for message in reversed(chain.values()):
            if message.id not in yielded:
                yielded.add(message.id)
                yield message


def _neighbours(context: SearchContext, anchor: Item, ranked: RankedEpisodes) -> Iterator[Item]:
    """Yield what the user said next and before in the session of a message of a user."""
    rows = context.episodes.rows_of(np.array(context.snapshot.episodes.versions_of([anchor.id]), np.int64))
    for row in rows[context.episodes.roles[rows] == ROLES["user"]].tolist():
        for step in (1, -1):
            neighbour = _statement_row(context, ranked, row, step)
            if neighbour is not None:
                yield episode_item(context, int(context.episodes.versions[neighbour]), 0.0, {"neighbour": 1})


def _statement_row(context: SearchContext, ranked: RankedEpisodes, row: int, step: int) -> int | None:
    """Return the row of the nearest statement of a user in the direction of `step`; None when there is none."""
    episodes = context.episodes
    for distance in range(1, _DISTANCE_MAX + 1):
        other = row + step * distance
        if not 0 <= other < len(episodes) or episodes.sessions[other] != episodes.sessions[row]:
            return None
        if episodes.roles[other] == ROLES["user"] and episodes.raw[other] and ranked.signals.allowed[other]:
            version = int(episodes.versions[other])
            text = context.snapshot.episodes.details(version).text
            says_something = len(content_words(text)) >= _WORDS_MIN and not is_question(text)
            return other if says_something and _SECRET.search(text) is None else None
    return None
