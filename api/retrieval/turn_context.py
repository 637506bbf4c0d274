"""What belongs to the next turn of a running conversation, beside what its message asks for (`000` triggers, `002`)."""

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

#: What a retrieval is for; the first of them that applies, in this order.
Trigger = Literal["asked", "session start", "window full", "remember", "entity mention", "topic change", "message"]

#: Turns of the running conversation that the model has before its eyes.
_VISIBLE_TURNS = 20
#: Turns whose meaning is the topic, and the cosine under which another one has begun (`000`).
_TOPIC_TURNS = 3
_TOPIC_COSINE_MIN = 0.3
#: The share of the window that makes it full (`000`).
_WINDOW_FULL_SHARE = 0.75
#: Newest memories that come along for continuity (`002`), and newest episodes at the start of a session.
_RECENT_MEMORIES_MAX = 10
_RECENT_EPISODES_MAX = 5


@dataclass(frozen=True, slots=True)
class ConversationState:
    """Where the running conversation stands."""

    trigger: Trigger
    #: Versions of the turns that the model has before its eyes.
    visible: tuple[int, ...]
    #: Short lines about the conversation so far.
    observations: tuple[str, ...]


def conversation_state(
    context: SearchContext, message_vector: Vector | None, exclude: Collection[str] = ()
) -> ConversationState:
    """Return where the conversation of `asked` stands.

    Parameters:
        message: the vector of what was just said, if there is one.
        exclude: ids of episodes that do not count yet: what was just said itself.
    """
    session = context.request.session_id
    turns = _last_turns(context, session, exclude) if session is not None else []
    observations = context.snapshot.sessions.observations(session) if session is not None else []
    visible = (*turns, *context.snapshot.episodes.versions_of(exclude))
    return ConversationState(_trigger(context, turns, message_vector), visible, tuple(row.text for row in observations))


def standing_items(context: SearchContext, state: ConversationState) -> list[Item]:
    """Return what every turn is given: the profile, the newest memories, and at first the last episodes."""
    kinds = context.request.kinds
    items = [
        knowledge_item(context, item, 1.0, {"profile": 1})
        for item in profile_items(context.index.knowledge, context.asked_at_us)
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
    request = context.request
    if not turns or request.session_id is None:
        return "session start"
    if request.window_tokens is not None:
        # The turns that the window of the session is fitted to: those that no summary stands for yet.
        tokens = context.snapshot.episodes.session_tokens(request.session_id)
        if tokens > _WINDOW_FULL_SHARE * request.window_tokens:
            return "window full"
    if context.query.intent.remember:
        return "remember"
    if context.query.entities:
        return "entity mention"
    return "topic change" if message_vector is not None and _is_new_topic(context, turns, message_vector) else "message"


def _is_new_topic(context: SearchContext, turns: list[int], message_vector: Vector) -> bool:
    if len(turns) < 2 or context.query.continued or context.query.intent.small_talk:
        return False
    last_turns = turns[-_TOPIC_TURNS:]
    try:
        vectors = context.vectors.vectors_of_episodes(context.namespace, context.snapshot, last_turns)
    except Exception:
        # The search itself says what is wrong with the vectors.
        return False
    if not vectors:
        return False
    topic = np.mean(list(vectors.values()), axis=0)
    return float(message_vector @ topic / max(float(np.linalg.norm(topic)), 1e-9)) < _TOPIC_COSINE_MIN


def _last_turns(context: SearchContext, session: str, exclude: Collection[str]) -> list[int]:
    """Return the versions of the last turns of the session, oldest first."""
    turns = context.snapshot.episodes.last_versions(session, limit=_VISIBLE_TURNS)
    return [version for version, id in turns if id not in exclude]
