"""Turn: one turn of a conversation, which retrieves before the bot answers and records what both said.

The user's message is appended when the block begins, in the same call that retrieves, so that a bot whose process dies
while its model answers does not lose it. The reply is appended when the block ends without an exception.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, Unpack, cast

import uuid_utils

from recollect.api.memory.chat_messages import chat_events
from recollect.api.memory.memory_protocols import AsyncMemory, Recalled, SyncMemory
from recollect.api.method_hints import MethodHints
from recollect.api.retrieval.contract.options import ConversationOptions
from recollect.events.errors import AccessDenied, Conflict, InvalidInput, TooManyRequests, short_text

_logger = logging.getLogger(__name__)

#: A message of a user: its text, or a message in the form of OpenAI with `role` and `content`.
TurnMessage = str | Mapping[str, Any]


class TurnFields(ConversationOptions, total=False):
    """The parameters of a turn by name; `TurnState` says what each does."""

    user_name: str | None
    assistant_name: str | None
    metadata: Mapping[str, Any] | None
    history: bool
    strict: bool


class TurnState:
    """The state of a turn, and its parameters.

    Parameters:
        namespace: whose memory it is.
        session: the running conversation; None when the bot has no conversations.
        message: what the user says.
        user_name: the name of the user, by which the memory speaks of them.
        assistant_name: the name of the bot.
        metadata: labels of the message and of the reply, by which retrievals can be filtered.
        history: whether the bot sends the last turns of the session to its model, which are not retrieved then.
        strict: raise an error of the memory, such as a full disk or an unreachable server. Without it the error is
            logged and kept in `error`, and the bot answers without a context.
        options: other fields of `RetrieveRequest`, such as ``budget_tokens=1_000``; with ``no_store=True`` nothing is
            recorded.
    """

    def __init__(
        self,
        namespace: str,
        session: str | None,
        message: TurnMessage,
        *,
        user_name: str | None = None,
        assistant_name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        history: bool = True,
        strict: bool = False,
        **options: Unpack[ConversationOptions],
    ) -> None:
        self.namespace = namespace
        self.session = session
        self.message = message
        #: The result of the retrieval; None before the block, and when the memory failed.
        self.retrieval: Recalled | None = None
        #: What was appended: the user's message, then the reply.
        self.recorded: list[Any] = []
        #: The error of the memory that the turn went on after; None when there was none.
        self.error: Exception | None = None
        self._names = (user_name, assistant_name)
        self._metadata = metadata
        self._strict = strict
        self._options = options
        if not history:
            self._options = ConversationOptions(session_id=None) | options
        self._chunks: list[str] = []

    def __repr__(self) -> str:
        """Return the state without texts, since reprs end up in logs."""
        memories = 0 if self.retrieval is None else len(self.retrieval.items)
        failed = "" if self.error is None else f", error={type(self.error).__name__}"
        return (
            f"{type(self).__name__}(namespace={self.namespace!r}, session={self.session!r}, memories={memories}, "
            f"replied={bool(self._chunks)}, recorded={len(self.recorded)}{failed})"
        )

    @property
    def context(self) -> str:
        """The text for the prompt, fenced as data; empty when nothing is remembered, or the memory failed."""
        if self.retrieval is None and self.error is None and not self.recorded:
            raise InvalidInput("begin the turn by `with memory.turn(…) as turn`", field="turn")
        return "" if self.retrieval is None else self.retrieval.context

    @property
    def reply(self) -> str | None:
        """What the bot answers. Assign its text; the last one counts. Without a reply, none is recorded."""
        return "".join(self._chunks) if self._chunks else None

    @reply.setter
    def reply(self, text: str | None) -> None:
        given = cast("object", text)
        if not isinstance(given, str | None):
            raise InvalidInput(
                f"give the text of the reply, such as completion.choices[0].message.content, "
                f"not {type(given).__name__}",
                field="reply",
            )
        self._chunks = [text] if text else []

    def _message_event(self) -> dict[str, Any]:
        """Return the event of the user's message."""
        [event] = chat_events(self.message, session_id=self.session, occurred_at=None, metadata=self._metadata)
        payload = event["payload"]
        if self._names[0] is not None and payload["role"] == "user":
            payload.setdefault("name", self._names[0])
        # An id of its own, so that a client that sends the append again does not record the message twice.
        return event | {"id": event["id"] or str(uuid_utils.uuid7())}

    def _reply_events(self) -> list[dict[str, Any]]:
        """Return the event of the reply; none without a reply, and when nothing is to be stored."""
        if not self._chunks or self._options.get("no_store"):
            return []
        message: dict[str, Any] = {"role": "assistant", "content": self.reply, "id": str(uuid_utils.uuid7())}
        if self._names[1] is not None:
            message["name"] = self._names[1]
        return chat_events([message], session_id=self.session, occurred_at=None, metadata=self._metadata)

    def _begun(self, result: tuple[Sequence[Any], Recalled | None]) -> None:
        recorded, self.retrieval = result
        self.recorded.extend(recorded)

    def _failed(self, error: Exception) -> None:
        """Keep an error of the memory; raise it when the turn is strict, or when the caller's input is at fault."""
        refused = isinstance(error, InvalidInput | Conflict | AccessDenied) and not isinstance(error, TooManyRequests)
        if self._strict or refused:
            raise error
        self.error = error
        _logger.error("a turn goes on without its memory: %s", short_text(error))


