"""What retrieval answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from recollect.api.retrieval.request import Kind
from recollect.events.envelope import rfc3339


class Source(NamedTuple):
    """What someone said or did: the words behind a summary."""

    id: str
    occurred_at_us: int
    speaker: str
    text: str

    def as_json(self) -> dict[str, Any]:
        """Return the source as the outside sees it."""
        return {
            "id": self.id,
            "occurred_at": rfc3339(self.occurred_at_us),
            "speaker": self.speaker,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One memory that was found."""

    #: An episode's event id; an entity's name.
    id: str
    kind: Kind
    text: str
    #: Of an episode: the sum of its reciprocal ranks, which says what is better, not how good it is. Of an entity that
    #: the query names: 1 / its place.
    score: float
    #: The lists that found it, best rank first.
    matched_by: tuple[str, ...]
    #: Its rank in each of them, from 1.
    ranks: dict[str, int]
    #: The events it comes from.
    source_events: tuple[str, ...]
    occurred_at_us: int
    session_id: str | None
    speaker: str | None
    #: Of a summary, when the request says `expand`: the exact words behind it, in order.
    sources: tuple[Source, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the item as the outside sees it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "text": self.text,
            "score": self.score,
            "matched_by": list(self.matched_by),
            "ranks": self.ranks,
            "source_events": list(self.source_events),
            "occurred_at": rfc3339(self.occurred_at_us),
            "session_id": self.session_id,
            "speaker": self.speaker,
            **({"sources": [source.as_json() for source in self.sources]} if self.sources else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieveResult:
    """The memories for one question, best first, and the text to put into the prompt."""

    context: str
    items: tuple[Item, ...]
    #: Estimated tokens of `context`.
    tokens: int
    latency_ms: float
    #: Parts that are missing, as ``part: reason``.
    degraded: tuple[str, ...]
    trace_id: str
    #: The version of the namespace that was searched.
    version: int
    #: Milliseconds by stage.
    stages_ms: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return the result as the outside sees it."""
        return {
            "context": self.context,
            "items": [item.as_json() for item in self.items],
            "tokens": self.tokens,
            "latency_ms": round(self.latency_ms, 3),
            "degraded": list(self.degraded),
            "trace_id": self.trace_id,
            "version": self.version,
        }
