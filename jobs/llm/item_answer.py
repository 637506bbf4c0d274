"""Item answer: the base of answers that are lists of items, each with the number of its line.

A model that gives some items in a wrong shape gives others in the right one, so that invalid items are left out. An
answer without any valid item, or of other fields, is no answer.
"""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

#: Items of one kind; a conversation of 100 lines has fewer that are worth remembering.
_ITEMS_MAX = 100


def _one_line(value: object) -> object:
    """Return a string with runs of white space as single spaces; other values unchanged."""
    return " ".join(value.split()) if isinstance(value, str) else value


#: A name or a phrase; the event catalogue allows slightly more for a name.
ShortText = Annotated[str, BeforeValidator(_one_line), Field(min_length=1, max_length=180)]
#: A sentence or two.
LongText = Annotated[str, BeforeValidator(_one_line), Field(min_length=1, max_length=500)]


class LlmItem(BaseModel):
    """What all items have."""

    #: The number of the line that the item was read from.
    line: Annotated[int, Field(ge=1)]


class ItemAnswer(BaseModel):
    """An answer whose fields are lists of items; its invalid items are left out."""

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
