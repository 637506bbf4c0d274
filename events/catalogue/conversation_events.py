"""Conversation events: sessions, messages, actions and observations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from recollect.events.catalogue.event_base import Envelope, ExactJson, Importance, Name, Outcome, Payload, Role, Text


class Session(Payload):
    """A conversation begins."""

    channel: Name = "api"
    user_id: Name | None = None
    metadata: dict[str, ExactJson] = {}  # noqa: RUF012 -- pydantic copies a default


class SessionStarted(Envelope):
    """`session.started`: a conversation began; `session_id` names it."""

    type: Literal["session.started"] = "session.started"
    session_id: Name  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues] -- required here
    payload: Session = Session()


class SessionEnd(Payload):
    """A conversation ends."""

    summary: Text | None = None


class SessionEnded(Envelope):
    """`session.ended`: a conversation ended; `session_id` names it."""

    type: Literal["session.ended"] = "session.ended"
    session_id: Name  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues] -- required here
    payload: SessionEnd = SessionEnd()


class Turn(Payload):
    """One turn of several that are told as one message."""

    role: Role
    name: Name | None = None
    text: str


class Attachment(Payload):
    """A file beside a message; its bytes stay where `uri` points."""

    media_type: Name
    caption: Text | None = None
    uri: Text | None = None


class Message(Payload):
    """What was said: exactly one of `text`, `turns` and `data`."""

    role: Role
    #: The speaker's name.
    name: Name | None = None
    #: May be empty: a picture without words, a model that said nothing.
    text: str | None = None
    turns: Annotated[tuple[Turn, ...], Field(min_length=1)] | None = None
    #: Any JSON, for messages that are not text.
    data: ExactJson = None
    attachments: tuple[Attachment, ...] = ()

    @model_validator(mode="after")
    def _has_one_body(self) -> Message:
        if (self.text is not None) + (self.turns is not None) + (self.data is not None) != 1:
            raise ValueError("give exactly one of text, turns and data")
        return self


class MessageAdded(Envelope):
    """`message.added`: someone said something."""

    type: Literal["message.added"] = "message.added"
    payload: Message


class Action(Payload):
    """Something an agent or a tool did."""

    text: Text
    tool: Name | None = None
    outcome: Outcome | None = None
    importance: Importance = 5
    tags: tuple[Name, ...] = ()
    details: ExactJson = None


class ActionRecorded(Envelope):
    """`action.recorded`: an agent or a tool did something."""

    type: Literal["action.recorded"] = "action.recorded"
    payload: Action


class Observation(Payload):
    """Something noticed, not said."""

    text: Text
    importance: Importance = 5
    tags: tuple[Name, ...] = ()


class ObservationRecorded(Envelope):
    """`observation.recorded`: something was noticed."""

    type: Literal["observation.recorded"] = "observation.recorded"
    payload: Observation


CONVERSATION_EVENTS: tuple[type[Envelope], ...] = (
    SessionStarted,
    SessionEnded,
    MessageAdded,
    ActionRecorded,
    ObservationRecorded,
)
