"""How the parts are: what /health, /metrics and `recollect jobs` show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.events.envelope import now_us, rfc3339
from recollect.events.errors import RecollectError
from recollect.jobs.queue.backlog import Backlog, summed
from recollect.jobs.queue.run_store import ROLES, DeadLetter, Heartbeat, Run

#: Namespaces that are looked at for one answer; more are reported as "at least".
_BEHIND_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundState:
    """What goes on behind the answers."""

    behind: list[Backlog]
    #: Namespaces in the log, as far as they were counted.
    namespaces: int
    queues: dict[str, int]
    runs: list[Run]
    beats: list[Heartbeat]
    dead_letters: list[DeadLetter]
    #: What could not be looked up: the broker is away.
    problem: str | None


def background_state(parts: MemoryParts) -> BackgroundState:
    """Look at everything that runs behind the answers; nothing here raises when a part is away."""
    behind, namespaces, problem = list[Backlog](), 0, None
    queues, runs, beats, dead = dict[str, int](), list[Run](), list[Heartbeat](), list[DeadLetter]()
    try:
        behind, namespaces = parts.backlog.backlogs(_BEHIND_MAX)
    except RecollectError as error:
        problem = f"log: {error}"
    try:
        if parts.workers is not None:
            queues = parts.workers.queue_depths()
        runs, beats, dead = parts.run_store.runs(), parts.run_store.heartbeats(), parts.run_store.dead_letters()
    except Exception as error:
        problem = f"broker: {type(error).__name__}: {error}"
    return BackgroundState(
        behind=behind,
        namespaces=namespaces,
        queues=queues,
        runs=runs,
        beats=beats,
        dead_letters=dead,
        problem=problem,
    )


def health(parts: MemoryParts) -> dict[str, Any]:
    """Return how the parts are, and whether something needs a look."""
    back, present_us = background_state(parts), now_us()
    parked = [
        {"namespace": one.namespace, "version": one.version, "error": one.error} for one in parts.read_models.parked()
    ]
    embedding = parts.active_model.status()
    problems = _problems(back, present_us)
    if any(one["state"] == "failed" for one in (embedding, embedding.get("next", embedding))):
        problems.append("the embedding model failed to load")
    if parked:
        problems.append(f"{len(parked)} namespaces are parked; repair them with: recollect replay --namespace NAME")
    return {
        "status": "degraded" if problems else "ok",
        "problems": problems,
        "log_id": parts.log.log_id,
        "embedding": embedding,
        "workers": parts.workers.status() if parts.workers else {"running": False},
        "parked": parked,
        "lag": summed(back.behind, present_us, most=_BEHIND_MAX),
        "queues": back.queues,
        "jobs": [run_json(run) for run in back.runs],
        "processes": [
            {
                "role": beat.role,
                "host": beat.host,
                "pid": beat.pid,
                "last_beat": rfc3339(beat.seen_at_us),
                "alive": beat.is_alive(present_us),
            }
            for beat in back.beats
        ],
        "dead_letters": len(back.dead_letters),
        "llm": parts.job_context.llm.status() if parts.job_context.llm else None,
    }


def run_json(run: Run) -> dict[str, Any]:
    """Return a run as the outside sees it."""
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


def metrics(parts: MemoryParts) -> bytes:
    """Return the same in the text format of Prometheus."""
    back, present_us = background_state(parts), now_us()
    registry = CollectorRegistry()

    def gauge(name: str, what: str, values: dict[str, float], label: str | None = None) -> None:
        one = Gauge(f"recollect_{name}", what, [label] if label else [], registry=registry)
        for key, value in values.items():
            (one.labels(key) if label else one).set(value)

    lag = summed(back.behind, present_us, most=_BEHIND_MAX)
    gauge(
        "behind",
        "Events, episodes and messages that a projection has before it",
        {name: lag[name] for name in ("read_models", "embeddings", "extraction")},
        "projection",
    )
    gauge("namespaces_behind", "Namespaces with something to do", {"": lag["namespaces_behind"]})
    gauge("namespaces", "Namespaces in the log", {"": back.namespaces})
    gauge("oldest_unprojected_seconds", "Age of the oldest event that is not folded", {"": lag["oldest_seconds"] or 0})
    gauge("parked_namespaces", "Namespaces that stopped at an event", {"": len(parts.read_models.parked())})
    gauge("queue_messages", "Messages that wait", dict[str, float](back.queues), "queue")
    gauge("dead_letters", "Messages that failed for good", {"": len(back.dead_letters)})
    gauge("job_last_started_seconds", "When a job last began", {r.job: r.started_at_us / 1e6 for r in back.runs}, "job")
    gauge("job_last_errors", "Namespaces that failed in the last run", {r.job: r.errors for r in back.runs}, "job")
    gauge("job_running", "Whether a job is going on", {r.job: float(r.ended_at_us is None) for r in back.runs}, "job")
    roles = [beat.role for beat in back.beats if beat.is_alive(present_us)]
    alive = {role: float(roles.count(role)) for role in ROLES}
    gauge("processes_alive", "Workers and schedulers that were heard of lately", alive, "role")
    if parts.job_context.llm is not None:
        spent = parts.job_context.llm.status()
        gauge("llm_tokens_today", "Tokens that the language model has cost today (UTC)", {"": spent["tokens_today"]})
    gauge("broker_up", "Whether the broker answers", {"": float(back.problem is None)})
    return generate_latest(registry)


def _problems(back: BackgroundState, present_us: int) -> list[str]:
    """Say what needs a look, and what to do about it."""
    problems = [back.problem] if back.problem else []
    alive = {beat.role for beat in back.beats if beat.is_alive(present_us)}
    for role in ROLES:
        gone = [beat for beat in back.beats if beat.role == role and not beat.is_alive(present_us)]
        if gone and role not in alive:
            last = f"{gone[-1].host} process {gone[-1].pid}"
            problems.append(f"no {role} is alive, the last was {last}; start `recollect {role}`")
    waiting = sum(back.queues.values())
    if waiting and "worker" not in alive and not back.problem:
        problems.append(f"{waiting} messages wait and no worker is alive; start `recollect worker`")
    for run in back.runs:
        if run.errors:
            problems.append(f"job {run.job} failed for {run.errors} namespaces, such as {run.error}")
    if back.dead_letters:
        problems.append(f"{len(back.dead_letters)} dead letters; see `recollect jobs`")
    return problems
