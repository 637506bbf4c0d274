"""Chat messages: converts messages in the form of OpenAI and mem0, `{"role", "content"}`, to events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from recollect.events.catalogue import Metadata, Moment, Name
from recollect.events.errors import InvalidInput
from recollect.events.field_problems import first_problem

#: A message, its text alone, or a conversation.
ChatInput = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]

#: Roles of other interfaces with the same meaning.
_ROLES = {"developer": "system", "human": "user", "ai": "assistant"}
#: Roles whose messages name their tool in `name` or in the call that they answer.
_TOOL_ROLES = frozenset(("tool", "function"))
#: The types of parts of `content` that are text, with the field of the text.
_TEXT_PARTS = frozenset(("text", "input_text", "output_text"))
#: The media type of attached parts of `content`, by type.
_ATTACHED_PARTS = {
    "image_url": "image/*",
    "input_image": "image/*",
    "input_audio": "audio/*",
    "file": "application/octet-stream",
    "input_file": "application/octet-stream",
}


def _listed(messages: object) -> object:
    """Return messages as a list: a text is a message by a user, and one message a list of one."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        return [cast(Mapping[str, Any], messages)]
    if isinstance(messages, Sequence) and not isinstance(messages, bytes):
        return list(cast(Sequence[object], messages))
    raise ValueError('give a text, or a list of messages: [{"role": "user", "content": "…"}]')


def _text_or_parts(content: object) -> object:
    """Refuse a content of another type, with an error that is not that of each allowed type."""
    if content is None or isinstance(content, str | list):
        return cast(object, content)
    raise ValueError('give text, or a list of parts such as {"type": "text", "text": "…"}')


class ChatMessage(BaseModel):
    """A message of a chat, with the fields of OpenAI, and those of the event that it becomes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: `user`, `assistant`, `system` (or `developer`), or `tool` (or `tool:<name>`).
    role: Name
    #: The text, or a list of parts such as `{"type": "text", "text": "…"}` and `{"type": "image_url", …}`.
    content: Annotated[str | list[dict[str, JsonValue]] | None, BeforeValidator(_text_or_parts)] = None
    #: The speaker's name; of a tool the tool's.
    name: Name | None = None
    #: The idempotency key: the same id with the same content is recorded once; generated when absent.
    id: Name | None = None
    #: When it was sent; that of the call when absent.
    occurred_at: Moment | None = None
    #: Labels, added to those of the call.
    metadata: Metadata = {}
    #: The people who must not be shown the message when they ask, as in `message.added`.
    not_for: Annotated[tuple[Name, ...], Field(max_length=20)] | None = None
    #: The calls of tools that an assistant asks for; recorded as `data` of the message.
    tool_calls: list[JsonValue] | None = None
    #: The call that a tool answers; names the tool when `name` is absent.
    tool_call_id: Name | None = None
    #: The text of an assistant that refuses.
    refusal: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_empty_fields(cls, value: Any) -> Any:
        """Leave out empty fields of other interfaces, such as `audio` in a dump of an OpenAI message."""
        if not isinstance(value, Mapping):
            raise ValueError('a message is an object with a role and a content: {"role": "user", "content": "…"}')
        fields = cast(Mapping[str, Any], value)
        return {name: field for name, field in fields.items() if name in cls.model_fields or field not in (None, [])}

    @model_validator(mode="after")
    def _has_content(self) -> ChatMessage:
        if self.content is None and not self.tool_calls and self.refusal is None:
            raise ValueError("give a content: text, or a list of parts")
        return self


class ChatBatch(BaseModel):
    """Messages of one conversation, oldest first, with what they have in common; or a list of them alone."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    #: A list of messages, oldest first; one message, or the text of one by a user, is accepted too.
    messages: Annotated[list[ChatMessage], BeforeValidator(_listed), Field(min_length=1)]
    #: The conversation that they belong to.
    session_id: Name | None = None
    #: When they were sent; the time of recording when absent. A message may have its own.
    occurred_at: Moment | None = None
    #: Labels of every message, by which lists and retrievals can be filtered.
    metadata: Metadata = {}

    @model_validator(mode="before")
    @classmethod
    def _messages_alone(cls, value: Any) -> Any:
        """Accept a list of messages alone, or one message, as `add` in Python takes them."""
        is_message = isinstance(value, dict) and {"role", "content"} <= cast("dict[str, Any]", value).keys()
        return {"messages": cast(object, value)} if is_message or isinstance(value, list) else cast(object, value)

    def events(self) -> list[dict[str, Any]]:
        """Return a `message.added` event for each message.

        Raises:
            InvalidInput: a part of a content has an unknown type.
        """
        return [self._event(message, f"messages.{number}") for number, message in enumerate(self.messages)]

    def _event(self, message: ChatMessage, field: str) -> dict[str, Any]:
        """Return the event of one message."""
        payload: dict[str, Any] = {"role": _role(message), **_body(message, field)}
        if message.name is not None and message.role not in _TOOL_ROLES:
            payload["name"] = message.name
        metadata = {**self.metadata, **message.metadata}
        if metadata:
            payload["metadata"] = metadata
        if message.not_for is not None:
            payload["not_for"] = message.not_for
        return {
            "id": message.id,
            "type": "message.added",
            "session_id": self.session_id,
            "occurred_at": message.occurred_at or self.occurred_at,
            "payload": payload,
        }


