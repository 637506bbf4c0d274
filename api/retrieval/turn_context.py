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


@dataclass(frozen=True, slots=True)
class ConversationState:
    """The state of a running conversation."""

    trigger: Trigger
    #: Versions of the turns that the prompt holds already.
    visible: tuple[int, ...]
    #: Observations of the conversation: short lines about its earlier part.
    observations: tuple[str, ...]


def conversation_state(
    context: SearchContext,
    message_vector: Vector | None,
    exclude: Collection[str] = (),
    *,
    window_full_share: float,
) -> ConversationState:
    """Return the state of the conversation that the request names.

    Parameters:
        message_vector: the vector of the new message, shape (dimensions,); None without vectors.
        exclude: ids of episodes that are not part of the conversation yet, such as the new message.
        window_full_share: the share of the context window from which it counts as full.
    """
    session = context.request.session_id
    turns = _last_turns(context, session, exclude) if session is not None else []
    observations = context.snapshot.sessions.observations(session) if session is not None else []
    visible = (*turns, *context.snapshot.episodes.versions_of(exclude))
    trigger = _trigger(context, turns, message_vector, window_full_share)
    return ConversationState(trigger, visible, tuple(row.text for row in observations))


def standing_items(context: SearchContext, state: ConversationState) -> list[Item]:
    """Return the items of every turn: the profile, the newest knowledge and, in a new session, the newest episodes."""
    kinds = context.request.kinds
    items = [
        knowledge_item(context, item, 1.0, {"profile": 1})
        for item in profile_items(context.index.knowledge, context.asked_at_us, context.settings.profile_confidence_min)
    ]
    profile_ids = {item.id for item in items}
    newest_knowledge = sorted(context.index.knowledge.items, key=lambda item: (-item.occurred_at_us, item.id))
    recent = [
        item
        for item in newest_knowledge
        if item.kind in ("fact", "preference") and item.id not in profile_ids and item.is_valid_at(context.asked_at_us)
    ]
    ranked = enumerate(recent[: context.settings.recent_memories_max], start=1)
    items += [knowledge_item(context, item, 0.5, {"recent": rank}) for rank, item in ranked]
    if state.trigger == "session start":
        episodes = context.episodes
        not_visible = ~np.isin(episodes.versions, state.visible)
        newest_first = episodes.versions[not_visible][::-1][: context.settings.recent_episodes_max]
        for rank, version in enumerate(newest_first, start=1):
            items.append(episode_item(context, int(version), 0.5, {"recent": rank}))
    return [
        item
        for item in items
        if (kinds is None or item.kind in kinds) and context.request.includes(item.occurred_at_us)
    ]


def _trigger(
    context: SearchContext, turns: list[int], message_vector: Vector | None, window_full_share: float
) -> Trigger:
    """Return the first trigger that applies."""
    request = context.request
    if not turns or request.session_id is None:
        return "session start"
    if request.window_tokens is not None:
        # The tokens of the session's turns that no summary replaces yet.
        tokens = context.snapshot.episodes.session_tokens(request.session_id)
        if tokens > window_full_share * request.window_tokens:
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
    last_turns = turns[-context.settings.topic_turns :]
    try:
        vectors = context.vectors.vectors_of_episodes(context.namespace, context.snapshot, last_turns)
    except Exception:
        # The vector search records the error.
        return False
    if not vectors:
        return False
    topic = np.mean(list(vectors.values()), axis=0)
    return float(message_vector @ topic / max(float(np.linalg.norm(topic)), 1e-9)) < context.settings.topic_cosine_min


def _last_turns(context: SearchContext, session: str, exclude: Collection[str]) -> list[int]:
    """Return the versions of the last turns of the session, oldest first."""
    turns = context.snapshot.episodes.last_versions(session, limit=_VISIBLE_TURNS)
    return [version for version, id in turns if id not in exclude]
