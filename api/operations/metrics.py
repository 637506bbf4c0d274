"""Metrics: what this process has counted, and the state of the background work, in the text format of Prometheus.

Each process counts for itself and has an address of its own: a server /metrics, a worker or a scheduler that of
`RECOLLECT_WORKER_PORT`. Prometheus adds them up. The gauges of the background work are those of the data folder and the
broker, so that every process shows the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.operations.background_state import BackgroundState, background_state
from recollect.api.operations.state_monitor import CheckedState, open_files
from recollect.events.envelope import now_us
from recollect.events.instruments import INSTRUMENTS, Counter, Histogram, Instrument
from recollect.jobs.queue.backlog import PROJECTORS
from recollect.jobs.queue.run_store import ROLES


def prometheus_metrics(
    parts: MemoryParts, checked: CheckedState | None = None, counted: Iterable[Metric] | None = None
) -> bytes:
    """Return all metrics.

    Parameters:
        checked: the state of the background work; it is read when None.
        counted: what all processes of a server have counted; when None, this process is the only one.
    """
    registry = CollectorRegistry()
    registry.register(_Metrics(parts, checked, counted_metrics() if counted is None else counted))
    if counted is None:
        # Memory, processor time and file descriptors of this process, on Linux.
        ProcessCollector(registry=registry)
    return generate_latest(registry)


def counted_metrics() -> Iterator[Metric]:
    """Yield the counters and histograms of this process."""
    return map(_family, INSTRUMENTS.values())


class _Metrics(Collector):
    """The metrics of one scrape."""

    def __init__(self, parts: MemoryParts, checked: CheckedState | None, counted: Iterable[Metric]) -> None:
        self._parts = parts
        self._checked = checked
        # A registry collects twice: first for the names.
        self._counted = list(counted)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        yield from self._counted
        state = background_state(self._parts) if self._checked is None else self._checked.background
        present_us = now_us()
        yield from _backlog_gauges(state, present_us)
        yield from _job_gauges(state, present_us)
        yield from self._process_gauges(state)
        yield from self._llm_gauges()

    def _process_gauges(self, state: BackgroundState) -> Iterator[Metric]:
        # Of a check, so that no lock of a part that waits for the log is waited for in a request.
        parked = self._parts.read_models.live.parked() if self._checked is None else self._checked.report["parked"]
        yield _gauge("build_info", "The version of Recollect", {version("recollect"): 1.0}, "version")
        yield _gauge(
            "projections_parked",
            "Namespaces whose projection has stopped",
            {"read_models": len(parked)},
            "projector",
        )
        opened = open_files(self._parts) if self._checked is None else self._checked.open_files
        yield _gauge("open_databases", "Files of read models and vectors that are open", opened)
        sizes = {} if self._checked is None else self._checked.database_bytes
        yield _gauge("database_bytes", "Bytes of the files of the data folder, once they are counted", sizes, "kind")
        if state.free_bytes is not None:
            yield _gauge("disk_free_bytes", "Free bytes of the disk of the data folder", state.free_bytes)

    def _llm_gauges(self) -> Iterator[Metric]:
        llm = self._parts.job_context.llm
        if llm is None:
            return
        status = llm.status() if self._checked is None else self._checked.report["llm"]
        tokens, budget = status["tokens_today"], status["tokens_per_day"]
        yield _gauge("llm_tokens_today", "Tokens that the language model has used today (UTC)", tokens)
        yield _gauge("llm_budget_spent", "1 while the tokens of today are spent", float(tokens >= budget))
        is_paused = status["paused_until"] is not None
        yield _gauge("llm_paused", "1 while requests to the language model pause after failures", float(is_paused))


def _family(instrument: Instrument) -> Metric:
    """Return the metric of an instrument."""
    if isinstance(instrument, Counter):
        counter = CounterMetricFamily(instrument.name, instrument.description, labels=instrument.labels)
        for labels, value in instrument.values().items():
            counter.add_metric(labels, value)
        return counter
    assert isinstance(instrument, Histogram)
    histogram = HistogramMetricFamily(instrument.name, instrument.description, labels=instrument.labels)
    bounds = [*map(str, map(float, instrument.buckets)), "+Inf"]
    for labels, (counts, total) in instrument.values().items():
        histogram.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), total)
    return histogram


def _backlog_gauges(state: BackgroundState, present_us: int) -> Iterator[Metric]:
    lag = state.lag(present_us)
    yield _gauge(
        "projection_lag_events",
        "Events to project, episodes to embed, messages to read, over all namespaces",
        {name: lag[name] for name in PROJECTORS},
        "projector",
    )
    yield _gauge("projection_lag_events_max", "The same of the namespace with the most", lag["most"], "projector")
    yield _gauge(
        "projection_lag_seconds",
        "Age of the oldest event with such work",
        {name: age or 0.0 for name, age in lag["ages_seconds"].items()},
        "projector",
    )
    yield _gauge("projection_lag_partial", "1 while the lag is that of some namespaces only", float(lag["at_least"]))
    yield _gauge("namespaces_behind", "Namespaces with such work", lag["namespaces_behind"])
    yield _gauge("namespaces", "Namespaces in the log", state.scan.compared)


def _job_gauges(state: BackgroundState, present_us: int) -> Iterator[Metric]:
    runs = state.runs
    yield _gauge("queue_messages", "Messages that wait for a worker", state.queues, "queue")
    yield _gauge("dead_letters", "Messages that failed for good", len(state.dead_letters))
    started = {run.job: run.started_at_us / 1e6 for run in runs}
    yield _gauge("job_last_started_seconds", "When a scheduled job last started, in seconds since 1970", started, "job")
    errors = {run.job: run.errors for run in runs}
    yield _gauge("job_last_errors", "Namespaces that failed in the last run of a job", errors, "job")
    running = {run.job: float(run.ended_at_us is None) for run in runs}
    yield _gauge("job_running", "1 while a job runs", running, "job")
    alive = [heartbeat.role for heartbeat in state.heartbeats if heartbeat.is_alive(present_us)]
    yield _gauge(
        "processes_alive", "Processes with a recent heartbeat", {role: alive.count(role) for role in ROLES}, "role"
    )
    yield _gauge("broker_up", "1 while the broker answers", float(state.broker_problem is None))
    yield _gauge("log_up", "1 while the log can be read", float(state.log_problem is None))


def _gauge(name: str, description: str, value: float | Mapping[str, float], *labels: str) -> Metric:
    """Return the gauge ``recollect_<name>``: a number, or one for each value of its label."""
    gauge = GaugeMetricFamily(f"recollect_{name}", description, labels=labels)
    values: Iterable[tuple[tuple[str, ...], float]]
    values = [((key,), number) for key, number in value.items()] if isinstance(value, Mapping) else [((), value)]
    for label_values, number in values:
        gauge.add_metric(label_values, number)
    return gauge
