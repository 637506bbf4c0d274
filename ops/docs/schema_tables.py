"""Schema tables: the fields of a pydantic model as a Markdown list, and tables of other rows."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel
from pydantic_core import PydanticUndefined
from source_comments import field_comment, markdown

#: The most characters of an id or a name; the pages say once what a short string is.
_SHORT = 200


class Field(NamedTuple):
    """One entry of a list, or one row of a table."""

    name: str
    type: str
    #: As JSON; "required" for a field without a default, "" for an empty one.
    default: str
    description: str


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table; a bar inside a cell is escaped."""
    lines = [head, tuple("---" for _ in head), *(tuple(cell.replace("|", "\\|") for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def first_paragraph(owner: object) -> str:
    """Return the first paragraph of the docstring, on one line."""
    return markdown(" ".join((inspect.getdoc(owner) or "").split("\n\n")[0].split()))


def fields_of(model: type[BaseModel], *, without: tuple[str, ...] = ()) -> list[Field]:
    """Return the fields of `model`, in the order of their declaration."""
    properties: dict[str, Any] = model.model_json_schema().get("properties", {})
    return [
        Field(name, type_text(properties[name]), _default(field.get_default(call_default_factory=True)), comment)
        for name, field in model.model_fields.items()
        if name not in without
        for comment in [field_comment(model, name)]
    ]


def field_list(model: type[BaseModel], *, without: tuple[str, ...] = ()) -> str:
    """Return the fields of `model` as a list."""
    entries = [
        entry(f"`{field.name}`", _details(field), field.description) for field in fields_of(model, without=without)
    ]
    return "\n".join(entries) if entries else "No fields."


def entry(name: str, details: str, description: str) -> str:
    """Return an entry of a list: a name, its type or the like in brackets, and what it is."""
    bracket = f" ({details})" if details else ""
    return f"- {name}{bracket}{f': {description}' if description else ''}"


def _details(field: Field) -> str:
    default = "required" if field.default == "required" else f"default {field.default}" if field.default else ""
    return ", ".join(filter(None, (field.type, default)))


def type_text(schema: dict[str, Any]) -> str:
    """Return the type that a JSON schema describes, in a few words."""
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "any JSON" if name == "JsonValue" else f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(type_text(one) for one in schema["anyOf"] if one.get("type") != "null")
    if schema.get("type") == "array":
        return f"list of {type_text(schema.get('items', {}))}"
    if schema.get("type") == "string" and schema.get("maxLength") == _SHORT:
        return "short string"
    name = {"date-time": "time"}.get(schema.get("format", ""), schema.get("type", "any JSON"))
    return f"{name}{_bounds(schema)}"


def _bounds(schema: dict[str, Any]) -> str:
    if schema.get("type") == "string":
        return ""
    low, high, over = schema.get("minimum"), schema.get("maximum"), schema.get("exclusiveMinimum")
    if low is not None and high is not None:
        return f" {low:,}–{high:,}"
    bounds = {"over": over, "from": low, "to": high}
    return "".join(f" {word} {value:,}" for word, value in bounds.items() if value is not None)


def _default(value: Any) -> str:
    if value is PydanticUndefined:
        return "required"
    if value is None or value in ("", [], (), {}):
        return ""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_defaults=True)
    return f"`{orjson.dumps(value, default=str).decode()}`"
