"""Events page: every event type with the fields of its payload, from the catalogue."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic import BaseModel
from schema_tables import field_list, first_paragraph, table

from recollect.events import catalogue
from recollect.events.catalogue import DERIVED_EVENTS, PRODUCER_EVENTS, Envelope, type_of


def render() -> str:
    """Return the envelope, the event types of producers, those of jobs, and the nested models of their payloads."""
    return "\n\n".join(
        (
            f"## Fields of every event\n\nBeside `type` and `payload`:\n\n{field_list(Envelope)}",
            "## Events of producers",
            *map(_event, PRODUCER_EVENTS),
            "## Events of jobs",
            table(("type", "meaning", "fields of the payload"), [*map(_derived_row, DERIVED_EVENTS)]),
            "## Nested objects",
            *(
                f"### {model.__name__}\n\n{first_paragraph(model)}\n\n{field_list(model)}"
                for model in sorted(_nested(), key=lambda model: model.__name__)
            ),
        )
    )


def _payload(event: type[Envelope]) -> type[BaseModel]:
    payload: Any = event.model_fields["payload"].annotation
    return payload


def _event(event: type[Envelope]) -> str:
    name = type_of(event)
    meaning = first_paragraph(event).removeprefix(f"`{name}`: ")
    required = " It is required." if event.model_fields["session_id"].is_required() else ""
    return f"### {name}\n\n{meaning[0].upper()}{meaning[1:]}{required}{_payload_text(event)}"


def _payload_text(event: type[Envelope]) -> str:
    """Return the fields of a payload, or which earlier event has the same ones."""
    payload = _payload(event)
    first = next(one for one in PRODUCER_EVENTS if _payload(one) is payload)
    if first is not event:
        return f" Payload: that of [{type_of(first)}](#{type_of(first).replace('.', '')})."
    return f"\n\n{field_list(payload)}"


def _derived_row(event: type[Envelope]) -> tuple[str, str, str]:
    """Return the row of an event that only jobs append."""
    meaning = first_paragraph(event).removeprefix(f"`{type_of(event)}`: ")
    return (
        f"`{type_of(event)}`",
        f"{meaning[0].upper()}{meaning[1:]}",
        ", ".join(f"`{name}`" for name in _payload(event).model_fields),
    )


def _nested() -> set[type[BaseModel]]:
    """Return the models that payloads refer to."""
    names: set[str] = set()
    for event in PRODUCER_EVENTS:
        names |= set(_payload(event).model_json_schema().get("$defs", {}))
    classes = [getattr(catalogue, name) for name in names]
    return {one for one in classes if inspect.isclass(one) and issubclass(one, BaseModel)}
