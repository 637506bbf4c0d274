"""Care events: a producer pins, invalidates or rates memories, or asks to erase a namespace."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from recollect.events.catalogue.event_base import Envelope, Name, Payload, Text


class MemoryReference(Payload):
    """Which memory is meant, and why."""

    memory_id: Name
    reason: Text | None = None


class MemoryPinned(Envelope):
    """`memory.pinned`: a memory is to be kept whatever its age."""

    type: Literal["memory.pinned"] = "memory.pinned"
    payload: MemoryReference


class MemoryInvalidated(Envelope):
    """`memory.invalidated`: a memory is known to be wrong."""

    type: Literal["memory.invalidated"] = "memory.invalidated"
    payload: MemoryReference


class RetrievalRating(Payload):
    """How good a retrieval was, or some memories in it."""

    trace_id: Name
    rating: Literal["useful", "noise", "misleading"]
    #: Which memories are meant; the whole answer when there are none.
    memory_ids: Annotated[list[Name], Field(max_length=100)] = Field(default_factory=list[Name])
    reason: Text | None = None


class RetrievalRated(Envelope):
    """`retrieval.rated`: somebody said how good a retrieval was. Rated memories come up sooner or later than others."""

    type: Literal["retrieval.rated"] = "retrieval.rated"
    payload: RetrievalRating


class Erasure(Payload):
    """Why a namespace is erased."""

    reason: Text | None = None


class NamespaceErased(Envelope):
    """`namespace.erased`: everything about this owner is to be forgotten."""

    type: Literal["namespace.erased"] = "namespace.erased"
    payload: Erasure = Erasure()


CARE_EVENTS: tuple[type[Envelope], ...] = (
    MemoryPinned,
    MemoryInvalidated,
    RetrievalRated,
    NamespaceErased,
)