def chat_events(
    messages: ChatInput,
    *,
    session_id: str | None,
    occurred_at: datetime | str | None,
    metadata: Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """Return a `message.added` event for each message.

    Raises:
        InvalidInput: a field is missing, unknown or wrong; `field` names it.
    """
    fields = {
        "messages": messages,
        "session_id": session_id,
        "occurred_at": occurred_at,
        "metadata": dict(metadata or {}),
    }
    return parse_batch(fields).events()


def parse_batch(fields: Mapping[str, Any] | bytes) -> ChatBatch:
    """Return a batch from its fields, or from JSON; raise `InvalidInput` when it does not fit."""
    try:
        if isinstance(fields, bytes):
            return ChatBatch.model_validate_json(fields)
        return ChatBatch.model_validate(fields)
    except ValidationError as error:
        raise first_problem(error, ChatBatch, root="body") from None


def _role(message: ChatMessage) -> str:
    """Return the role of the event."""
    if message.role in _TOOL_ROLES:
        return f"tool:{message.name or message.tool_call_id or 'tool'}"[:200]
    return _ROLES.get(message.role, message.role)


def _body(message: ChatMessage, field: str) -> dict[str, Any]:
    """Return the fields of the payload that hold the content."""
    content, attachments = _text_and_attachments(message.content, field)
    attached = {"attachments": attachments} if attachments else {}
    if message.tool_calls:
        data = {"tool_calls": message.tool_calls} | ({"content": content} if content else {})
        return {"data": data, **attached}
    return {"text": content if content is not None else message.refusal or "", **attached}


def _text_and_attachments(
    content: str | Sequence[Mapping[str, JsonValue]] | None, field: str
) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the text of a content and its attached parts; None without a content."""
    if content is None or isinstance(content, str):
        return content, []
    texts: list[str] = []
    attachments: list[dict[str, Any]] = []
    for number, part in enumerate(content):
        kind, text = part.get("type"), part.get("text")
        if kind in _TEXT_PARTS and isinstance(text, str):
            texts.append(text)
        elif isinstance(kind, str) and kind in _ATTACHED_PARTS:
            attachments.append(_attachment(kind, part))
        else:
            types = ", ".join(sorted(_TEXT_PARTS | _ATTACHED_PARTS.keys()))
            raise InvalidInput(f"give a part of one of the types {types}", field=f"{field}.content.{number}")
    return "\n".join(texts), attachments


def _attachment(kind: str, part: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Return an attached part. The log stores its address and not its bytes, so a `data:` address is left out."""
    value = part.get(kind) or part.get("image_url") or part.get("file_id")
    address = value.get("url") or value.get("file_id") if isinstance(value, dict) else value
    attachment: dict[str, Any] = {"media_type": _ATTACHED_PARTS[kind]}
    if isinstance(address, str) and address and not address.startswith("data:"):
        attachment["uri"] = address
    return attachment
