"""Turn context: the state of a running conversation: trigger, visible turns and observations (`000`, `002`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Literal

from msgspec import Struct

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.api.retrieval.understanding.fillers import addressed_names, is_acknowledgement, is_greeting
from recollect.events.late_pattern import late_pattern
from recollect.jobs.conversation.topics import topic_changed
from recollect.jobs.job_settings import WINDOW_FULL_SHARE
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.text.words import WORD, content_words

#: The reason of a retrieval; of several that apply, the first in this order.
Trigger = Literal["asked", "session start", "window full", "remember", "entity mention", "topic change", "message"]

#: The latest turns of the conversation, which the prompt is assumed to hold already.
_VISIBLE_TURNS = 20
#: The factor by which "remember when …" raises the limits, and by which a full window lowers the token budget.
_ADJUSTMENT_FACTOR = 2
#: Content words of a message that begins a new topic, at least; a shorter one, such as "and how long does it ferment?",
#: continues a topic.
_TOPIC_WORDS_MIN = 4
_CONTINUES = late_pattern(
    r"^\W*(?:and|but|or|so|also|then|because|what about|how about|which one|the (?:first|second|last) one)\b", re.I
)
_NEW_TOPIC = late_pattern(
    r"^\W*(?:(?:other|another|different|new|next) (?:topic|question|subject|thing)|by the way|btw|something else|"
    r"on another note|changing the subject)\b",
    re.I,
)


class ConversationState(Struct, frozen=True):
    """The state of a running conversation."""

    trigger: Trigger
    #: Versions of the turns that the prompt holds already.
    visible: tuple[int, ...]
    #: Observations of the conversation: short lines about its earlier part.
    observations: tuple[str, ...]
    #: The channel of the conversation, such as telegram; None: not recorded.
    channel: str | None = None
    #: Whether the trigger is a topic change that vectors show, not words.
    by_vector: bool = False
    #: The entities of the message that memory knows from before the visible turns.
    entities: tuple[int, ...] = ()
    #: Whether the message, such as `ok, thanks!`, needs no memory at all.
    silent: bool = False
    #: Whether the message is only a greeting.
    greets: bool = False


def conversation_state(
    context: SearchContext,
    message_vector: Vector | None,
    exclude: Collection[str] = (),
) -> ConversationState:
    """Return the state of the conversation that the request names.

    Parameters:
        message_vector: the vector of the new message, shape (dimensions,); None without vectors.
        exclude: ids of episodes that are not part of the conversation yet, such as the new message.
    """
    session = context.request.session_id
    sessions = context.snapshot.sessions
    turns = _last_turns(context, session, exclude) if session is not None else []
    # Observations are about several messages, so they are left out together with one that is hidden.
    is_shown = session is not None and session not in context.hidden.sessions
    observations = sessions.observations(session) if session is not None and is_shown else []
    text = context.request.query
    names = addressed_names(text) & _participant_names(context)
    visible = (*turns, *context.snapshot.episodes.versions_of(exclude))
    entities = _entities_before(context, visible)
    # A message without content is searched with the last turns; their names are not its own.
    trigger = _trigger(context, turns, mentions_entity=bool(entities) and not context.query.continued)
    by_vector = trigger == "message" and _begins_topic(context, turns, message_vector)
    if by_vector:
        trigger = "topic change"
    greets = is_greeting(text, names)
    return ConversationState(
        trigger,
        visible,
        tuple(row.text for row in observations),
        channel=None if session is None else sessions.channel(session),
        by_vector=by_vector,
        entities=entities,
        silent=is_acknowledgement(text, names) or (greets and trigger != "session start"),
        greets=greets,
    )


def adjusted_request(request: RetrieveRequest, state: ConversationState) -> RetrieveRequest:
    """Return the request of a passive retrieval: higher limits to remember, fewer tokens when the window is full."""
    if state.trigger == "remember":
        update = {
            "limit": min(100, _ADJUSTMENT_FACTOR * request.limit),
            "budget_tokens": min(100_000, _ADJUSTMENT_FACTOR * request.budget_tokens),
        }
        return request.model_copy(update=update)
    if state.trigger == "window full":
        return request.model_copy(update={"budget_tokens": request.budget_tokens // _ADJUSTMENT_FACTOR})
    return request


def _participant_names(context: SearchContext) -> set[str]:
    """Return the words of the participants' names, case-folded."""
    return {word for name, _ in context.snapshot.entities.participants() for word in WORD.findall(name)}


def _trigger(context: SearchContext, turns: Sequence[int], *, mentions_entity: bool) -> Trigger:
    """Return the first trigger that applies, without comparing vectors."""
    request = context.request
    if not turns or request.session_id is None:
        return "session start"
    if request.window_tokens is not None:
        # The tokens of the session's turns that no summary replaces yet.
        tokens = context.snapshot.episodes.session_tokens(request.session_id)
        if tokens > WINDOW_FULL_SHARE * request.window_tokens:
            return "window full"
    if context.query.intent.remember:
        return "remember"
    if mentions_entity:
        return "entity mention"
    return "topic change" if _NEW_TOPIC.match(request.query) else "message"


def _entities_before(context: SearchContext, visible: Sequence[int]) -> tuple[int, ...]:
    """Return the entities of the query that memory knows from before the visible turns and the message."""
    entities = context.query.entities
    if not entities or not visible:
        return entities
    described = {entity for item in context.index.knowledge.items if item.kind == "entity" for entity in item.entities}
    named_before = described | context.snapshot.entities.named_before(entities, min(visible))
    return tuple(entity for entity in entities if entity in named_before)


def _begins_topic(context: SearchContext, turns: Sequence[int], message_vector: Vector | None) -> bool:
    """Return whether the message begins another topic than that of the last turns, by its vector."""
    text = context.request.query
    is_short = len(content_words(text)) < _TOPIC_WORDS_MIN
    if message_vector is None or len(turns) < 2 or context.query.continued or is_short or _CONTINUES.match(text):
        return False
    try:
        vectors = context.vectors.vectors_of_episodes(context.namespace, context.snapshot, turns)
    except Exception:
        # The vector search records the error.
        return False
    before = [vectors[version] for version in turns if version in vectors]
    return len(before) > 1 and topic_changed([*before, message_vector])


def _last_turns(context: SearchContext, session: str, exclude: Collection[str]) -> list[int]:
    """Return the versions of the last turns of the session, oldest first."""
    turns = context.snapshot.episodes.last_versions(session, limit=_VISIBLE_TURNS)
    return [version for version, id in turns if id not in exclude]
