"""Memory edits: a producer pins, ends, invalidates, forgets or rates memories, or a namespace is erased."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from recollect.events.catalogue.event_base import Envelope, Moment, Name, Payload, Text


class MemoryReference(Payload):
    """A memory, and the reason for the event."""

    memory_id: Name
    reason: Text | None = None


class MemoryPinned(Envelope):
    """`memory.pinned`: a producer pinned a memory, which exempts it from ageing and retention limits."""

    type: Literal["memory.pinned"] = "memory.pinned"
    payload: MemoryReference


class MemoryUnpinned(Envelope):
    """`memory.unpinned`: a producer removed the pin of a memory."""

    type: Literal["memory.unpinned"] = "memory.unpinned"
    payload: MemoryReference


class MemoryEnd(Payload):
    """A memory that was true, and the time at which it stopped being true."""

    memory_id: Name
    #: The time of the event when absent.
    ended_at: Moment | None = None
    reason: Text | None = None


class MemoryEnded(Envelope):
    """`memory.ended`: a fact, a preference, a procedure or a relationship was true until then."""

    type: Literal["memory.ended"] = "memory.ended"
    payload: MemoryEnd


class MemoryInvalidated(Envelope):
    """`memory.invalidated`: a producer marked a memory as wrong."""

    type: Literal["memory.invalidated"] = "memory.invalidated"
    payload: MemoryReference


class ForgottenMemory(Payload):
    """The memory to forget, and the reason."""

    memory_id: Name
    #: The kind of the id: an entity is named, and a document has an id of its own.
    kind: Literal["memory", "document", "entity"] = "memory"
    reason: Text | None = None


class MemoryForgotten(Envelope):
    """`memory.forgotten`: a producer asks to forget a memory and what was derived from it.

    Lists and retrievals have neither afterwards. `session_id` names the session of a forgotten message, whose summary
    is removed, since it may quote the message. The bytes stay in the log.
    """

    type: Literal["memory.forgotten"] = "memory.forgotten"
    payload: ForgottenMemory


class EditUndo(Payload):
    """The edit to undo, and the reason."""

    #: The id of an event that corrected, stated, ended, retracted, pinned, unpinned, invalidated or forgot a memory,
    #: or removed a document.
    event_id: Name
    #: Whether the edit holds again, since its undo is undone.
    again: bool = False
    reason: Text | None = None


class EditUndone(Envelope):
    """`edit.undone`: a producer undid an edit; the memories are as they were before it.

    What was changed later stays. An edit that is undone already, or in force with `again`, stays as it is.
    """

    type: Literal["edit.undone"] = "edit.undone"
    payload: EditUndo


class Review(Payload):
    """The decision on a memory in quarantine."""

    memory_id: Name
    decision: Literal["approve", "reject", "redact"]
    reason: Text | None = None


class MemoryReviewed(Envelope):
    """`memory.reviewed`: a producer decided on a memory in quarantine.

    An approved memory is retrieved again, a rejected one never. A redacted message or document is replaced by one
    without the instructions, which follows as an event of its own.
    """

    type: Literal["memory.reviewed"] = "memory.reviewed"
    payload: Review


class RetrievalRating(Payload):
    """A rating of a retrieval, or of some memories in its result."""

    #: The trace of the retrieval.
    trace_id: Name
    rating: Literal["useful", "noise", "misleading"]
    #: The rated memories; empty to rate the whole result.
    memory_ids: Annotated[list[Name], Field(max_length=100)] = Field(default_factory=list[Name])
    reason: Text | None = None


class RetrievalRated(Envelope):
    """`retrieval.rated`: a producer rated a retrieval. Ratings raise or lower the rank of the rated memories."""

    type: Literal["retrieval.rated"] = "retrieval.rated"
    payload: RetrievalRating


class AnswerCheck(Payload):
    """Whether an answer passed a check, and why it did not."""

    check: Literal["cites", "current", "governed", "grounded"]
    passed: bool
    reason: Text | None = None


class Answer(Payload):
    """What an agent answered, the memories that it cited, and what was checked."""

    text: Text
    #: The trace of the retrieval that it answered from.
    trace_id: Name | None = None
    cited: Annotated[list[Name], Field(max_length=100)] = Field(default_factory=list[Name])
    checks: tuple[AnswerCheck, ...] = ()
    #: Events that the cited memories come from. The answer is erased with any of them.
    source_events: tuple[Name, ...] = ()


class AnswerGiven(Envelope):
    """`answer.given`: an agent answered from memories. It changes no memory, and is erased with what it cited."""

    type: Literal["answer.given"] = "answer.given"
    payload: Answer


class Erasure(Payload):
    """The events that were erased, without their content. It is stored unencrypted, so that `verify` can read it."""

    reason: Text | None = None
    #: The id of the request, which the receipt has too.
    erasure_id: Name | None = None
    scope: Literal["namespace", "subject", "session", "message", "retention"] | None = None
    #: HMAC of the subject, the session or the id that was given, in hex.
    pseudonym: Name | None = None
    #: The versions of the erased events as ranges, both ends included.
    versions: tuple[tuple[int, int], ...] = ()
    #: sha256 over the versions and leaves of the erased events, in hex.
    digest: Name | None = None
    requested_at: Moment | None = None


class NamespaceErased(Envelope):
    """`namespace.erased`: all events of the namespace up to this one were erased. It is stored unencrypted."""

    type: Literal["namespace.erased"] = "namespace.erased"
    payload: Erasure = Erasure()


class EventsErased(Envelope):
    """`events.erased`: the events of a subject, a session or a message were erased. It is stored unencrypted."""

    type: Literal["events.erased"] = "events.erased"
    payload: Erasure


#: Events that record an erasure.
ERASURE_EVENTS: tuple[type[Envelope], ...] = (NamespaceErased, EventsErased)

MEMORY_EDIT_EVENTS: tuple[type[Envelope], ...] = (
    MemoryPinned,
    MemoryUnpinned,
    MemoryEnded,
    MemoryInvalidated,
    MemoryForgotten,
    EditUndone,
    MemoryReviewed,
    RetrievalRated,
    AnswerGiven,
    *ERASURE_EVENTS,
)
