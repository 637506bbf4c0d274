"""The workers and the scheduler of one process."""

from __future__ import annotations

import logging
import threading
from typing import Any

import dramatiq
from apscheduler.schedulers.background import BackgroundScheduler  # pyright: ignore[reportMissingTypeStubs]

from recollect.events.envelope import now_us, rfc3339
from recollect.events.errors import RecollectError
from recollect.events.log import EventLog, each_head
from recollect.jobs.actors import declare_actors
from recollect.jobs.broker import open_broker
from recollect.projections.models import ReadModels
from recollect.projections.vectors import VectorsInUse

_logger = logging.getLogger(__name__)

#: How often the heads are compared with the checkpoints: how late work begins when a message was lost.
SWEEP_SECONDS = 30.0
#: News of the same namespace within this time go as one message. Readers catch up by themselves, so nobody waits,
#: and folding a few messages at a time would take the processor from those who append.
_NEWS_SECONDS = 0.25
#: Between two looks for a model that has become ready.
_WATCH_SECONDS = 0.5
#: How long a stop waits for the work at hand: a batch of embeddings.
_STOP_MS = 10_000


class Workers:
    """Worker threads, the notifier that tells them who has news, and the sweep that finds what was not told.

    Parameters:
        broker_url: ``memory://`` or ``redis://…``.
        vectors_in_use: asked for each piece of work.
        threads: worker threads; projecting is light, embedding shares one model.
        sweep_seconds: between two sweeps.
    """

    def __init__(
        self,
        log: EventLog,
        models: ReadModels,
        vectors_in_use: VectorsInUse,
        *,
        broker_url: str = "memory://",
        threads: int = 2,
        sweep_seconds: float = SWEEP_SECONDS,
    ) -> None:
        self._log = log
        self._models = models
        self._vectors_in_use = vectors_in_use
        self._broker_url = broker_url
        self._broker = open_broker(broker_url)
        self._stop = threading.Event()
        self._actors = declare_actors(self._broker, models, vectors_in_use, self._stop)
        self._worker = dramatiq.Worker(self._broker, worker_threads=threads, worker_timeout=100)
        self._scheduler: Any = BackgroundScheduler(timezone="UTC")
        self._scheduler.add_job(
            self._sweep, "interval", seconds=sweep_seconds, coalesce=True, misfire_grace_time=None, max_instances=1
        )
        self._news: set[str] = set()
        self._has_news = threading.Condition()
        self._threads = [
            threading.Thread(target=self._notify, name="recollect-notifier", daemon=True),
            threading.Thread(target=self._sweep_for_new_models, name="recollect-model-watch", daemon=True),
        ]
        #: Head of each namespace when it was last told to the workers by a sweep.
        self._swept: dict[str, int] = {}
        self._last_sweep_us = 0
        self._running = False

    def start(self) -> None:
        """Start the threads; the first sweep follows at once, and another whenever a model has become ready."""
        # A worker that runs inside another program has to say this itself: time limits depend on it.
        self._broker.emit_after("process_boot")
        self._worker.start()
        self._scheduler.start()
        self._running = True
        for thread in self._threads:
            thread.start()

    def news(self, namespace: str) -> None:
        """Say that `namespace` has new events. Costs the caller next to nothing."""
        with self._has_news:
            self._news.add(namespace)
            self._has_news.notify()

    def stop(self) -> None:
        """Finish the work at hand, then end the threads."""
        if not self._running:
            return
        self._running = False
        self._stop.set()
        with self._has_news:
            self._has_news.notify_all()
        self._scheduler.shutdown(wait=False)
        self._worker.stop(timeout=_STOP_MS)
        for thread in self._threads:
            thread.join(_STOP_MS / 1_000)
        self._broker.close()

    def status(self) -> dict[str, Any]:
        """Return what health shows: whether the workers run, on which broker, and when the last sweep was."""
        return {
            "running": self._running,
            "broker": self._broker_url.partition("://")[0],
            "last_sweep": rfc3339(self._last_sweep_us) if self._last_sweep_us else None,
        }

    def _notify(self) -> None:
        while True:
            with self._has_news:
                self._has_news.wait_for(lambda: self._news or self._stop.is_set())
                if self._stop.is_set():
                    return
            self._stop.wait(_NEWS_SECONDS)
            with self._has_news:
                namespaces, self._news = self._news, set()
            for namespace in namespaces:
                self._send(namespace)

    def _send(self, namespace: str) -> None:
        try:
            self._actors.project.send(namespace)
        except Exception:
            # The broker is away. The sweep tells the same later, and reading never depends on it.
            _logger.warning("could not tell the workers about namespace %r", namespace, exc_info=True)

    def _sweep_for_new_models(self) -> None:
        """Sweep at once, and again for each model that becomes ready: it may have work in every namespace."""
        known: str | None = None
        while not self._stop.is_set():
            embedder = self._vectors_in_use().embedder
            tag = embedder.model_tag if embedder.state == "ready" else ""
            if tag != known:
                known = tag
                self._swept.clear()
                try:
                    self._sweep()
                except RecollectError:
                    _logger.warning("a sweep failed; the next one makes up for it", exc_info=True)
            self._stop.wait(_WATCH_SECONDS)

    def _sweep(self) -> None:
        """Tell the workers about every namespace whose head has moved since the last sweep, or that is behind."""
        for head in each_head(self._log):
            if self._stop.is_set():
                return
            if self._swept.get(head.namespace) != head.version or self._is_behind(head.namespace):
                self._send(head.namespace)
                self._swept[head.namespace] = head.version
        self._last_sweep_us = now_us()

    def _is_behind(self, namespace: str) -> bool:
        try:
            return self._models.progress(namespace).behind > 0
        except RecollectError:
            # One namespace that cannot be read keeps no other from its work; health names it.
            _logger.warning("namespace %r cannot be read", namespace, exc_info=True)
            return False
