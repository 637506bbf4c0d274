"""What belongs to the next turn of a running conversation, beside what its message asks for (`000` triggers, `002`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.knowledge_search import profile_items
from recollect.api.retrieval.namespace_search import episode_item, known_item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.projections.embeddings.token_codes import Vector

#: What a retrieval is for; the first of them that applies, in this order.
Trigger = Literal["asked", "session start", "window full", "remember", "entity mention", "topic change", "message"]

#: Turns of the running conversation that the model has before its eyes.
_VISIBLE_TURNS = 20
#: Turns whose meaning is the topic, and the cosine under which another one has begun (`000`).
_TOPIC_TURNS = 3
_TOPIC_COSINE_MIN = 0.3
#: The share of the window that makes it full (`000`).
_WINDOW_FULL = 0.75
#: Newest memories that come along for continuity (`002`), and newest episodes at the start of a session.
_RECENT_MEMORIES = 10
_RECENT_EPISODES = 5


@dataclass(frozen=True, slots=True)
class ConversationState:
    """Where the running conversation stands."""

    trigger: Trigger
    #: Versions of the turns that the model has before its eyes.
    visible: tuple[int, ...]
    #: Short lines about the conversation so far.
    observations: tuple[str, ...]


def conversation_state(
    context: SearchContext, message: Vector | None, exclude: Collection[str] = ()
) -> ConversationState:
    """Return where the conversation of `asked` stands.

    Parameters:
        message: the vector of what was just said, if there is one.
        exclude: ids of episodes that do not count yet: what was just said itself.
    """
    session = context.request.session_id
    turns = _turns(context, session, exclude) if session is not None else []
    observed = context.snapshot.sessions.observations(session) if session is not None else []
    visible = (*turns, *context.snapshot.episodes.versions_of(exclude))
    return ConversationState(_trigger(context, turns, message), visible, tuple(row.text for row in observed))


def standing_items(context: SearchContext, where: ConversationState) -> list[Item]:
    """Return what every turn is given: the profile, the newest memories, and at first the last episodes."""
    kinds = context.request.kinds
    items = [
        known_item(context, known, 1.0, {"profile": 1})
        for known in profile_items(context.index.knowledge, context.asked_at_us)
    ]
    names = {item.id for item in items}
    newest = sorted(context.index.knowledge.items, key=lambda known: (-known.occurred_at_us, known.id))
    recent = [
        known
        for known in newest
        if known.kind in ("fact", "preference") and known.id not in names and known.is_valid_at(context.asked_at_us)
    ]
    ranked = enumerate(recent[:_RECENT_MEMORIES], start=1)
    items += [known_item(context, known, 0.5, {"recent": rank}) for rank, known in ranked]
    if where.trigger == "session start":
        roster = context.episodes
        outside = ~np.isin(roster.versions, where.visible)
        newest_first = roster.versions[outside][::-1][:_RECENT_EPISODES]
        for rank, version in enumerate(newest_first, start=1):
            items.append(episode_item(context, int(version), 0.5, {"recent": rank}))
    return [
        item
        for item in items
        if (kinds is None or item.kind in kinds) and context.request.includes(item.occurred_at_us)
    ]


def _trigger(context: SearchContext, turns: list[int], message: Vector | None) -> Trigger:
    request = context.request
    if not turns or request.session_id is None:
        return "session start"
    if request.window_tokens is not None:
        # The turns that the window of the session is fitted to: those that no summary stands for yet.
        tokens = context.snapshot.episodes.session_tokens(request.session_id)
        if tokens > _WINDOW_FULL * request.window_tokens:
            return "window full"
    if context.query.intent.remember:
        return "remember"
    if context.query.entities:
        return "entity mention"
    return "topic change" if message is not None and _is_new_topic(context, turns, message) else "message"


def _is_new_topic(context: SearchContext, turns: list[int], message: Vector) -> bool:
    if len(turns) < 2 or context.query.continued or context.query.intent.small_talk:
        return False
    last = turns[-_TOPIC_TURNS:]
    try:
        vectors = context.vectors.vectors_of_episodes(context.namespace, context.snapshot, last)
    except Exception:
        # The search itself says what is wrong with the vectors.
        return False
    if not vectors:
        return False
    topic = np.mean(list(vectors.values()), axis=0)
    return float(message @ topic / max(float(np.linalg.norm(topic)), 1e-9)) < _TOPIC_COSINE_MIN


def _turns(context: SearchContext, session: str, exclude: Collection[str]) -> list[int]:
    """Return the versions of the last turns of the session, oldest first."""
    turns = context.snapshot.episodes.last_versions(session, limit=_VISIBLE_TURNS)
    return [version for version, id in turns if id not in exclude]
