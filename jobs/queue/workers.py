"""The workers of one process: threads by cost of work, the notifier, the sweep, signs of life, and the scheduler."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Any

import dramatiq

from recollect.events.envelope import now_us, rfc3339
from recollect.events.errors import RecollectError
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.queue.actors import QUEUES, declare_actors
from recollect.jobs.queue.backlog import BacklogMonitor
from recollect.jobs.queue.broker import open_broker
from recollect.jobs.queue.run_store import Heartbeat, Role, RunStore, new_heartbeat
from recollect.jobs.queue.scheduler import Scheduler

_logger = logging.getLogger(__name__)

#: News of the same namespace within this time go as one message. Readers catch up by themselves, so nobody waits,
#: and folding a few messages at a time would take the processor from those who append.
_NEWS_SECONDS = 0.25
#: Between two looks for a model that has become ready.
_WATCH_SECONDS = 0.5
#: Between two signs of life.
_BEAT_SECONDS = 5.0
#: How long a stop waits for the work at hand: a batch of embeddings, one namespace of a nightly job.
_STOP_MS = 10_000
#: Namespaces that one sweep tells of: the queue stays short, and the next sweep goes on.
_TOLD_MAX = 1_000


class Workers:
    """What runs in the background of this process.

    Parameters:
        context: what jobs work with; its settings name the broker and the number of threads.
        records: those that go with the broker; the caller closes them.
        lag: finds the namespaces that are behind.
        work: whether this process works off messages, and sweeps.
        schedule: whether it begins what is due. With neither it only tells the workers elsewhere who has news.
    """

    def __init__(
        self,
        context: JobContext,
        run_store: RunStore,
        backlog: BacklogMonitor,
        *,
        work: bool = True,
        schedule: bool = True,
    ) -> None:
        settings = context.settings.queue
        self._context = context
        self._broker_url = settings.broker
        self.records = run_store
        self.broker = open_broker(run_store, settings)
        self.actors = declare_actors(self.broker, context, self.records)
        self._lag = backlog
        self._sweep_seconds = settings.sweep_seconds
        live, thinking = set[str](QUEUES[:2]), set[str](QUEUES[2:])
        self._workers = (
            [
                _worker(self.broker, live, settings.worker_threads),
                _worker(self.broker, thinking, settings.think_threads),
            ]
            if work
            else []
        )
        self._scheduler = Scheduler(self.actors, self.records, settings) if schedule else None
        roles: list[Role] = [*(["worker"] if work else []), *(["scheduler"] if schedule else [])]  # pyright: ignore[reportAssignmentType]
        self._beats: list[Heartbeat] = [new_heartbeat(role, now_us()) for role in roles]
        self._news: set[str] = set()
        self._has_news = threading.Condition()
        loops = {"notifier": self._notify, "sweep": self._keep_sweeping, "beat": self._keep_beating}
        self._threads = [
            threading.Thread(target=loop, name=f"recollect-{name}", daemon=True) for name, loop in loops.items()
        ]
        self._last_sweep_us = 0
        self._running = False

    def start(self) -> None:
        """Start the threads; the first sweep follows at once, and another whenever a model has become ready."""
        # A worker that runs inside another program has to say this itself, once: time limits depend on it.
        self.broker.emit_after("process_boot")
        # Two workers on one broker are meant: dramatiq warns of the second one's middleware.
        self.broker.logger.disabled = True
        for worker in self._workers:
            worker.start()
        self.broker.logger.disabled = False
        if self._scheduler is not None:
            self._scheduler.start()
        self._running = True
        for thread in self._threads:
            thread.start()

    def notify(self, namespace: str) -> None:
        """Say that `namespace` has new events. Costs the caller next to nothing."""
        with self._has_news:
            self._news.add(namespace)
            self._has_news.notify()

    def stop(self) -> None:
        """Finish the work at hand, then end the threads. What was not finished goes back into the queue."""
        if not self._running:
            return
        self._running = False
        self._context.stop.set()
        with self._has_news:
            self._has_news.notify_all()
        if self._scheduler is not None:
            self._scheduler.stop()
        for worker in self._workers:
            worker.stop(timeout=_STOP_MS)
        for thread in self._threads:
            thread.join(_STOP_MS / 1_000)
        try:
            for beat in self._beats:
                self.records.deregister(beat.id)
        except Exception:
            _logger.warning("could not sign off", exc_info=True)
        self.broker.close()

    def status(self) -> dict[str, Any]:
        """Return what health shows: whether the workers run, on which broker, and when the last sweep was."""
        return {
            "running": self._running and bool(self._workers),
            "broker": self._broker_url.partition("://")[0],
            "last_sweep": rfc3339(self._last_sweep_us) if self._last_sweep_us else None,
        }

    def queue_depths(self) -> dict[str, int]:
        """Return how many messages wait in each queue."""
        broker: Any = self.broker
        if hasattr(broker, "do_qsize"):
            return {name: int(broker.do_qsize(name)) for name in QUEUES}
        return {name: broker.queues[name].qsize() for name in QUEUES}

    def _notify(self) -> None:
        while True:
            with self._has_news:
                self._has_news.wait_for(lambda: self._news or self._context.stop.is_set())
                if self._context.stop.is_set() and (not self._news or self._workers):
                    return
            self._context.stop.wait(_NEWS_SECONDS)
            with self._has_news:
                namespaces, self._news = self._news, set()
            for namespace in namespaces:
                self._send(namespace)

    def _send(self, namespace: str) -> bool:
        try:
            self.actors.project.send(namespace)
        except Exception:
            # The broker is away. The sweep tells the same later, and reading never depends on it.
            _logger.warning("could not tell the workers about namespace %r", namespace, exc_info=True)
            return False
        return True

    def _keep_sweeping(self) -> None:
        """Sweep at once, then now and then, and for each model that becomes ready: it may have work everywhere."""
        if not self._workers:
            return
        known: str | None = None
        waited = 0.0
        while not self._context.stop.is_set():
            embedder = self._context.vectors().embedder
            tag = embedder.fingerprint if embedder.state == "ready" else ""
            if tag != known or waited >= self._sweep_seconds:
                known, waited = tag, 0.0
                try:
                    self._sweep()
                except RecollectError:
                    _logger.warning("a sweep failed; the next one makes up for it", exc_info=True)
            wait = min(_WATCH_SECONDS, self._sweep_seconds)
            self._context.stop.wait(wait)
            waited += wait

    def _sweep(self) -> None:
        """Tell the workers about the namespaces that are behind."""
        behind, _ = self._lag.backlogs(_TOLD_MAX)
        for one in behind:
            if self._context.stop.is_set() or not self._send(one.namespace):
                return
        self._last_sweep_us = now_us()

    def _keep_beating(self) -> None:
        while not self._context.stop.is_set():
            try:
                for beat in self._beats:
                    self.records.heartbeat(replace(beat, seen_at_us=now_us()))
            except Exception:
                _logger.warning("could not leave a sign of life", exc_info=True)
            self._context.stop.wait(_BEAT_SECONDS)


def _worker(broker: dramatiq.Broker, queues: set[str], threads: int) -> dramatiq.Worker:
    return dramatiq.Worker(broker, queues=queues, worker_threads=threads, worker_timeout=100)
