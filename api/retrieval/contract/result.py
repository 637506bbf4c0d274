"""Result: the items, the context and the guidance of a retrieval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from recollect.api.retrieval.contract.request import Kind
from recollect.api.retrieval.contract.result_json import (
    ForgetCandidateJson,
    ForgottenJson,
    GuidanceJson,
    ItemJson,
    LaterJson,
    RetrievalJson,
    SourceJson,
)
from recollect.events.envelope import parse_offset, parse_rfc3339, rfc3339
from recollect.events.intake.quarantine import TRUST, Provenance
from recollect.events.memory_kinds import MEMORY_KINDS

#: The memory layer of each kind (Koda's layers, `004`).
LAYERS: dict[str, str] = {kind.name: kind.layer for kind in MEMORY_KINDS if kind.layer is not None}


class Source(NamedTuple):
    """A source of a summary: the text of an original message or event."""

    id: str
    occurred_at_us: int
    speaker: str
    text: str
    #: Minutes east of UTC.
    utc_offset: int = 0

    def as_json(self) -> SourceJson:
        """Return the source as JSON."""
        return {
            "id": self.id,
            "occurred_at": rfc3339(self.occurred_at_us, self.utc_offset),
            "speaker": self.speaker,
            "text": self.text,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Source:
        """Return the source that `as_json` returned `fields` for."""
        time = str(fields["occurred_at"])
        return cls(fields["id"], parse_rfc3339(time), fields["speaker"], fields["text"], parse_offset(time))


class Later(Struct, frozen=True, kw_only=True):
    """What was said later and ends or replaces what a memory says; the reader of both decides."""

    at_us: int
    #: One sentence, shortened.
    text: str
    #: The id of the event that says so.
    source_event: str
    #: Minutes east of UTC of `at_us`, in which its day is shown.
    utc_offset: int = 0

    def as_json(self) -> LaterJson:
        """Return it as JSON."""
        return {
            "occurred_at": rfc3339(self.at_us, self.utc_offset),
            "text": self.text,
            "source_event": self.source_event,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Later:
        """Return what `as_json` returned `fields` for."""
        time = str(fields["occurred_at"])
        return cls(
            at_us=parse_rfc3339(time),
            text=fields["text"],
            source_event=fields["source_event"],
            utc_offset=parse_offset(time),
        )


class Item(Struct, frozen=True, kw_only=True):
    """One memory in a result."""

    #: The event id of an episode, the name of an entity, the id of a document with ``#`` and its chunk, or a list's id.
    id: str
    #: The kind of the memory.
    kind: Kind
    #: The namespace that it is from.
    namespace: str
    #: Its text; the message itself for an episode. Of a text over 32,768 characters, the part with most of the query's
    #: words; the event has all of it.
    text: str
    #: The probability that it belongs to the answer, 0 to 1 (see `gate`); with a ranking other than ``weighted``, the
    #: sum of its reciprocal ranks, which only orders items.
    score: float
    #: The ranked lists that have it, best rank first.
    matched_by: tuple[str, ...]
    #: Its rank in each list, from 1.
    ranks: dict[str, int]
    #: The ids of the events that it is derived from.
    source_events: tuple[str, ...]
    #: The time of the event; for knowledge, the time of its last change.
    occurred_at_us: int
    #: The minutes of its zone east of UTC: that of the message, or of the first message behind knowledge.
    utc_offset: int = 0
    #: The session of the episode.
    session_id: str | None = None
    #: The speaker of the episode.
    speaker: str | None = None
    #: raw, compressed or distilled: the tier of the episode, or of the summary whose source it is; None for knowledge.
    tier: str | None = None
    #: The id of the summary that the message was found by, once compaction has taken the message out of the search.
    summary_id: str | None = None
    #: The most important sentences of a long message; None: it is not long, or not shortened yet.
    short: str | None = None
    #: Confidence in the knowledge, 0 to 1; 1 for episodes.
    confidence: float = 1.0
    #: Who wrote it: user, assistant, tool, document; import for what an import brought from another program; derived
    #: for what a job or a producer made of messages.
    provenance: Provenance = "derived"
    #: How far it may be trusted, from 0 to 3; of what is derived, the trust of the least trusted message behind it.
    trust: int = TRUST["derived"]
    #: Whether it is no longer valid: it ended, or a later statement corrected or replaced it.
    outdated: bool = False
    #: The newest of the statements that ended or replaced it; None: it holds, or nothing says so in words.
    later: Later | None = None
    #: The start of validity of a fact; None: not stated.
    valid_from_us: int | None = None
    #: The end of validity of a fact; None: it has none.
    valid_until_us: int | None = None
    #: When the first message that a fact comes from was sent; None: not known, or not a fact.
    stated_at_us: int | None = None
    #: The time of the last confirmation, if the item is stale since; None when it is fresh.
    unconfirmed_since_us: int | None = None
    #: Whether it is curated, corrected or stated by the user.
    authoritative: bool = False
    #: Whether it is a standing instruction that the reader of messages found, of which `confidence` is the probability.
    is_read_rule: bool = False
    #: The layer that the producer of a fact gave it; None: the layer of its kind.
    layer: str | None = None
    #: Title of the document that replaces this one, which is outdated then.
    replaced_by: str | None = None
    #: Title of a document of more authority that contradicts this one.
    contradicted_by: str | None = None
    #: All original messages of the item's summary, in order, when the request sets `expand`.
    sources: tuple[Source, ...] = ()

    @property
    def is_undated(self) -> bool:
        """Return whether the day when it was said is not known: a document, or what an import brought without one."""
        if self.kind == "document":
            # Its time is that of adding it.
            return True
        return self.kind != "episode" and self.provenance == "import" and self.stated_at_us is None

    def as_json(self) -> ItemJson:
        """Return the item as JSON."""
        item: ItemJson = {
            "id": self.id,
            "kind": self.kind,
            "layer": self.layer or LAYERS[self.kind],
            "namespace": self.namespace,
            "text": self.text,
            "score": round(self.score, 6),
            "matched_by": list(self.matched_by),
            "ranks": self.ranks,
            "source_events": list(self.source_events),
            "occurred_at": rfc3339(self.occurred_at_us, self.utc_offset),
            "session_id": self.session_id,
            "speaker": self.speaker,
            "tier": self.tier,
            "summary_id": self.summary_id,
            "short": self.short,
            "confidence": self.confidence,
            "provenance": self.provenance,
            "trust": self.trust,
            "outdated": self.outdated,
            "valid_from": None if self.valid_from_us is None else rfc3339(self.valid_from_us, self.utc_offset),
            "stated_at": None if self.stated_at_us is None else rfc3339(self.stated_at_us, self.utc_offset),
            "unconfirmed_since": None
            if self.unconfirmed_since_us is None
            else rfc3339(self.unconfirmed_since_us, self.utc_offset),
        }
        if self.later is not None:
            item["later"] = self.later.as_json()
        if self.valid_until_us is not None:
            item["valid_until"] = rfc3339(self.valid_until_us, self.utc_offset)
        if self.replaced_by is not None:
            item["replaced_by"] = self.replaced_by
        if self.contradicted_by is not None:
            item["contradicted_by"] = self.contradicted_by
        if self.sources:
            item["sources"] = [source.as_json() for source in self.sources]
        return item

    @classmethod
    def from_json(cls, fields: Mapping[str, Any], *, authoritative: bool) -> Item:
        """Return the item that `as_json` returned `fields` for."""
        return cls(
            authoritative=authoritative,
            **{name: fields[name] for name in _PLAIN_FIELDS},
            matched_by=tuple(fields["matched_by"]),
            source_events=tuple(fields["source_events"]),
            occurred_at_us=parse_rfc3339(str(fields["occurred_at"])),
            utc_offset=parse_offset(str(fields["occurred_at"])),
            valid_from_us=parse_rfc3339(fields["valid_from"]),
            stated_at_us=parse_rfc3339(fields["stated_at"]),
            unconfirmed_since_us=parse_rfc3339(fields["unconfirmed_since"]),
            valid_until_us=parse_rfc3339(fields.get("valid_until")),
            later=None if fields.get("later") is None else Later.from_json(fields["later"]),
            replaced_by=fields.get("replaced_by"),
            contradicted_by=fields.get("contradicted_by"),
            sources=tuple(Source.from_json(source) for source in fields.get("sources", ())),
        )


#: The fields of an item that have the same value in JSON.
_PLAIN_FIELDS = (
    "id",
    "kind",
    "layer",
    "namespace",
    "text",
    "score",
    "ranks",
    "session_id",
    "speaker",
    "tier",
    "summary_id",
    "short",
    "confidence",
    "provenance",
    "trust",
    "outdated",
)


class AnswerGuidance(Struct, frozen=True, kw_only=True):
    """Guidance for the answer: evidence, entities and grounding (`004`)."""

    #: Ids of reliable items: curated, corrected or stated by the user.
    authoritative: tuple[str, ...] = ()
    #: Ids of the other items.
    supporting: tuple[str, ...] = ()
    #: Names of the entities of the query and of the items.
    entities: tuple[str, ...] = ()
    #: Ids of the documents that govern one of these entities; `record_answer` checks that an answer cites them.
    governing: tuple[str, ...] = ()
    #: Relations of these entities, as (source, type, target).
    relations: tuple[tuple[str, str, str], ...] = ()
    #: The probability that memory has an answer, 0 to 1.
    grounding: float = 0.0
    #: direct: answer; scoped: answer only from the cited items, and say so; defer: say that memory has none, or ask.
    action: str = "defer"
    #: The share of the items that a later statement or another document contradicts.
    contradiction_rate: float = 0.0
    #: The share of the query's words in the items with sources.
    citation_coverage: float = 0.0

    def as_json(self) -> GuidanceJson:
        """Return the guidance as JSON."""
        return {
            "authoritative": list(self.authoritative),
            "supporting": list(self.supporting),
            "entities": list(self.entities),
            "governing": list(self.governing),
            "relations": [list(relation) for relation in self.relations],
            "grounding": round(self.grounding, 4),
            "action": self.action,
            "contradiction_rate": round(self.contradiction_rate, 4),
            "citation_coverage": round(self.citation_coverage, 4),
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> AnswerGuidance:
        """Return the guidance that `as_json` returned `fields` for."""
        return cls(
            authoritative=tuple(fields["authoritative"]),
            supporting=tuple(fields["supporting"]),
            entities=tuple(fields["entities"]),
            # Answers of servers before it lack the field.
            governing=tuple(fields.get("governing", ())),
            relations=tuple((source, type, target) for source, type, target in fields["relations"]),
            grounding=fields["grounding"],
            action=fields["action"],
            contradiction_rate=fields["contradiction_rate"],
            citation_coverage=fields["citation_coverage"],
        )


class RetrieveResult(Struct, frozen=True, kw_only=True):
    """The memories for one query, best first, and the text for the prompt."""

    #: The text for the prompt, within `budget_tokens`.
    context: str
    #: The memories, best first.
    items: tuple[Item, ...]
    #: Estimated tokens of `context`.
    tokens: int
    #: The duration of the retrieval, in milliseconds.
    latency_ms: float
    #: The parts that are missing from the result, as ``part: reason``.
    degraded: tuple[str, ...]
    #: Why memory has no answer, such as ``no memory of that time``, for the bot to say; None: it has one, or no reason.
    reason: str | None = None
    #: The id of its trace.
    trace_id: str
    #: The version of the namespace that was searched.
    version: int
    #: The reason of the retrieval: ``asked``, or the trigger of passive mode.
    trigger: str
    #: Guidance for the answer.
    answer: AnswerGuidance
    #: Milliseconds of each stage, by name.
    stages_ms: dict[str, float]
    #: What was forgotten because the message of the turn asks for it.
    forgotten: tuple[ForgottenJson, ...] = ()
    #: What the message may ask to forget, when that is not clear; nothing of it is forgotten.
    forget_candidates: tuple[ForgetCandidateJson, ...] = ()
    #: Returns the explanation for the trace; called only when the trace is written.
    explain: Callable[[], dict[str, Any]]

    def as_json(self) -> RetrievalJson:
        """Return the result as JSON."""
        return {
            "context": self.context,
            "items": [item.as_json() for item in self.items],
            "tokens": self.tokens,
            "latency_ms": round(self.latency_ms, 3),
            "degraded": list(self.degraded),
            "reason": self.reason,
            "trace_id": self.trace_id,
            "version": self.version,
            "trigger": self.trigger,
            "answer": self.answer.as_json(),
            "forgotten": [*self.forgotten],
            "forget_candidates": [*self.forget_candidates],
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> RetrieveResult:
        """Return the result that `as_json` returned `fields` for.

        What JSON leaves out is empty: `stages_ms` and `explain`. The trace has them.
        """
        answer = AnswerGuidance.from_json(fields["answer"])
        return cls(
            context=fields["context"],
            items=tuple(
                Item.from_json(item, authoritative=item["id"] in answer.authoritative) for item in fields["items"]
            ),
            tokens=fields["tokens"],
            latency_ms=fields["latency_ms"],
            degraded=tuple(fields["degraded"]),
            reason=fields.get("reason"),
            trace_id=fields["trace_id"],
            version=fields["version"],
            trigger=fields["trigger"],
            answer=answer,
            forgotten=tuple(fields.get("forgotten", ())),
            forget_candidates=tuple(fields.get("forget_candidates", ())),
            stages_ms={},
            explain=dict,
        )
