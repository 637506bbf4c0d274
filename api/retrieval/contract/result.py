"""What retrieval answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from recollect.api.retrieval.contract.request import Kind
from recollect.events.envelope import rfc3339

#: Koda's layers (`004`), by kind.
LAYERS: dict[Kind, str] = {
    "episode": "episodic",
    "procedure": "procedural",
    "fact": "conversational",
    "entity": "conversational",
    "relationship": "conversational",
    "preference": "proactive",
    "document": "proactive",
}


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

    #: An episode's event id; an entity's name; of a document its id, ``#`` and the number of the piece; else as listed.
    id: str
    #: What it is.
    kind: Kind
    #: Whose memory it is.
    namespace: str
    #: Its text: of an episode the words that were said.
    text: str
    #: How likely it belongs to the answer, 0 to 1 (see `gate`); with another ranking than ``weighted`` the sum of its
    #: reciprocal ranks, which says what is better, not how good it is.
    score: float
    #: The lists that found it, best rank first.
    matched_by: tuple[str, ...]
    #: Its rank in each of them, from 1.
    ranks: dict[str, int]
    #: The events it comes from.
    source_events: tuple[str, ...]
    #: When it was said or done; of knowledge, the time of its last change.
    occurred_at_us: int
    #: The session that it belongs to.
    session_id: str | None = None
    #: Who said it.
    speaker: str | None = None
    #: 0 to 1; of what was said itself 1.
    confidence: float = 1.0
    #: Whether it is no longer true: it has ended, or something said in it was corrected or replaced later.
    outdated: bool = False
    #: When it was last confirmed, if that is longer ago than memories of its kind stay fresh; nothing contradicts it.
    unconfirmed_since_us: int | None = None
    #: Whether it comes first when evidence is weighed: curated, corrected or stated by the user.
    authoritative: bool = False
    #: Of a summary, when the request says `expand`: the exact words behind it, in order.
    sources: tuple[Source, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the item as the outside sees it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "layer": LAYERS[self.kind],
            "namespace": self.namespace,
            "text": self.text,
            "score": round(self.score, 6),
            "matched_by": list(self.matched_by),
            "ranks": self.ranks,
            "source_events": list(self.source_events),
            "occurred_at": rfc3339(self.occurred_at_us),
            "session_id": self.session_id,
            "speaker": self.speaker,
            "confidence": self.confidence,
            "outdated": self.outdated,
            "unconfirmed_since": None if self.unconfirmed_since_us is None else rfc3339(self.unconfirmed_since_us),
            **({"sources": [source.as_json() for source in self.sources]} if self.sources else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerGuidance:
    """What helps to decide how to answer (`004`)."""

    #: Ids of items that can be relied on: curated, corrected or stated by the user.
    authoritative: tuple[str, ...] = ()
    #: Ids of the other items.
    supporting: tuple[str, ...] = ()
    #: Entities that the query and the items name.
    entities: tuple[str, ...] = ()
    #: How they are related, as (source, type, target).
    relations: tuple[tuple[str, str, str], ...] = ()
    #: How likely memory has an answer, 0 to 1.
    grounding: float = 0.0
    #: direct: answer; scoped: answer within what is cited, and say so; defer: say that nothing is known, or ask.
    action: str = "defer"
    #: The share of the items that something newer contradicts.
    contradiction_rate: float = 0.0
    #: The share of the query's words that some item with a source holds.
    citation_coverage: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the aids as the outside sees them."""
        return {
            "authoritative": list(self.authoritative),
            "supporting": list(self.supporting),
            "entities": list(self.entities),
            "relations": [list(relation) for relation in self.relations],
            "grounding": round(self.grounding, 4),
            "action": self.action,
            "contradiction_rate": round(self.contradiction_rate, 4),
            "citation_coverage": round(self.citation_coverage, 4),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieveResult:
    """The memories for one question, best first, and the text to put into the prompt."""

    #: The text for the prompt, within `budget_tokens`.
    context: str
    #: The memories, best first.
    items: tuple[Item, ...]
    #: Estimated tokens of `context`.
    tokens: int
    #: Milliseconds that the retrieval took.
    latency_ms: float
    #: Parts that are missing, as ``part: reason``.
    degraded: tuple[str, ...]
    #: The id of its trace, which explains it.
    trace_id: str
    #: The version of the namespace that was searched.
    version: int
    #: Why it was retrieved: ``asked``, or what a passive retrieval noticed.
    trigger: str
    #: What helps to decide how to answer.
    aids: AnswerGuidance
    #: Milliseconds by stage.
    stages_ms: dict[str, float]
    #: Makes the explanation of how it came about, for the trace; not before somebody wants it.
    explain: Callable[[], dict[str, Any]]

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
            "trigger": self.trigger,
            "answer": self.aids.as_json(),
        }
