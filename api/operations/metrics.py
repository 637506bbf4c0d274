"""Metrics: the gauges of /metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.operations.background_state import BackgroundState, background_state
from recollect.events.envelope import now_us
from recollect.jobs.queue.run_store import ROLES


def prometheus_metrics(parts: MemoryParts) -> bytes:
    """Return every gauge with its value at present."""
    state, present_us = background_state(parts), now_us()
    registry = CollectorRegistry()
    _add_backlog_gauges(registry, state, present_us)
    _add_job_gauges(registry, state, present_us)
    _add_gauge(
        registry,
        "parked_namespaces",
        "Namespaces whose read model stopped at an event that it cannot project",
        len(parts.read_models.parked()),
    )
    if parts.job_context.llm is not None:
        status = parts.job_context.llm.status()
        tokens, budget = status["tokens_today"], status["tokens_per_day"]
        _add_gauge(registry, "llm_tokens_today", "Tokens that the language model has used today (UTC)", tokens)
        _add_gauge(registry, "llm_budget_spent", "1 while the tokens of today are spent", float(tokens >= budget))
        _add_gauge(
            registry,
            "llm_paused",
            "1 while requests to the language model pause after failures",
            float(status["paused_until"] is not None),
        )
    return generate_latest(registry)


def _add_backlog_gauges(registry: CollectorRegistry, state: BackgroundState, present_us: int) -> None:
    lag = state.lag(present_us)
    _add_gauges(
        registry,
        "behind",
        "Events not projected, episodes not embedded, messages not read by extraction",
        "projection",
        {name: lag[name] for name in ("read_models", "embeddings", "extraction")},
    )
    _add_gauge(registry, "namespaces_behind", "Namespaces with a backlog", lag["namespaces_behind"])
    _add_gauge(registry, "namespaces", "Namespaces in the log", state.namespaces)
    _add_gauge(
        registry, "oldest_unprojected_seconds", "Age of the oldest event not projected", lag["oldest_seconds"] or 0
    )


def _add_job_gauges(registry: CollectorRegistry, state: BackgroundState, present_us: int) -> None:
    runs = state.runs
    _add_gauges(registry, "queue_messages", "Messages that wait for a worker", "queue", state.queues)
    _add_gauge(registry, "dead_letters", "Messages that failed for good", len(state.dead_letters))
    _add_gauges(
        registry,
        "job_last_started_seconds",
        "When a scheduled job last started, in seconds since 1970",
        "job",
        {run.job: run.started_at_us / 1e6 for run in runs},
    )
    _add_gauges(
        registry,
        "job_last_errors",
        "Namespaces that failed in the last run of a job",
        "job",
        {run.job: run.errors for run in runs},
    )
    _add_gauges(
        registry, "job_running", "1 while a job runs", "job", {run.job: float(run.ended_at_us is None) for run in runs}
    )
    alive_roles = [heartbeat.role for heartbeat in state.heartbeats if heartbeat.is_alive(present_us)]
    _add_gauges(
        registry,
        "processes_alive",
        "Processes with a recent heartbeat",
        "role",
        {role: float(alive_roles.count(role)) for role in ROLES},
    )
    _add_gauge(registry, "broker_up", "1 while the broker answers", float(state.problem is None))


def _add_gauge(registry: CollectorRegistry, name: str, description: str, value: float) -> None:
    """Add the gauge ``recollect_<name>`` without a label."""
    Gauge(f"recollect_{name}", description, registry=registry).set(value)


def _add_gauges(
    registry: CollectorRegistry, name: str, description: str, label: str, values: Mapping[str, float]
) -> None:
    """Add the gauge ``recollect_<name>`` with a value for each value of its label."""
    gauge = Gauge(f"recollect_{name}", description, [label], registry=registry)
    for label_value, value in values.items():
        gauge.labels(label_value).set(value)
