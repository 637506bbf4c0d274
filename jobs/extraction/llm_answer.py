"""LLM answer: the items that a language model reads in a conversation, each with the number of its line.

A model that gives some items in a wrong shape gives others in the right one, so that invalid items are left out. An
answer without any valid item, or of other fields, is no answer.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from recollect.events.catalogue import EntityType, FactType, PreferenceCategory

#: Items of one kind; a conversation of 100 lines has fewer that are worth remembering.
_ITEMS_MAX = 100
#: Steps of a procedure and aliases of an entity.
_PARTS_MAX = 30


def _one_line(value: object) -> object:
    """Return a string with runs of white space as single spaces; other values unchanged."""
    return " ".join(value.split()) if isinstance(value, str) else value


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


_Short = Annotated[str, BeforeValidator(_one_line), Field(min_length=1, max_length=180)]
_Long = Annotated[str, BeforeValidator(_one_line), Field(min_length=1, max_length=500)]
_Line = Annotated[int, Field(ge=1)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Day = Annotated[date | None, BeforeValidator(_none_if_not_date)]


class LlmItem(BaseModel):
    """What all items have."""

    #: The number of the line that the item was read from.
    line: _Line


class LlmFact(LlmItem):
    """A fact, an event, a decision, a problem or a task."""

    subject: _Short
    predicate: _Short
    object: _Short
    type: Annotated[FactType, _or(FactType, "fact")] = "fact"
    confidence: _Share = 0.8
    #: The first and the last day on which it holds.
    since: _Day = None
    until: _Day = None


class LlmCorrection(LlmItem):
    """The right value of a fact that was stated before."""

    subject: _Short
    predicate: _Short
    object: _Short
    #: The object that was stated before.
    wrong: _Short | None = None


class LlmEnding(LlmItem):
    """What no longer holds, or is to be forgotten."""

    subject: _Short
    predicate: _Short | None = None
    about: _Short | None = None
    forget: bool = False


class LlmPreference(LlmItem):
    """What a person likes, dislikes or prefers."""

    subject: _Short | None = None
    category: Annotated[PreferenceCategory, _or(PreferenceCategory, "other")] = "other"
    key: _Short
    value: _Short
    strength: _Share = 0.6


class LlmInstruction(LlmItem):
    """What the user tells the assistant to do from now on, in the words of the line."""

    text: _Long


class LlmEntity(LlmItem):
    """A person, place, organization, project … with its other names."""

    name: _Short
    type: Annotated[EntityType, _or(EntityType, "other")] = "other"
    description: _Short | None = None
    aliases: Annotated[list[_Short], Field(max_length=_PARTS_MAX)] = []


class LlmRelationship(LlmItem):
    """A relationship between two people or things."""

    source: _Short
    type: _Short
    target: _Short


class LlmProcedure(LlmItem):
    """The steps of a task."""

    name: _Short
    steps: Annotated[list[_Long], Field(min_length=2, max_length=_PARTS_MAX)]


class LlmExtraction(BaseModel):
    """The answer of the language model: the items of all lines."""

    facts: list[LlmFact] = []
    corrections: list[LlmCorrection] = []
    endings: list[LlmEnding] = []
    preferences: list[LlmPreference] = []
    instructions: list[LlmInstruction] = []
    entities: list[LlmEntity] = []
    relationships: list[LlmRelationship] = []
    procedures: list[LlmProcedure] = []

    @model_validator(mode="before")
    @classmethod
    def _valid_items(cls, answer: Any) -> Any:
        """Return the answer without its invalid items."""
        if not isinstance(answer, dict):
            return answer
        values: dict[str, Any] = answer  # pyright: ignore[reportUnknownVariableType]
        if values and not cls.model_fields.keys() & values.keys():
            raise ValueError(f"the answer has none of the fields {', '.join(cls.model_fields)}")
        given = {name: values[name] for name in cls.model_fields if values.get(name)}
        valid = {name: _valid(_item_type(cls, name), items) for name, items in given.items()}
        if given and not any(valid.values()):
            raise ValueError("no item has the fields of its kind; each item needs the number of its line")
        return valid


def _item_type(answer: type[BaseModel], field: str) -> type[LlmItem]:
    return get_args(answer.model_fields[field].annotation)[0]


def _valid(item_type: type[LlmItem], items: Any) -> Any:
    """Return the valid items of a list; another value unchanged, which the field then refuses."""
    if not isinstance(items, list):
        return items
    adapter = TypeAdapter(item_type)
    valid: list[LlmItem] = []
    for item in items[:_ITEMS_MAX]:  # pyright: ignore[reportUnknownVariableType]
        try:
            valid.append(adapter.validate_python(item))
        except ValidationError:
            continue
    return valid
