"""Care events: a producer pins, invalidates or rates memories, or asks to erase a namespace."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from recollect.events.catalogue.event_base import Envelope, Name, Payload, Text


class MemoryReference(Payload):
    """A memory, and the reason for the event."""

    memory_id: Name
    reason: Text | None = None


class MemoryPinned(Envelope):
    """`memory.pinned`: a producer pinned a memory, which exempts it from ageing and retention limits."""

    type: Literal["memory.pinned"] = "memory.pinned"
    payload: MemoryReference


class MemoryInvalidated(Envelope):
    """`memory.invalidated`: a producer marked a memory as wrong."""

    type: Literal["memory.invalidated"] = "memory.invalidated"
    payload: MemoryReference


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


class Erasure(Payload):
    """The reason for erasing a namespace."""

    reason: Text | None = None


class NamespaceErased(Envelope):
    """`namespace.erased`: a producer asks to erase all data of the namespace."""

    type: Literal["namespace.erased"] = "namespace.erased"
    payload: Erasure = Erasure()


CARE_EVENTS: tuple[type[Envelope], ...] = (
    MemoryPinned,
    MemoryInvalidated,
    RetrievalRated,
    NamespaceErased,
)
