"""SettleResult: the state of a namespace after settling, with what is missing when its time was over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class SettleResult(Struct, frozen=True, kw_only=True):
    """The state of a namespace after settling, with the work that is missing when its time was over."""

    namespace: str
    #: The version of the head.
    version: int
    #: Whether no work is left.
    is_settled: bool
    #: Number of events that are not projected.
    events: int
    #: Number of episodes without vectors; 0 while no embedding model is ready.
    embeddings: int
    #: Number of messages that the extraction has not read. A settled namespace has some, too: those that a job defers
    #: until more messages follow.
    messages: int
    #: The state of the embedding model: ready, loading, failed or off.
    model: str

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the missing work as ``part: reason``, as `degraded` of a retrieval does; nothing when it is done."""
        if self.is_settled:
            return ()
        counts = (("read model", self.events, "events not projected"), ("semantic", self.embeddings, "not embedded"))
        notes = [f"{part}: {count} {what}" for part, count, what in counts if count]
        if self.model == "loading":
            notes.append("semantic: model loading")
        if self.messages or not notes:
            notes.append(f"extraction: {self.messages} messages not read" if self.messages else "jobs: out of time")
        return tuple(notes)

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "namespace": self.namespace,
            "version": self.version,
            "settled": self.is_settled,
            "events": self.events,
            "embeddings": self.embeddings,
            "messages": self.messages,
            "model": self.model,
            "missing": list(self.missing),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> SettleResult:
        """Return the result that `as_json` returned `fields` for."""
        return cls(
            namespace=fields["namespace"],
            version=fields["version"],
            is_settled=fields["settled"],
            events=fields["events"],
            embeddings=fields["embeddings"],
            messages=fields["messages"],
            model=fields["model"],
        )
