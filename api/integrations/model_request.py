"""Model request: reads a request to a language model in OpenAI's protocols, and adds a context to it.

A bot sends the whole conversation with every request. New are the messages after the last one of the assistant; all
before it were recorded by earlier requests, or are examples of the prompt. The id of a message is a hash of the
conversation up to it, so the same request, sent again after a failure, records nothing twice, in any process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, cast

import orjson
from msgspec import Struct

#: Where the context goes: a system message before the last message of the user, which leaves all that precedes it to
#: the provider's prompt cache; or the end of the first system message, for models that accept no other.
Placement = Literal["before_last_message", "system"]

#: Roles of messages that the bot's program writes.
_PROGRAM_ROLES = frozenset(("system", "developer"))
#: Types of items of the Responses API that the model itself wrote.
_MODEL_ITEMS = frozenset(("function_call", "reasoning", "computer_call", "custom_tool_call", "mcp_call"))
_TEXT_PARTS = frozenset(("text", "input_text", "output_text"))
#: Hexadecimal digits of an event id; 128 bits.
_ID_DIGITS = 32

JsonObject = dict[str, Any]


class RequestMessage(Struct, frozen=True, kw_only=True):
    """A message of a request."""

    #: Its place in the list of the request.
    index: int
    #: user, assistant, tool or program.
    role: Literal["user", "assistant", "tool", "program"]
    #: The content as it is in the request: text or parts.
    content: Any
    #: The speaker's name, where the request gives it.
    name: str | None
    #: Hash of the conversation up to this message, without messages of the program.
    chain: str


class ModelRequest(Struct, frozen=True, kw_only=True):
    """A request to a language model."""

    #: The parsed body.
    body: JsonObject
    #: Whether it is one of the Responses API, not of chat completions.
    is_responses: bool
    #: Its messages, oldest first.
    messages: tuple[RequestMessage, ...]

    @property
    def new_messages(self) -> tuple[RequestMessage, ...]:
        """The messages of the user after the last one of the assistant.

        A message of the assistant at the end is the beginning of the reply, which the model continues.
        """
        new: list[RequestMessage] = []
        for message in reversed(self.messages):
            if message.role == "user":
                new.append(message)
            elif message.role == "tool" or (message.role == "assistant" and new):
                # Results of tools answer calls of the assistant.
                break
        return tuple(reversed(new))

    @property
    def last_user_message(self) -> RequestMessage | None:
        """The message that the model answers; None without one."""
        return next((message for message in reversed(self.messages) if message.role == "user"), None)

    @property
    def has_history(self) -> bool:
        """Whether the model sees earlier turns, in the request or on its server."""
        return self.is_continued or any(message.role == "assistant" for message in self.messages)

    @property
    def is_continued(self) -> bool:
        """Whether the provider's server keeps the earlier turns."""
        return bool(self.body.get("previous_response_id") or self.body.get("conversation"))

    @property
    def chain(self) -> str:
        """Hash of the whole conversation."""
        spoken = [message.chain for message in self.messages if message.role != "program"]
        return spoken[-1] if spoken else ""

    def with_context(self, context: str, placement: Placement) -> bytes:
        """Return the body with a context for the model."""
        last = self.last_user_message
        late = placement == "before_last_message" and last is not None
        if not self.is_responses:
            messages = cast(list[Any], self.body["messages"])
            place = _inserted if late and last is not None else _appended_to_system
            return orjson.dumps(self.body | {"messages": place(messages, context, 0 if last is None else last.index)})
        # A server that keeps the conversation would keep the context of every turn with it, but keeps no instructions.
        if late and last is not None and self.has_history and not self.is_continued:
            items = cast(list[Any], self.body["input"])
            return orjson.dumps(self.body | {"input": _inserted(items, context, last.index)})
        return orjson.dumps(self.body | {"instructions": _joined(self.body.get("instructions"), context)})


def parse_request(path: str, content: bytes, *, session: str) -> ModelRequest | None:
    """Return a request to the model; None for other requests, and for one whose messages cannot be read.

    Parameters:
        path: the path of its address.
        session: the conversation, with which the hashes begin.
    """
    is_responses = path.endswith("/responses")
    if not is_responses and not path.endswith("/chat/completions"):
        return None
    try:
        body: Any = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(body, dict):
        return None
    fields = cast(JsonObject, body)
    items: Any = fields.get("input" if is_responses else "messages")
    if is_responses and isinstance(items, str):
        items = [{"role": "user", "content": items}]
    if not isinstance(items, list):
        return None
    start = [session, fields.get("previous_response_id"), fields.get("conversation")]
    return ModelRequest(body=fields, is_responses=is_responses, messages=_messages(cast(list[Any], items), start))


def message_id(*parts: str) -> str:
    """Return the event id of a message, from its chain and its content."""
    return f"chat:{sha256(orjson.dumps(parts)).hexdigest()[:_ID_DIGITS]}"


def content_text(content: object) -> str:
    """Return the text of a message's content: text, or the texts of its parts."""
    if isinstance(content, str):
        return content
    parts = cast(list[Any], content) if isinstance(content, list) else []
    texts = (cast(Mapping[str, Any], part) for part in parts if isinstance(part, Mapping))
    return "\n".join(str(part.get("text") or "") for part in texts if part.get("type") in _TEXT_PARTS)


def _messages(items: Sequence[Any], start: object) -> tuple[RequestMessage, ...]:
    """Return the messages of a list, each with the hash of the conversation up to it."""
    messages: list[RequestMessage] = []
    chain = sha256(orjson.dumps(start)).hexdigest()
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            continue
        fields = cast(Mapping[str, Any], item)
        role = _role(fields)
        content = fields.get("content")
        if role != "program":
            link = [chain, role, content, fields.get("tool_calls"), fields.get("call_id")]
            chain = sha256(orjson.dumps(link)).hexdigest()
        name = fields.get("name")
        messages.append(
            RequestMessage(
                index=index,
                role=role,
                content=content,
                name=name if isinstance(name, str) and name else None,
                chain=chain,
            )
        )
    return tuple(messages)


def _role(fields: Mapping[str, Any]) -> Literal["user", "assistant", "tool", "program"]:
    """Return who wrote an item."""
    role, kind = fields.get("role"), fields.get("type")
    if role in _PROGRAM_ROLES:
        return "program"
    if role == "assistant" or kind in _MODEL_ITEMS:
        return "assistant"
    return "user" if role == "user" else "tool"


def _inserted(messages: Sequence[Any], context: str, index: int) -> list[Any]:
    """Return messages with a system message before `index`."""
    return [*messages[:index], {"role": "system", "content": context}, *messages[index:]]


def _appended_to_system(messages: Sequence[Any], context: str, _: int) -> list[Any]:
    """Return messages with the context at the end of the first system message, or as the first one."""
    for index, message in enumerate(messages):
        if isinstance(message, Mapping) and cast(Mapping[str, Any], message).get("role") in _PROGRAM_ROLES:
            fields = cast(Mapping[str, Any], message)
            content = fields.get("content")
            joined = (
                [*cast(list[Any], content), {"type": "text", "text": context}]
                if isinstance(content, list)
                else _joined(content, context)
            )
            return [*messages[:index], {**fields, "content": joined}, *messages[index + 1 :]]
    return [{"role": "system", "content": context}, *messages]


def _joined(text: object, context: str) -> str:
    """Return the context after a text."""
    return f"{text}\n\n{context}" if isinstance(text, str) and text else context
