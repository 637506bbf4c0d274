"""Append telemetry: the span of an append, and the version that the lines of the log show."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.events.envelope import Appended, EventDraft
from recollect.events.log_context import note
from recollect.events.tracing import Span, is_tracing

#: Events that remove something from the memory.
_DELETING = frozenset(("document.removed", "fact.retracted", "memory.forgotten", "memory.invalidated"))
#: Events that change what the memory has.
_UPDATING = frozenset(
    (
        "edit.undone",
        "entity.separated",
        "fact.corrected",
        "memory.ended",
        "memory.pinned",
        "memory.reviewed",
        "memory.unpinned",
    )
)


def operation_of(drafts: Sequence[EventDraft]) -> str:
    """Return the name of the conventions for what events do: that of the first one which is not an addition."""
    if not is_tracing():
        return ""
    for draft in drafts:
        if draft.type in _DELETING:
            return "delete_memory"
        if draft.type in _UPDATING:
            return "update_memory"
    return "create_memory"


def note_appended(span: Span, recorded: Sequence[Appended]) -> None:
    """Add what was appended to its span and to the lines of the log."""
    if not recorded:
        return
    note("event_version", recorded[-1].version)
    span.set("gen_ai.memory.record.count", len(recorded))
    span.set("recollect.event.version", recorded[-1].version)
    if len(recorded) == 1:
        span.set("gen_ai.memory.record.id", recorded[0].id)
