"""What a language model reads in messages, checked against their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from recollect.events.catalogue import FactType, PreferenceCategory
from recollect.jobs.extraction.excerpt import excerpt
from recollect.jobs.extraction.rule_extractor import ExtractedItem, IncomingMessage
from recollect.jobs.llm.client import LlmClient
from recollect.projections.text.words import content_words

#: The part of an item's words that its line must have.
_GROUNDED_MIN = 0.6


def _one_line(value: object) -> object:
    return " ".join(value.split()) if isinstance(value, str) else value


_Short = Annotated[str, BeforeValidator(_one_line), Field(min_length=1, max_length=180)]
_Line = Annotated[int, Field(ge=1)]
_Share = Annotated[float, Field(ge=0, le=1)]


class LlmFact(BaseModel):
    """A fact, and the line it was read from."""

    line: _Line
    subject: _Short
    predicate: _Short
    object: _Short
    type: FactType = "fact"
    confidence: _Share = 0.8


class LlmCorrection(BaseModel):
    """What is right instead."""

    line: _Line
    subject: _Short
    predicate: _Short
    object: _Short


class LlmPreference(BaseModel):
    """How somebody likes things."""

    line: _Line
    category: PreferenceCategory = "other"
    key: _Short
    value: _Short
    strength: _Share = 0.6
    standing: bool = False


class LlmRelationship(BaseModel):
    """How two people or things are related."""

    line: _Line
    source: _Short
    type: _Short
    target: _Short


class LlmExtraction(BaseModel):
    """All that was read."""

    facts: list[LlmFact] = []
    corrections: list[LlmCorrection] = []
    preferences: list[LlmPreference] = []
    relationships: list[LlmRelationship] = []


_Kind = Literal["facts", "corrections", "preferences", "relationships", "rejected"]


def extract_by_llm(llm: LlmClient, namespace: str, messages: Sequence[IncomingMessage]) -> list[ExtractedItem] | None:
    """Return what the model reads in `messages`; None when it could not be asked."""
    messages = [said._replace(text=excerpt(said.text)) for said in messages]
    lines = "\n".join(f"[{number}] {said.speaker}: {said.text}" for number, said in enumerate(messages, start=1))
    reading = llm.ask(namespace, "extract", lines, LlmExtraction)
    return None if reading is None else list(_grounded(reading, messages))


def _grounded(reading: LlmExtraction, messages: Sequence[IncomingMessage]) -> Iterator[ExtractedItem]:
    """Yield the items whose words are in their line: what was made up, or smuggled in, is rejected or left out."""
    for fact in reading.facts:
        said = _line(messages, fact.line)
        if said is not None:
            known = _in(said, fact.object) and _names(messages, fact.subject)
            item = fact.model_dump(exclude={"line"}) | {"source_type": "observed", "source_events": [said.event_id]}
            yield ExtractedItem("facts" if known else "rejected", item)
    for correction in reading.corrections:
        said = _line(messages, correction.line)
        if said is not None and _in(said, correction.object) and _names(messages, correction.subject):
            yield ExtractedItem("corrections", _item(correction, said))
    for preference in reading.preferences:
        said = _line(messages, preference.line)
        if said is not None and _in(said, preference.key if not preference.standing else preference.value):
            yield ExtractedItem("preferences", _item(preference, said) | {"source_type": "inferred"})
    for relationship in reading.relationships:
        said = _line(messages, relationship.line)
        if said is not None and _names(messages, relationship.source) and _names(messages, relationship.target):
            yield ExtractedItem("relationships", _item(relationship, said))


def _line(messages: Sequence[IncomingMessage], number: int) -> IncomingMessage | None:
    return messages[number - 1] if number <= len(messages) else None


def _item(read: BaseModel, said: IncomingMessage) -> dict[str, Any]:
    return read.model_dump(exclude={"line"}) | {"source_events": [said.event_id]}


def _in(said: IncomingMessage, phrase: str) -> bool:
    """Tell whether most words of `phrase` are in the line."""
    words = content_words(phrase)
    return bool(words) and len(words & content_words(said.text)) >= _GROUNDED_MIN * len(words)


def _names(messages: Sequence[IncomingMessage], name: str) -> bool:
    """Tell whether `name` speaks, or is named."""
    words = content_words(name) or {name.casefold()}
    return any(words <= content_words(f"{said.speaker} {said.text}") | {said.speaker.casefold()} for said in messages)
