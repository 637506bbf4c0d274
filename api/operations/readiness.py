"""Readiness: whether a process can serve requests, from the last check; the answer of /health/ready.

It is for anyone who reaches the address, so that it names no path, host or namespace; /health has the details.
"""

from __future__ import annotations

import time
from typing import Any

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.operations.health import has_append_failed
from recollect.api.operations.state_monitor import StateMonitor
from recollect.projections.schema.schema import SCHEMA_VERSION

#: Seconds after which a state is too old to rely on: six checks.
_AGE_SECONDS_MAX = 30.0
#: Steps of a check without whose answer no request can be served. A server on a busy machine compares backlogs for
#: seconds, and serves meanwhile.
_NEEDED_PARTS = frozenset({"disk", "log"})


def readiness(parts: MemoryParts, monitor: StateMonitor, *, needs_broker: bool = False) -> dict[str, Any]:
    """Return whether the process is ready, and why not.

    Parameters:
        needs_broker: whether the process has no work without the broker, as a worker. A server appends and retrieves
            without it, so that a broker that is away must not take it out of service.
    """
    state, checks = monitor.state, dict[str, str]()
    if state is None:
        checks["state"] = "the first check is not done yet"
    else:
        background = state.background
        if time.monotonic() - state.checked_at > _AGE_SECONDS_MAX:
            checks["state"] = "the last check is too old"
        if background.log_problem is not None:
            checks["log"] = "the log cannot be read"
        if not background.is_writable:
            checks["folder"] = "the data folder cannot be written"
        free, free_min = background.free_bytes, parts.settings.storage.disk_free_bytes_min
        if free is not None and free < free_min:
            checks["disk"] = f"less than {free_min} bytes are free"
        if needs_broker and background.broker_problem is not None:
            checks["broker"] = "the broker does not answer"
    overdue = monitor.overdue()
    needed = _NEEDED_PARTS | {"broker"} if needs_broker else _NEEDED_PARTS
    if overdue is not None and overdue[0] in needed:
        checks.setdefault(overdue[0], f"no answer for {overdue[1]:.0f} s")
    if has_append_failed(parts):
        checks.setdefault("log", "the last append failed")
    model = "unknown" if state is None else state.report["embedding"]["state"]
    return {
        "ready": not checks,
        "reasons": [f"{name}: {reason}" for name, reason in checks.items()],
        "checks": {
            "log": checks.get("log", "ok"),
            "folder": checks.get("folder", "ok"),
            "disk": checks.get("disk", "ok"),
            "broker": _broker(monitor),
            "model": model,
            "schema": SCHEMA_VERSION,
        },
        "embedding": model,
        "log": parts.log.log_id,
    }


def _broker(monitor: StateMonitor) -> str:
    if monitor.state is None:
        return "unknown"
    overdue = monitor.overdue()
    is_away = monitor.state.background.broker_problem is not None or (overdue is not None and overdue[0] == "broker")
    return "unreachable" if is_away else "ok"
