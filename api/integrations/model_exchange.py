"""Model exchange: what one request to a language model takes from the memory, and what is recorded of it.

`ModelExchanges` decides; the transports in `openai_transport` call the memory, in a thread or on the event loop.
Nothing here raises: a request that cannot be read, or has no namespace, passes through unchanged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import uuid_utils
from msgspec import Struct

from recollect.api.integrations.conversation_scope import running_scope
from recollect.api.integrations.model_request import (
    ModelRequest,
    Placement,
    content_text,
    message_id,
    parse_request,
)
from recollect.api.memory.chat_messages import chat_events
from recollect.api.memory.memory_protocols import Recalled
from recollect.api.retrieval.contract.options import AppendOptions
from recollect.events.errors import InvalidInput, short_text
from recollect.events.limits import check_namespace
from recollect.events.storage.bounded_cache import BoundedCache

_logger = logging.getLogger(__name__)

#: Headers of a request that name its memory; they are not sent on.
NAMESPACE_HEADER = "x-recollect-namespace"
SESSION_HEADER = "x-recollect-session"
#: Contexts that are kept, so that the requests of one turn, such as those after calls of tools, all have the same one.
#: A context has up to 8 kB as a rule.
_CONTEXTS_MAX = 512
#: Conversations that are remembered as those of a bot that sends no history.
_SESSIONS_MAX = 4_096

Event = dict[str, Any]


class ExchangeSettings(Struct, frozen=True, kw_only=True):
    """The settings of a wrapped client."""

    #: Whose memory it is; None: every request says so.
    namespace: str | None
    #: The conversation of requests that name none.
    session: str
    #: The names of the speakers, where messages have none.
    user_name: str | None
    assistant_name: str | None
    placement: Placement
    #: Other fields of `RetrieveRequest`.
    options: AppendOptions


class ModelExchange(Struct, frozen=True, kw_only=True):
    """A request to a language model, and the part of the memory in it."""

    request: ModelRequest
    namespace: str
    session: str
    #: The turn that it belongs to: its last message of the user. Requests of one turn have the same context.
    turn: tuple[str, str, str]
    #: A count that differs between equal requests of a bot that sends no history.
    round: str
    #: What the user newly said.
    events: tuple[Event, ...]
    #: The query of a request without new messages.
    query: str
    #: The options of the retrieval.
    options: AppendOptions


class ModelExchanges:
    """The exchanges of a wrapped client. Safe to use from many threads."""

    def __init__(self, settings: ExchangeSettings) -> None:
        self._settings = settings
        self._contexts: BoundedCache[tuple[str, str, str], str] = BoundedCache(_CONTEXTS_MAX)
        #: Completed rounds of requests without history, by (namespace, session, hash of the request).
        self._rounds: BoundedCache[tuple[str, str, str], int] = BoundedCache(_SESSIONS_MAX)
        self._without_history: BoundedCache[tuple[str, str], bool] = BoundedCache(_SESSIONS_MAX)

    def begin(self, path: str, headers: Mapping[str, str], content: bytes) -> ModelExchange | None:
        """Return the exchange of a request; None for a request that passes through unchanged."""
        scope = running_scope()
        namespace = headers.get(NAMESPACE_HEADER) or scope.namespace or self._settings.namespace
        session = headers.get(SESSION_HEADER) or scope.session or self._settings.session
        try:
            if namespace is None:
                raise InvalidInput(
                    "this request has none; give one to wrap(), or use recollect.conversation()", field="namespace"
                )
            request = parse_request(path, content, session=session)
            name = scope.user_name or self._settings.user_name
            return None if request is None else self._exchange(request, check_namespace(namespace), session, name)
        except Exception as error:
            failed(error)
            return None

    def cached_context(self, exchange: ModelExchange) -> str | None:
        """Return the context of an earlier request of the same turn; None when the memory has to be asked."""
        context = self._contexts.get(exchange.turn)
        # Without a message of the user, as when only results of tools are sent, it is the context of the last turn.
        return context if exchange.turn[2] else context or ""

    def keep(self, exchange: ModelExchange, recalled: Recalled | None) -> str:
        """Keep the context for further requests of the turn, and return it."""
        context = "" if recalled is None else recalled.context
        self._contexts.put(exchange.turn, context)
        self._contexts.put((exchange.namespace, exchange.session, ""), context)
        last = exchange.request.last_user_message
        if exchange.round and last is not None:
            # Further requests of the turn have a history.
            self._contexts.put((exchange.namespace, exchange.session, last.chain), context)
        if not exchange.request.has_history:
            self._without_history.put((exchange.namespace, exchange.session), True)
        return context

    def body(self, exchange: ModelExchange, context: str) -> bytes | None:
        """Return the request's body with the context; None when it stays as it is."""
        return exchange.request.with_context(context, self._settings.placement) if context else None

    def reply_events(self, exchange: ModelExchange, text: str | None) -> list[Event]:
        """Return the event of the reply; none for a reply without text."""
        if text is None:
            return []
        key = (exchange.namespace, exchange.session, exchange.request.chain)
        if not exchange.request.has_history:
            self._rounds.put(key, int(exchange.round or 0) + 1)
        if not text.strip() or self._settings.options.get("no_store"):
            return []
        name = self._settings.assistant_name
        id = message_id(exchange.request.chain, exchange.round, "reply", text, name or "")
        return [_event("assistant", text, name, exchange.session, id)]

    def _exchange(self, request: ModelRequest, namespace: str, session: str, user_name: str | None) -> ModelExchange:
        rounds = 0 if request.has_history else self._rounds.get((namespace, session, request.chain)) or 0
        round = str(rounds or "")
        last = request.last_user_message
        events: list[Event] = []
        for message in request.new_messages:
            name = message.name or user_name
            id = message_id(message.chain, round, name or "")
            events.append(_event("user", message.content, name, session, id))
        # A bot that sends no earlier turns needs those of the running conversation like any other.
        is_alone = not request.has_history and self._without_history.get((namespace, session))
        options = AppendOptions(session_id=None if is_alone else session) | self._settings.options
        turn = f"{last.chain}{round}" if last is not None else ""
        return ModelExchange(
            request=request,
            namespace=namespace,
            session=session,
            turn=(namespace, session, turn),
            round=round,
            events=tuple(events),
            query="" if last is None else content_text(last.content),
            options=options,
        )


def new_session() -> str:
    """Return the name of a conversation."""
    return f"chat-{uuid_utils.uuid7()}"


def failed(error: Exception) -> None:
    """Log that a request goes on without its memory; the log has no text of a message."""
    _logger.warning("a request to the language model goes on without its memory: %s", short_text(error))


def _event(role: str, content: Any, name: str | None, session: str, id: str) -> Event:
    """Return the event of a message; of a content with unknown parts, its text alone is recorded."""
    message = {"role": role, "content": content, "name": name, "id": id}
    try:
        [event] = chat_events([message], session_id=session, occurred_at=None, metadata=None)
    except InvalidInput:
        text = {"content": content_text(content)}
        [event] = chat_events([message | text], session_id=session, occurred_at=None, metadata=None)
    return event
