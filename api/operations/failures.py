"""Failures: what the background work could not do, and what an operator does about it."""

from __future__ import annotations

from typing import Any

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.operations.background_state import BackgroundState
from recollect.api.operations.dead_letters import list_dead_letters
from recollect.events.envelope import now_us, rfc3339
from recollect.events.errors import LogRewound, NotFound
from recollect.events.limits import check_namespace
from recollect.events.validation import draft
from recollect.jobs.queue.backlog import backlog_report
from recollect.projections.projector.skipped_events import SKIPPED, skip_id

#: Namespaces in each part of the report.
_ITEMS_MAX = 200
_NO_EVENT = {"event_id": None, "type": None, "recorded_at": None}


def list_failures(parts: MemoryParts, state: BackgroundState) -> dict[str, Any]:
    """Return the namespaces that are parked, the dead letters, and the namespaces that are behind the log."""
    names = {parked.namespace for parked in parts.read_models.live.parked()}
    names |= {backlog.namespace for backlog in (*state.scan.behind, *state.scan.waiting) if backlog.is_parked}
    parked = (_parked(parts, name) for name in sorted(names)[:_ITEMS_MAX])
    return {
        "parked": [item for item in parked if item is not None],
        "dead_letters": list_dead_letters(parts)["items"],
        "lag": backlog_report(state.scan, now_us(), _ITEMS_MAX),
    }


def retry_parked(parts: MemoryParts, namespace: str) -> dict[str, Any]:
    """Project a namespace again from the event at which it is parked; return how far it is, and where it is parked now.

    Raises:
        NotFound: the namespace is not parked.
    """
    check_namespace(namespace)
    _require_parked(parts, namespace)
    progress = parts.read_models.retry(namespace)
    return {"version": progress.version, "head": progress.head, "parked": _parked(parts, namespace)}


def skip_parked(parts: MemoryParts, namespace: str, version: int, reason: str) -> dict[str, Any]:
    """Leave out the event at which a namespace is parked, and go on; return what `retry_parked` returns.

    The log records it as `event.skipped`. It holds as long as the event cannot be projected: a version of Recollect
    that can projects it when it next builds the read model.

    Parameters:
        version: the version of the event, so that no other one is left out.
        reason: why; it is recorded.

    Raises:
        NotFound: the namespace is not parked at this version. InvalidEvent: the reason is empty, or too long.
    """
    check_namespace(namespace)
    if _require_parked(parts, namespace)["version"] != version:
        raise NotFound(f"the namespace is not parked at version {version}", field="version")
    [event] = parts.log.read(namespace, after=version - 1, limit=1)
    payload = {"event_id": event.id, "reason": reason}
    parts.log.append(namespace, [draft({"type": SKIPPED, "id": skip_id(event.id), "payload": payload})])
    return retry_parked(parts, namespace)


def _require_parked(parts: MemoryParts, namespace: str) -> dict[str, Any]:
    """Return where a namespace is parked; raise `NotFound` when it is not."""
    parked = _parked(parts, namespace)
    if parked is None:
        raise NotFound("the namespace is not parked; `recollect jobs` lists those that are", field="namespace")
    return parked


def _parked(parts: MemoryParts, namespace: str) -> dict[str, Any] | None:
    """Return the event at which a namespace is parked, without its text; None when it is not."""
    try:
        parked = parts.read_models.progress(namespace).parked
    except LogRewound as error:
        # The log does not have the event, or another one in its place.
        return {"namespace": namespace, "version": error.version, "error": str(error)} | _NO_EVENT
    if parked is None:
        return None
    [event] = parts.log.read(namespace, after=parked.version - 1, limit=1)
    return {
        "namespace": namespace,
        "version": parked.version,
        "event_id": event.id,
        "type": event.type,
        "recorded_at": rfc3339(event.recorded_at_us),
        "error": parked.error,
    }
