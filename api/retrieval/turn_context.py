"""Turn context: the state of a running conversation and the items that every turn gets (`000` triggers, `002`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.knowledge_search import profile_items
from recollect.api.retrieval.namespace_search import episode_item, knowledge_item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.projections.embeddings.token_codes import Vector

#: The reason of a retrieval; of several that apply, the first in this order.
Trigger = Literal["asked", "session start", "window full", "remember", "entity mention", "topic change", "message"]

#: The latest turns of the conversation, which the prompt is assumed to hold already.
_VISIBLE_TURNS = 20
#: Turns whose mean vector is the topic, and the cosine with it under which a message begins a new topic (`000`).
_TOPIC_TURNS = 3
_TOPIC_COSINE_MIN = 0.3
#: The share of the context window from which on it counts as full (`000`).
_WINDOW_FULL_SHARE = 0.75
#: The newest facts and preferences of every turn (`002`), and the newest episodes at the start of a session.
_RECENT_MEMORIES_MAX = 10
_RECENT_EPISODES_MAX = 5
#: Pinned episodes in the profile, newest first.
_PINNED_EPISODES_MAX = 10


@dataclass(frozen=True, slots=True)
class ConversationState:
    """The state of a running conversation."""

    trigger: Trigger
    #: Versions of the turns that the prompt holds already.
    visible: tuple[int, ...]
    #: Observations of the conversation: short lines about its earlier part.
    observations: tuple[str, ...]


def conversation_state(
    context: SearchContext, message_vector: Vector | None, exclude: Collection[str] = ()
) -> ConversationState:
    """Return the state of the conversation that the request names.

    Parameters:
        message_vector: the vector of the new message, shape (dimensions,); None without vectors.
        exclude: ids of episodes that are not part of the conversation yet, such as the new message.
    """
    session = context.request.session_id
    turns = _last_turns(context, session, exclude) if session is not None else []
    observations = context.snapshot.sessions.observations(session) if session is not None else []
    visible = (*turns, *context.snapshot.episodes.versions_of(exclude))
    return ConversationState(_trigger(context, turns, message_vector), visible, tuple(row.text for row in observations))


def standing_items(context: SearchContext, state: ConversationState) -> list[Item]:
    """Return the items of every turn: the profile, the newest knowledge and, in a new session, the newest episodes."""
    kinds = context.request.kinds
    items = [
        knowledge_item(context, item, 1.0, {"profile": 1})
        for item in profile_items(context.index.knowledge, context.asked_at_us)
    ]
    if kinds is None or "episode" in kinds:
        pinned = context.snapshot.episodes.pinned_versions(context.snapshot.version, limit=_PINNED_EPISODES_MAX)
        items += [
            episode_item(context, version, 1.0, {"profile": 1}) for version in pinned if version not in state.visible
        ]
    profile_ids = {item.id for item in items}
    newest_knowledge = sorted(context.index.knowledge.items, key=lambda item: (-item.occurred_at_us, item.id))
    recent = [
        item
        for item in newest_knowledge
        if item.kind in ("fact", "preference") and item.id not in profile_ids and item.is_valid_at(context.asked_at_us)
    ]
    ranked = enumerate(recent[:_RECENT_MEMORIES_MAX], start=1)
    items += [knowledge_item(context, item, 0.5, {"recent": rank}) for rank, item in ranked]
    if state.trigger == "session start":
        episodes = context.episodes
        not_visible = ~np.isin(episodes.versions, state.visible)
        newest_first = episodes.versions[not_visible][::-1][:_RECENT_EPISODES_MAX]
        for rank, version in enumerate(newest_first, start=1):
            items.append(episode_item(context, int(version), 0.5, {"recent": rank}))
    return [
        item
        for item in items
        if (kinds is None or item.kind in kinds) and context.request.includes(item.occurred_at_us)
    ]


def _trigger(context: SearchContext, turns: list[int], message_vector: Vector | None) -> Trigger:
    """Return the first trigger that applies."""
    request = context.request
    if not turns or request.session_id is None:
        return "session start"
    if request.window_tokens is not None:
        # The tokens of the session's turns that no summary replaces yet.
        tokens = context.snapshot.episodes.session_tokens(request.session_id)
        if tokens > _WINDOW_FULL_SHARE * request.window_tokens:
            return "window full"
    if context.query.intent.remember:
        return "remember"
    if context.query.entities:
        return "entity mention"
    return "topic change" if message_vector is not None and _is_new_topic(context, turns, message_vector) else "message"


def _is_new_topic(context: SearchContext, turns: list[int], message_vector: Vector) -> bool:
    """Return whether the message is far from the topic of the last turns."""
    if len(turns) < 2 or context.query.continued or context.query.intent.small_talk:
        return False
    last_turns = turns[-_TOPIC_TURNS:]
    try:
        vectors = context.vectors.vectors_of_episodes(context.namespace, context.snapshot, last_turns)
    except Exception:
        # The vector search records the error.
        return False
    if not vectors:
        return False
    topic = np.mean(list(vectors.values()), axis=0)
    return float(message_vector @ topic / max(float(np.linalg.norm(topic)), 1e-9)) < _TOPIC_COSINE_MIN


def _last_turns(context: SearchContext, session: str, exclude: Collection[str]) -> list[int]:
    """Return the versions of the last turns of the session, oldest first."""
    turns = context.snapshot.episodes.last_versions(session, limit=_VISIBLE_TURNS)
    return [version for version, id in turns if id not in exclude]
