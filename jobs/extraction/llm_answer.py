"""LLM answer: the items that a language model reads in a conversation."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, get_args

from pydantic import BeforeValidator, Field

from recollect.events.catalogue import EntityType, FactType, PreferenceCategory
from recollect.jobs.llm.item_answer import ItemAnswer, LlmItem, LongText, ShortText

#: Steps of a procedure and aliases of an entity.
_PARTS_MAX = 30


def _none_if_not_date(value: object) -> object:
    """Return the day of an ISO date; None for other values, because a date is never the reason to lose an item."""
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def _or(values: Any, default: str) -> BeforeValidator:
    """Return a validator that replaces a value that is not in the Literal `values` by `default`."""
    allowed = frozenset(get_args(values))
    return BeforeValidator(lambda value: value if isinstance(value, str) and value in allowed else default)


_Share = Annotated[float, Field(ge=0, le=1)]
_Day = Annotated[date | None, BeforeValidator(_none_if_not_date)]


class LlmFact(LlmItem):
    """A fact, an event, a decision, a problem or a task."""

    subject: ShortText
    predicate: ShortText
    object: ShortText
    type: Annotated[FactType, _or(FactType, "fact")] = "fact"
    confidence: _Share = 0.8
    #: The first and the last day on which it holds.
    since: _Day = None
    until: _Day = None


class LlmCorrection(LlmItem):
    """The right value of a fact that was stated before."""

    subject: ShortText
    predicate: ShortText
    object: ShortText
    #: The object that was stated before.
    wrong: ShortText | None = None


class LlmEnding(LlmItem):
    """What no longer holds, or is to be forgotten."""

    subject: ShortText
    predicate: ShortText | None = None
    about: ShortText | None = None
    forget: bool = False


class LlmPreference(LlmItem):
    """What a person likes, dislikes or prefers."""

    subject: ShortText | None = None
    category: Annotated[PreferenceCategory, _or(PreferenceCategory, "other")] = "other"
    key: ShortText
    value: ShortText
    strength: _Share = 0.6


class LlmInstruction(LlmItem):
    """What the user tells the assistant to do from now on, in the words of the line."""

    text: LongText


class LlmEntity(LlmItem):
    """A person, place, organization, project … with its other names."""

    name: ShortText
    type: Annotated[EntityType, _or(EntityType, "other")] = "other"
    description: ShortText | None = None
    aliases: Annotated[tuple[ShortText, ...], Field(max_length=_PARTS_MAX)] = ()


class LlmRelationship(LlmItem):
    """A relationship between two people or things."""

    source: ShortText
    type: ShortText
    target: ShortText


class LlmProcedure(LlmItem):
    """The steps of a task."""

    name: ShortText
    steps: Annotated[list[LongText], Field(min_length=2, max_length=_PARTS_MAX)]


class LlmExtraction(ItemAnswer):
    """The answer of the language model: the items of all lines."""

    facts: tuple[LlmFact, ...] = ()
    corrections: tuple[LlmCorrection, ...] = ()
    endings: tuple[LlmEnding, ...] = ()
    preferences: tuple[LlmPreference, ...] = ()
    instructions: tuple[LlmInstruction, ...] = ()
    entities: tuple[LlmEntity, ...] = ()
    relationships: tuple[LlmRelationship, ...] = ()
    procedures: tuple[LlmProcedure, ...] = ()
