"""Quarantine: labels texts that look like instructions, and holds back those that a user did not write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Literal

import orjson
import uuid_utils

from recollect.events.catalogue import LABELLED_TYPES
from recollect.events.envelope import EventDraft
from recollect.events.intake.instructions import (
    any_looks_like_instructions,
    lines_like_instructions,
    looks_like_instructions,
    may_look_like_instructions,
)
from recollect.events.intake.payload_lines import to_read
from recollect.events.json_texts import json_texts
from recollect.events.memory_kinds import ID_LETTERS, MEMORY_KINDS, STATING_EVENTS
from recollect.events.validation import draft

#: Who wrote a text, as its event shows.
Provenance = Literal["user", "assistant", "tool", "document", "import", "derived"]
#: How far a text may be trusted, from 0 to 3: the words of a user count most, those of a page least.
TRUST: dict[Provenance, int] = {"user": 3, "assistant": 2, "import": 2, "derived": 2, "tool": 1, "document": 1}
#: The label of a text that looks like instructions.
INSTRUCTIONS_LABEL = "instructions"
_LABEL_BYTES = INSTRUCTIONS_LABEL.encode()
#: The label of a text that an import brought from another program.
IMPORTED_LABEL = "imported"
#: The label of an imported text that the user of the memory did not say.
OTHERS_LABEL = "imported: others"
#: The beginning of the ids of imported events. A producer that uses it lowers the trust in its own event only.
IMPORTED_PREFIX = "import:"

#: Characters of a text of a user or an assistant that are read.
_CONVERSATION_CHARS_MAX = 2_000
#: Types of what another program remembered, which wait for a review like an extraction.
_REMEMBERED_TYPES = frozenset(STATING_EVENTS)
#: The lists of extracted items that wait for a review.
_EXTRACTED = tuple(kind.list_name for kind in MEMORY_KINDS if kind.is_quarantined)


def imported_id(kind: str, item: str) -> str:
    """Return the id of an imported event: the same item of a format has the same id in every import."""
    return f"{IMPORTED_PREFIX}{kind}:{item}"


def is_imported(event_id: str) -> bool:
    """Return whether an import appended the event of this id."""
    return event_id.startswith(IMPORTED_PREFIX)


def provenance_of(event_type: str, role: str | None = None, *, imported: bool = False) -> Provenance:
    """Return who wrote the text of an event of a type; of a message with a role.

    Parameters:
        imported: whether the event was imported.
    """
    own = _provenance_by_type(event_type, role)
    # What a tool or a page wrote is trusted less than an import.
    return "import" if imported and TRUST[own] >= TRUST["import"] else own


def _provenance_by_type(event_type: str, role: str | None) -> Provenance:
    """Return who wrote the text of an event that was not imported."""
    if event_type == "message.added":
        return "user" if role == "user" else "assistant" if role in ("assistant", "system") else "tool"
    if event_type == "document.added":
        return "document"
    return "tool" if event_type == "action.recorded" else "derived"


def least_trust(provenances: Iterable[Provenance]) -> int:
    """Return the trust of what was derived from texts; of derived text, when none of them is known."""
    return min(map(TRUST.__getitem__, provenances), default=TRUST["derived"])


def with_quarantine(drafts: Sequence[EventDraft], *, imported: bool = False) -> list[EventDraft]:
    """Return the drafts, labelled, and after them `memory.quarantined` for each text that has to wait for a review.

    Text of a user or an assistant is labelled only. Of an import, only what the user said is.

    Parameters:
        imported: the drafts come from another program, so its facts and preferences are read as well.
    """
    labelled = list(drafts)
    for place in to_read(drafts, lines_like_instructions):
        labelled[place] = _labelled(drafts[place])
    quarantines = [
        quarantine
        for event in labelled
        if event.type == "facts.extracted" or _LABEL_BYTES in event.payload
        for quarantine in _quarantines(event)
    ]
    if imported:
        quarantines += [quarantine for event in labelled for quarantine in _remembered(event)]
    return [*labelled, *quarantines]


def _remembered(event: EventDraft) -> Iterator[EventDraft]:
    """Yield the quarantine of a fact or a preference of another program that looks like instructions."""
    if event.type in _REMEMBERED_TYPES and any(map(looks_like_instructions, json_texts(orjson.loads(event.payload)))):
        yield _quarantine(event, str(event.id), "memory")


def _labelled(event: EventDraft) -> EventDraft:
    """Return an event with the label of instructions, and with an id, if its text looks like them."""
    if event.type not in LABELLED_TYPES or not may_look_like_instructions(event.payload.decode()):
        return event
    payload: dict[str, Any] = orjson.loads(event.payload)
    labels = payload.get("labels", [])
    # A label on what a user or an assistant says decides nothing, so little of it is read.
    decides_nothing = payload.get("role") in ("user", "assistant") and OTHERS_LABEL not in labels
    chars_max = _CONVERSATION_CHARS_MAX if decides_nothing else None
    texts = [text[:chars_max] for text in json_texts(payload)]
    if INSTRUCTIONS_LABEL in labels or not any_looks_like_instructions(texts):
        return event
    payload["labels"] = sorted([*labels, INSTRUCTIONS_LABEL])
    return event._replace(id=event.id or str(uuid_utils.uuid7()), payload=orjson.dumps(payload))


def _quarantines(event: EventDraft) -> Iterator[EventDraft]:
    """Yield the quarantines of what an event adds and of what was extracted by it."""
    if event.type == "facts.extracted":
        payload: dict[str, Any] = orjson.loads(event.payload)
        for name in _EXTRACTED:
            for number, item in enumerate(payload.get(name, ())):
                if any(map(looks_like_instructions, json_texts(item))):
                    yield _quarantine(event, f"{event.id}#{ID_LETTERS[name]}{number}", "memory")
    elif event.type in LABELLED_TYPES and _LABEL_BYTES in event.payload:
        payload = orjson.loads(event.payload)
        roles = {payload.get("role"), *(turn["role"] for turn in payload.get("turns", ()))}
        trust = least_trust(provenance_of(event.type, role) for role in roles)
        labels = payload.get("labels", ())
        is_of_others = trust <= 1 or event.type == "observation.recorded" or OTHERS_LABEL in labels
        if INSTRUCTIONS_LABEL in labels and is_of_others:
            if event.type == "document.added":
                yield _quarantine(event, payload["document_id"], "document")
            else:
                yield _quarantine(event, str(event.id), "memory")


def _quarantine(event: EventDraft, memory_id: str, kind: str) -> EventDraft:
    """Return the quarantine of one memory of `event`; its id is deterministic, so that a retry adds nothing."""
    digest = sha256(f"{event.id}\n{memory_id}".encode(errors="replace")).hexdigest()[:32]
    quarantine = draft(
        {
            "id": f"quarantine:{digest}",
            "type": "memory.quarantined",
            "session_id": event.session_id,
            "actor": "intake",
            "causation_id": event.id,
            "payload": {"memory_id": memory_id, "kind": kind, "reasons": [INSTRUCTIONS_LABEL]},
        }
    )
    return quarantine._replace(occurred_at_us=event.occurred_at_us)
