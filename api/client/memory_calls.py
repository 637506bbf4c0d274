"""Memory calls: the requests that read, change, review, export and erase memories.

A change is not sent again when its answer was lost, since a second one is another event, or is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.api.client import answers
from recollect.api.client.call import Call, encoded, id_part, namespace_path, query

if TYPE_CHECKING:
    from recollect.api.as_of import AsOf
    from recollect.api.memory.memory_review import Decision
    from recollect.api.receipt_types import ErasurePreview, Receipt
    from recollect.api.result_types import (
        Forgotten,
        JudgedAnswer,
        MemoryItem,
        QuarantineItem,
        QuarantinePage,
        SubjectExport,
        Undone,
    )


def get(namespace: str, memory_id: str, as_of: AsOf) -> Call[MemoryItem]:
    """Describe `Recollect.get`."""
    return Call(
        method="GET", path=_memory_path(namespace, memory_id), parameters=query({"as_of": as_of}), read=answers.mapping
    )


def update(namespace: str, memory_id: str, text: str | None, changes: Mapping[str, Any]) -> Call[MemoryItem]:
    """Describe `Recollect.update`."""
    changes = changes if text is None else {"text": text, **changes}
    return Call(
        method="PATCH",
        path=_memory_path(namespace, memory_id),
        body=encoded(changes, with_none=True),
        read=answers.mapping,
        is_repeatable=False,
    )


def change(namespace: str, memory_id: str, name: str, fields: Mapping[str, Any]) -> Call[Any]:
    """Describe `Recollect.pin`, `unpin`, `end` and `separate`.

    Parameters:
        name: the last part of the path.
        fields: the body.
    """
    return Call(
        method="POST",
        path=f"{_memory_path(namespace, memory_id)}/{name}",
        body=encoded(fields),
        read=answers.mapping,
        is_repeatable=False,
    )


def forget(namespace: str, memory_id: str, reason: str | None) -> Call[Forgotten]:
    """Describe `Recollect.forget`."""
    return Call(
        method="DELETE",
        path=_memory_path(namespace, memory_id),
        parameters=query({"reason": reason}),
        read=answers.mapping,
        is_repeatable=False,
    )


def undo(namespace: str, event_id: str, reason: str | None) -> Call[Undone]:
    """Describe `Recollect.undo`."""
    return Call(
        method="POST",
        path=namespace_path(namespace, "undo"),
        body=encoded({"event_id": event_id, "reason": reason}),
        read=answers.mapping,
        is_repeatable=False,
    )


def quarantine(namespace: str, status: str | None, after: int, limit: int) -> Call[QuarantinePage]:
    """Describe `Recollect.quarantine`."""
    parameters = {"status": "all" if status is None else status, "after": after, "limit": limit}
    return Call(
        method="GET", path=namespace_path(namespace, "quarantine"), parameters=query(parameters), read=answers.page
    )


def review(namespace: str, memory_id: str, decision: Decision, reason: str | None) -> Call[QuarantineItem]:
    """Describe `Recollect.review`."""
    return Call(
        method="POST",
        path=namespace_path(namespace, "quarantine", id_part(memory_id), "review"),
        body=encoded({"decision": decision, "reason": reason}),
        read=answers.mapping,
        is_repeatable=False,
    )


def record_answer(namespace: str, text: str, cited: Sequence[str], trace_id: str | None) -> Call[JudgedAnswer]:
    """Describe `Recollect.record_answer`."""
    return Call(
        method="POST",
        path=namespace_path(namespace, "answers"),
        body=encoded({"text": text, "cited": list(cited), "trace_id": trace_id}),
        read=answers.mapping,
        is_repeatable=False,
    )


def export_subject(namespace: str, subject: str | None) -> Call[SubjectExport]:
    """Describe `Recollect.export_subject`."""
    return Call(
        method="GET",
        path=namespace_path(namespace, "export"),
        parameters=query({"subject": subject}),
        read=answers.mapping,
        duration="long",
    )


def erase(
    namespace: str,
    *,
    everything: bool,
    subject: str | None,
    session_id: str | None,
    event_ids: Sequence[str] | None,
    dry_run: bool,
    reason: str | None,
    requested_by: str | None,
) -> Call[Receipt | ErasurePreview]:
    """Describe `Recollect.erase`."""
    scope = {"everything": everything, "subject": subject, "session_id": session_id, "event_ids": event_ids}
    return Call(
        method="POST",
        path=namespace_path(namespace, "erase"),
        body=encoded({**scope, "dry_run": dry_run, "reason": reason, "requested_by": requested_by}),
        read=answers.mapping,
        duration="long",
        is_repeatable=dry_run,
    )


def receipts(namespace: str | None) -> Call[list[Receipt]]:
    """Describe `Recollect.receipts`."""
    path = "/v1/receipts" if namespace is None else namespace_path(namespace, "receipts")
    return Call(method="GET", path=path, read=answers.items)


def readmit(namespace: str, subject: str | None) -> Call[bool]:
    """Describe `Recollect.readmit`."""
    return Call(
        method="POST",
        path=namespace_path(namespace, "readmit"),
        body=encoded({"subject": subject}),
        read=lambda answer: bool(answer["readmitted"]),
        is_repeatable=False,
    )


def _memory_path(namespace: str, memory_id: str) -> str:
    return namespace_path(namespace, "memories", id_part(memory_id))
