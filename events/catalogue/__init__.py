"""Catalogue: every event type as a pydantic model; the log accepts no other events.

It may use `events.limits`, `events.local_time` and `events.memory_kinds` only. Other modules import its names from this
package, not from its modules.
"""

# An event type has two classes: its payload (`Message`) and its envelope (`MessageAdded`), which fixes `type` and adds
# the fields that all events share. Types are past tense and dotted. The ids of derived events are deterministic, so
# that a job that runs twice records nothing new.

from __future__ import annotations

from functools import reduce
from typing import Annotated, Any

from pydantic import Field

from recollect.events.catalogue.conversation_events import *  # noqa: F403
from recollect.events.catalogue.conversation_events import CONVERSATION_EVENTS
from recollect.events.catalogue.derived_events import *  # noqa: F403
from recollect.events.catalogue.derived_events import (
    DERIVED_EVENTS,
    FactsExtracted,
    ObservationsRecorded,
    ObservationsReflected,
)
from recollect.events.catalogue.event_base import *  # noqa: F403
from recollect.events.catalogue.event_base import Envelope
from recollect.events.catalogue.knowledge_events import *  # noqa: F403
from recollect.events.catalogue.knowledge_events import KNOWLEDGE_EVENTS

# Payloads and the types of their fields are public too, so each section is exported as a whole.
from recollect.events.catalogue.memory_edit_events import *  # noqa: F403
from recollect.events.catalogue.memory_edit_events import ERASURE_EVENTS, MEMORY_EDIT_EVENTS

#: Events that bots append; `DERIVED_EVENTS` are appended by jobs.
PRODUCER_EVENTS: tuple[type[Envelope], ...] = CONVERSATION_EVENTS + KNOWLEDGE_EVENTS + MEMORY_EDIT_EVENTS


def type_of(event_class: type[Envelope]) -> str:
    """Return the dotted type of `event_class`."""
    name: Any = event_class.model_fields["type"].default
    return name


def payload_fields(event_class: type[Envelope]) -> frozenset[str]:
    """Return the names of the fields of the payload of `event_class`."""
    payload: Any = event_class.model_fields["payload"].annotation
    return frozenset(payload.model_fields)


#: Every event class by its dotted type.
EVENT_CLASSES: dict[str, type[Envelope]] = {type_of(cls): cls for cls in PRODUCER_EVENTS + DERIVED_EVENTS}

#: Types whose payload may name the version up to which a job has read; that version precedes the event's own.
CURSOR_EVENT_TYPES: frozenset[str] = frozenset(
    {type_of(FactsExtracted), type_of(ObservationsRecorded), type_of(ObservationsReflected)}
)

#: Types whose payload has labels.
LABELLED_TYPES: frozenset[str] = frozenset(
    name for name, cls in EVENT_CLASSES.items() if "labels" in payload_fields(cls)
)

#: Types of the events that record an erasure. They are never encrypted.
ERASURE_TYPES: frozenset[str] = frozenset(type_of(cls) for cls in ERASURE_EVENTS)

_APPENDABLE: list[Any] = [cls for cls in PRODUCER_EVENTS if cls not in ERASURE_EVENTS]
_APPENDABLE_UNION: Any = reduce(lambda union, cls: union | cls, _APPENDABLE)
#: Any event that a producer may append (`validation.producer_draft`), discriminated by `type`, for OpenAPI.
NewEvent = Annotated[_APPENDABLE_UNION, Field(discriminator="type")]
