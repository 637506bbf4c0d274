"""Conversation events: sessions, messages, actions, observations, and the settings of a namespace."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from recollect.events.catalogue.event_base import (
    Envelope,
    ExactJson,
    Importance,
    Labels,
    Metadata,
    Name,
    Outcome,
    Payload,
    Role,
    Text,
    TimeZoneName,
)


class Session(Payload):
    """The channel and the user of a new conversation."""

    #: The medium, such as `slack` or `email`.
    channel: Name = "api"
    user_id: Name | None = None
    #: Any further values of the producer. `timezone`, such as `Europe/Berlin`, is the zone of the session's days.
    metadata: dict[str, ExactJson] = {}  # noqa: RUF012 -- pydantic copies a default


class SessionStarted(Envelope):
    """`session.started`: a conversation began; `session_id` names it."""

    type: Literal["session.started"] = "session.started"
    session_id: Name  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues] -- required here
    payload: Session = Session()


class SessionEnd(Payload):
    """The producer's summary of a conversation that ended."""

    summary: Text | None = None


class SessionEnded(Envelope):
    """`session.ended`: a conversation ended; `session_id` names it."""

    type: Literal["session.ended"] = "session.ended"
    session_id: Name  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues] -- required here
    payload: SessionEnd = SessionEnd()


class Turn(Payload):
    """A turn of a conversation that is sent as a part of one message."""

    role: Role
    #: The speaker's name.
    name: Name | None = None
    text: str


class Attachment(Payload):
    """A file attached to a message. The log stores its address, not its bytes."""

    #: Such as `image/png`.
    media_type: Name
    #: A description of the content, by which the message can be retrieved.
    caption: Text | None = None
    #: The address of the bytes.
    uri: Text | None = None


class Message(Payload):
    """A turn of a conversation, with exactly one of `text`, `turns` and `data`."""

    role: Role
    #: The speaker's name.
    name: Name | None = None
    #: May be empty: a picture without text, an empty answer of a language model.
    text: str | None = None
    #: Several turns in one message.
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)] | None = None
    #: Any JSON, for messages that are not text.
    data: ExactJson = None
    attachments: tuple[Attachment, ...] = ()
    #: Labels of the producer, such as `{"channel": "email"}`; lists and retrievals can be filtered by them. At most
    #: 8 KiB and 5 levels. `timezone`, such as `Europe/Berlin`, is the zone of the message's day.
    metadata: Metadata = {}  # noqa: RUF012 -- pydantic copies a default
    #: The people who must not be shown the message, nor what was derived from it, when they ask. Empty: the message is
    #: for everyone, also when its text says otherwise. Absent: the text decides ("don't tell Ben").
    not_for: Annotated[tuple[Name, ...], Field(max_length=20)] | None = None
    #: What the server noticed about the text.
    labels: Labels = ()

    @model_validator(mode="after")
    def _has_one_body(self) -> Message:
        if (self.text is not None) + (self.turns is not None) + (self.data is not None) != 1:
            raise ValueError("give exactly one of text, turns and data")
        return self


class MessageAdded(Envelope):
    """`message.added`: a user, an assistant, the system or a tool sent a message: one of `text`, `turns` and `data`."""

    type: Literal["message.added"] = "message.added"
    payload: Message


class Action(Payload):
    """An action of an agent or a tool."""

    #: A description of the action.
    text: Text
    #: The tool's name.
    tool: Name | None = None
    outcome: Outcome | None = None
    importance: Importance = 5
    tags: tuple[Name, ...] = ()
    #: Any JSON, such as the arguments and the result.
    details: ExactJson = None
    #: As that of a message.
    metadata: Metadata = {}  # noqa: RUF012 -- pydantic copies a default
    #: What the server noticed about the text.
    labels: Labels = ()


class ActionRecorded(Envelope):
    """`action.recorded`: an agent or a tool performed an action."""

    type: Literal["action.recorded"] = "action.recorded"
    payload: Action


class Observation(Payload):
    """A note about the user or the conversation that no message states."""

    text: Text
    importance: Importance = 5
    tags: tuple[Name, ...] = ()
    #: As that of a message.
    metadata: Metadata = {}  # noqa: RUF012 -- pydantic copies a default
    #: What the server noticed about the text.
    labels: Labels = ()


class ObservationRecorded(Envelope):
    """`observation.recorded`: a producer recorded a note that no message states."""

    type: Literal["observation.recorded"] = "observation.recorded"
    payload: Observation


class NamespaceSettings(Payload):
    """The settings of a namespace that the event sets; those that it leaves out stay as they are."""

    #: The zone of the user's days, such as `Europe/Berlin`, for times that come without an offset or a zone.
    timezone: TimeZoneName | None = None


class NamespaceConfigured(Envelope):
    """`namespace.configured`: a producer set settings of the namespace; those that it leaves out stay as they are."""

    type: Literal["namespace.configured"] = "namespace.configured"
    payload: NamespaceSettings


CONVERSATION_EVENTS: tuple[type[Envelope], ...] = (
    SessionStarted,
    SessionEnded,
    MessageAdded,
    ActionRecorded,
    ObservationRecorded,
    NamespaceConfigured,
)
