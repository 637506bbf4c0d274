"""Events page: every event type with the fields of its payload, from the catalogue."""

from __future__ import annotations

import inspect
from typing import Any

from pydantic import BaseModel
from schema_tables import field_table, first_paragraph

from recollect.events import catalogue
from recollect.events.catalogue import DERIVED_EVENTS, PRODUCER_EVENTS, Envelope, type_of


def render() -> str:
    """Return the envelope, the event types of producers, those of jobs, and the nested models of their payloads."""
    return "\n\n".join(
        (
            f"## Fields of every event\n\nBeside `type` and `payload`:\n\n{field_table(Envelope)}",
            "## Events of producers",
            *map(_event, PRODUCER_EVENTS),
            "## Events of jobs",
            *map(_event, DERIVED_EVENTS),
            "## Nested objects",
            *(
                f"### {model.__name__}\n\n{first_paragraph(model)}\n\n{field_table(model)}"
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
    required = "\n\n`session_id` is required." if event.model_fields["session_id"].is_required() else ""
    payload = _payload(event)
    text = f"### {name}\n\n{meaning[0].upper()}{meaning[1:]}{required}"
    return f"{text}\n\nPayload: {first_paragraph(payload)}\n\n{field_table(payload)}"


def _nested() -> set[type[BaseModel]]:
    """Return the models that payloads refer to."""
    names: set[str] = set()
    for event in PRODUCER_EVENTS + DERIVED_EVENTS:
        names |= set(_payload(event).model_json_schema().get("$defs", {}))
    classes = [getattr(catalogue, name) for name in names]
    return {one for one in classes if inspect.isclass(one) and issubclass(one, BaseModel)}
