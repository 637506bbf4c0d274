"""LLM extractor: reads knowledge from messages with a language model, and checks it against their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from recollect.events.catalogue import FactType, PreferenceCategory
from recollect.jobs.extraction.excerpt import excerpt
from recollect.jobs.extraction.rule_extractor import ExtractedItem, IncomingMessage
from recollect.jobs.llm.client import LlmClient
from recollect.projections.text.words import content_words

#: Share of the words of an item that must occur in its line.
_GROUNDED_MIN = 0.6


def _one_line(value: object) -> object:
    """Return a string with runs of white space as single spaces; other values unchanged."""
    return " ".join(value.split()) if isinstance(value, str) else value


_Short = Annotated[str, BeforeValidator(_one_line), Field(min_length=1, max_length=180)]
_Line = Annotated[int, Field(ge=1)]
_Share = Annotated[float, Field(ge=0, le=1)]


class LlmFact(BaseModel):
    """A fact, with the number of its line."""

    line: _Line
    subject: _Short
    predicate: _Short
    object: _Short
    type: FactType = "fact"
    confidence: _Share = 0.8


class LlmCorrection(BaseModel):
    """A corrected fact, with the number of its line."""

    line: _Line
    subject: _Short
    predicate: _Short
    object: _Short


class LlmPreference(BaseModel):
    """A preference or a standing instruction, with the number of its line."""

    line: _Line
    category: PreferenceCategory = "other"
    key: _Short
    value: _Short
    strength: _Share = 0.6
    standing: bool = False


class LlmRelationship(BaseModel):
    """A relationship between two people or things, with the number of its line."""

    line: _Line
    source: _Short
    type: _Short
    target: _Short


class LlmExtraction(BaseModel):
    """The answer of the language model: the items of all lines."""

    facts: list[LlmFact] = []
    corrections: list[LlmCorrection] = []
    preferences: list[LlmPreference] = []
    relationships: list[LlmRelationship] = []


def extract_by_llm(llm: LlmClient, namespace: str, messages: Sequence[IncomingMessage]) -> list[ExtractedItem] | None:
    """Return the items that the model reads in `messages`; None when the request failed."""
    messages = [message._replace(text=excerpt(message.text)) for message in messages]
    lines = [f"[{number}] {message.speaker}: {message.text}" for number, message in enumerate(messages, start=1)]
    answer = llm.ask(namespace, "extract", lines, LlmExtraction)
    return None if answer is None else list(_grounded(answer, messages))


def _grounded(answer: LlmExtraction, messages: Sequence[IncomingMessage]) -> Iterator[ExtractedItem]:
    """Yield the items whose words occur in their line; reject other facts and leave other items out."""
    for fact in answer.facts:
        message = _line(messages, fact.line)
        if message is not None:
            grounded = _in(message, fact.object) and _names(messages, fact.subject)
            item = fact.model_dump(exclude={"line"}) | {"source_type": "observed", "source_events": [message.event_id]}
            yield ExtractedItem("facts" if grounded else "rejected", item)
    for correction in answer.corrections:
        message = _line(messages, correction.line)
        if message is not None and _in(message, correction.object) and _names(messages, correction.subject):
            yield ExtractedItem("corrections", _item(correction, message))
    for preference in answer.preferences:
        message = _line(messages, preference.line)
        if message is not None and _in(message, preference.key if not preference.standing else preference.value):
            yield ExtractedItem("preferences", _item(preference, message) | {"source_type": "inferred"})
    for relationship in answer.relationships:
        message = _line(messages, relationship.line)
        if message is not None and _names(messages, relationship.source) and _names(messages, relationship.target):
            yield ExtractedItem("relationships", _item(relationship, message))


def _line(messages: Sequence[IncomingMessage], number: int) -> IncomingMessage | None:
    """Return the message of a line number, which starts at 1; None when the model invented the line."""
    return messages[number - 1] if number <= len(messages) else None


def _item(answer: BaseModel, message: IncomingMessage) -> dict[str, Any]:
    """Return an item of the answer as a payload, with the message as its source."""
    return answer.model_dump(exclude={"line"}) | {"source_events": [message.event_id]}


def _in(message: IncomingMessage, phrase: str) -> bool:
    """Return whether most words of `phrase` occur in the message."""
    words = content_words(phrase)
    return bool(words) and len(words & content_words(message.text)) >= _GROUNDED_MIN * len(words)


def _names(messages: Sequence[IncomingMessage], name: str) -> bool:
    """Return whether `name` is a speaker or occurs in a message."""
    words = content_words(name) or {name.casefold()}
    return any(
        words <= content_words(f"{message.speaker} {message.text}") | {message.speaker.casefold()}
        for message in messages
    )
