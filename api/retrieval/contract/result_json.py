"""Result JSON: the fields of a retrieval's result over HTTP. Times are texts in RFC 3339."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from recollect.api.retrieval.contract.request import Kind
from recollect.events.intake.quarantine import Provenance


class SourceJson(TypedDict):
    """An original message of a summary."""

    id: str
    occurred_at: str
    speaker: str
    text: str


class LaterJson(TypedDict):
    """What was said later and ends or replaces what a memory says."""

    occurred_at: str
    text: str
    source_event: str


class ItemJson(TypedDict):
    """A memory in a result; `Item` says what each field is."""

    id: str
    kind: Kind
    layer: str
    namespace: str
    text: str
    score: float
    matched_by: list[str]
    ranks: dict[str, int]
    source_events: list[str]
    occurred_at: str
    session_id: str | None
    speaker: str | None
    tier: str | None
    summary_id: str | None
    short: str | None
    confidence: float
    provenance: Provenance
    trust: int
    outdated: bool
    valid_from: str | None
    stated_at: str | None
    unconfirmed_since: str | None
    later: NotRequired[LaterJson]
    valid_until: NotRequired[str]
    replaced_by: NotRequired[str]
    contradicted_by: NotRequired[str]
    sources: NotRequired[list[SourceJson]]


class GuidanceJson(TypedDict):
    """Guidance for the answer; `AnswerGuidance` says what each field is."""

    authoritative: list[str]
    supporting: list[str]
    entities: list[str]
    governing: list[str]
    #: Each as [source, type, target].
    relations: list[list[str]]
    grounding: float
    action: str
    contradiction_rate: float
    citation_coverage: float


class ForgottenJson(TypedDict):
    """A memory that was forgotten for the message of the turn; `undo` of the event brings it back."""

    id: str
    #: memory or entity.
    kind: str
    event_id: str


class ForgetCandidateJson(TypedDict):
    """A memory that the message may ask to forget, which is not clear. It is not forgotten."""

    id: str
    kind: str
    text: str


class RetrievalJson(TypedDict):
    """The memories for a query, best first, and the text for the prompt."""

    context: str
    items: list[ItemJson]
    tokens: int
    latency_ms: float
    degraded: list[str]
    reason: str | None
    trace_id: str
    version: int
    trigger: str
    answer: GuidanceJson
    forgotten: list[ForgottenJson]
    forget_candidates: list[ForgetCandidateJson]
