"""Health: the answer of /health, with what an operator should repair."""

from __future__ import annotations

import time
from typing import Any

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.operations.background_state import BackgroundState, background_state
from recollect.events.counted_nouns import counted
from recollect.events.envelope import now_us, rfc3339
from recollect.jobs.queue.run_store import ROLES, Heartbeat, Run

#: Seconds for which a failed append makes a server unready. Without requests it cannot know when the disk or the
#: database is well again, so that it then offers itself again.
_APPEND_FAILED_SECONDS = 30.0


def health_report(parts: MemoryParts, state: BackgroundState | None = None) -> dict[str, Any]:
    """Return the state of every part, and the problems with what to do about each.

    Parameters:
        state: the state of the background work; it is read when None.
    """
    state, present_us = state or background_state(parts), now_us()
    parked = [
        {"namespace": parking.namespace, "version": parking.version, "error": parking.error}
        for parking in parts.read_models.live.parked()
    ]
    embedding = parts.active_model.status()
    llm = parts.job_context.llm
    problems = _problems(state, present_us) + _disk_problems(parts, state)
    if llm is not None and (llm_problem := llm.problem()) is not None:
        problems.append(llm_problem)
    if has_append_failed(parts):
        problems.append("the last append failed, and the log of the process says why; one that succeeds ends this")
    if any(status["state"] == "failed" for status in (embedding, embedding.get("next", embedding))):
        problems.append("the embedding model failed to load")
    if parked:
        problems.append(f"{counted(len(parked), 'namespace')} parked; `recollect jobs` and GET /v1/failures say why")
    return {
        "status": "degraded" if problems else "ok",
        "problems": problems,
        "checked_at": rfc3339(present_us),
        "log_id": parts.log.log_id,
        "embedding": embedding,
        "workers": parts.workers.status() if parts.workers else {"running": False},
        "parked": parked,
        "lag": state.lag(present_us),
        "queues": state.queues,
        "disk": {
            "free_bytes": state.free_bytes,
            "free_bytes_min": parts.settings.storage.disk_free_bytes_min,
            "writable": state.is_writable,
        },
        "jobs": [run_json(run) for run in state.runs],
        "processes": [_process_json(heartbeat, present_us) for heartbeat in state.heartbeats],
        "dead_letters": len(state.dead_letters),
        "llm": llm.status() if llm is not None else None,
    }


def has_append_failed(parts: MemoryParts) -> bool:
    """Return whether the last append failed for reasons of the disk or the database, a short while ago."""
    failed_at: float | None = getattr(parts.log, "append_failed_at", None)
    return failed_at is not None and time.monotonic() - failed_at < _APPEND_FAILED_SECONDS


def run_json(run: Run) -> dict[str, Any]:
    """Return a job run as JSON, with times in RFC 3339."""
    return {
        "job": run.job,
        "slot": rfc3339(run.scheduled_at_us),
        "started": rfc3339(run.started_at_us),
        "ended": None if run.ended_at_us is None else rfc3339(run.ended_at_us),
        "namespaces": run.namespaces,
        "events": run.events,
        "errors": run.errors,
        "error": run.error,
    }


def _process_json(heartbeat: Heartbeat, present_us: int) -> dict[str, Any]:
    return {
        "role": heartbeat.role,
        "host": heartbeat.host,
        "pid": heartbeat.pid,
        "last_beat": rfc3339(heartbeat.seen_at_us),
        "alive": heartbeat.is_alive(present_us),
    }


def _problems(state: BackgroundState, present_us: int) -> list[str]:
    """Return the problems of the background work, each with what to do about it."""
    problems = [state.problem] if state.problem else []
    alive_roles = {heartbeat.role for heartbeat in state.heartbeats if heartbeat.is_alive(present_us)}
    for role in ROLES:
        dead = [
            heartbeat for heartbeat in state.heartbeats if heartbeat.role == role and not heartbeat.is_alive(present_us)
        ]
        if not dead:
            continue
        last = f"{dead[-1].host} process {dead[-1].pid}"
        if role not in alive_roles:
            problems.append(f"no {role} is alive, the last was {last}; start `recollect {role}`")
        else:
            problems.append(f"a {role} has died ({last}) and others are alive; start it again, or wait ten minutes")
    waiting = sum(state.queues.values())
    if waiting and "worker" not in alive_roles and not state.problem:
        problems.append(f"{counted(waiting, 'message')} waiting and no worker is alive; start `recollect worker`")
    for run in state.runs:
        if run.errors:
            problems.append(f"job {run.job} failed for {counted(run.errors, 'namespace')}, such as {run.error}")
    if state.dead_letters:
        problems.append(f"{len(state.dead_letters)} dead letters; see `recollect jobs`")
    return problems


def _disk_problems(parts: MemoryParts, state: BackgroundState) -> list[str]:
    """Return the problems of the data folder's file system."""
    problems: list[str] = []
    free_min = parts.settings.storage.disk_free_bytes_min
    if state.free_bytes is not None and state.free_bytes < free_min:
        problems.append(
            f"the disk of the data folder has {state.free_bytes >> 20} MiB left, less than {free_min >> 20}; make "
            "room, or set RECOLLECT_DISK_FREE_BYTES_MIN"
        )
    if not state.is_writable:
        problems.append("the data folder cannot be written; check its owner, its mode and its mount")
    return problems