class Turn(TurnState):
    """One turn of a conversation: `with memory.turn(...) as turn`. The parameters are those of `TurnState`.

    >>> with Turn(memory, "ann", "s1", "Where did I park?") as turn:
    ...     turn.reply = ask_model(turn.context, turn.message)

    An exception in the block is raised as it is; the user's message stays recorded, a reply is not.
    """

    def __init__(
        self,
        memory: SyncMemory,
        namespace: str,
        session: str | None,
        message: TurnMessage,
        **fields: Unpack[TurnFields],
    ) -> None:
        super().__init__(namespace, session, message, **fields)
        self._memory = memory

    def __enter__(self) -> Self:
        event = self._message_event()
        try:
            self._begun(self._memory.append_and_retrieve(self.namespace, [event], **self._options))
        except Exception as error:
            self._failed(error)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: TracebackType | None) -> None:
        events = self._reply_events() if kind is None else []
        if events:
            try:
                self.recorded.extend(self._memory.append(self.namespace, events))
            except Exception as failure:
                self._failed(failure)

    def stream(self, chunks: Iterable[str]) -> Iterator[str]:
        """Yield the chunks of a reply as they come; the reply is what was yielded until the block ends."""
        self._chunks = []
        for chunk in chunks:
            self._chunks.append(chunk)
            yield chunk


class AsyncTurn(TurnState):
    """One turn of a conversation: `async with memory.turn(...) as turn`; otherwise as `Turn`."""

    def __init__(
        self,
        memory: AsyncMemory,
        namespace: str,
        session: str | None,
        message: TurnMessage,
        **fields: Unpack[TurnFields],
    ) -> None:
        super().__init__(namespace, session, message, **fields)
        self._memory = memory

    async def __aenter__(self) -> Self:
        event = self._message_event()
        try:
            self._begun(await self._memory.append_and_retrieve(self.namespace, [event], **self._options))
        except Exception as error:
            self._failed(error)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, traceback: TracebackType | None) -> None:
        events = self._reply_events() if kind is None else []
        if events:
            try:
                self.recorded.extend(await self._memory.append(self.namespace, events))
            except Exception as failure:
                self._failed(failure)

    async def stream(self, chunks: AsyncIterable[str]) -> AsyncIterator[str]:
        """Yield the chunks of a reply as they come; the reply is what was yielded until the block ends."""
        self._chunks = []
        async for chunk in chunks:
            self._chunks.append(chunk)
            yield chunk


class Turns(MethodHints):
    """The method `turn` of a memory whose methods are called directly."""

    def turn(
        self: SyncMemory,
        namespace: str,
        session: str | None,
        message: TurnMessage,
        *,
        user_name: str | None = None,
        assistant_name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        history: bool = True,
        strict: bool = False,
        **options: Unpack[ConversationOptions],
    ) -> Turn:
        """Return a turn of a conversation, for a `with` block: it retrieves before, and records after.

        >>> with memory.turn("ann", "s1", "Where did I park?") as turn:
        ...     turn.reply = ask_model(turn.context, turn.message)

        The user's message is recorded when the block begins; after an exception in the block it stays, and no reply is
        recorded. Reply in chunks with ``turn.stream(chunks)``.

        Parameters:
            message: the text, or a message in the form of OpenAI.
            metadata: labels of the message and of the reply.
            history: whether the bot itself sends the last turns of the session to its model; they are retrieved like
                any other otherwise.
            strict: raise an error of the memory; otherwise it is logged, `turn.error` has it, and `turn.context` is
                empty.
            options: other fields of `RetrieveRequest`, and ``wait`` of `append_and_retrieve`.

        Raises:
            the errors of `append_and_retrieve`, when the block begins.
        """
        return Turn(
            self,
            namespace,
            session,
            message,
            user_name=user_name,
            assistant_name=assistant_name,
            metadata=metadata,
            history=history,
            strict=strict,
            **options,
        )


class AsyncTurns(MethodHints):
    """The method `turn` of a memory whose methods are awaited."""

    def turn(
        self: AsyncMemory,
        namespace: str,
        session: str | None,
        message: TurnMessage,
        *,
        user_name: str | None = None,
        assistant_name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        history: bool = True,
        strict: bool = False,
        **options: Unpack[ConversationOptions],
    ) -> AsyncTurn:
        """Do what `Recollect.turn` does, for an `async with` block."""
        return AsyncTurn(
            self,
            namespace,
            session,
            message,
            user_name=user_name,
            assistant_name=assistant_name,
            metadata=metadata,
            history=history,
            strict=strict,
            **options,
        )
