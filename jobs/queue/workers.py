"""Workers: the background threads of one process: workers, notifier, sweep, heartbeats and scheduler."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any

import dramatiq
from msgspec.structs import replace

from recollect.events.envelope import now_us, rfc3339
from recollect.events.errors import RecollectError, short_text
from recollect.events.storage.namespace_folder import folder_name
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.queue.actors import QUEUES, declare_actors
from recollect.jobs.queue.background_following import Following
from recollect.jobs.queue.backlog import BacklogMonitor
from recollect.jobs.queue.broker import open_broker
from recollect.jobs.queue.night_processes import NightProcesses, OpenParts
from recollect.jobs.queue.run_store import Heartbeat, Role, RunStore, new_heartbeat
from recollect.jobs.queue.scheduler import Scheduler

_logger = logging.getLogger(__name__)

#: Notifications of a namespace within this time are sent as one message. No reader waits for it, because readers
#: project new events themselves, and projecting a few events at a time would take processor time from the appends.
_NOTIFY_SECONDS = 0.25
#: The longest time in which notifications are collected, while further ones arrive: a batch that is projected, read and
#: embedded at once costs half of two.
_NOTIFY_SECONDS_MAX = 1.0
#: Seconds between two checks for an embedding model that has become ready.
_MODEL_CHECK_SECONDS = 0.5
#: Seconds between two heartbeats.
_HEARTBEAT_SECONDS = 5.0
#: Milliseconds that a stop waits for the work in progress: a batch of embeddings, or one namespace of a nightly job.
_STOP_MS = 10_000
#: Seconds between two looks whether the program has ended.
_EXIT_LOOK_SECONDS = 0.25
#: Namespaces that one sweep enqueues: the queue stays short, and the next sweep continues.
_SWEEP_NAMESPACES_MAX = 1_000


class Workers:
    """The background threads of this process.

    Parameters:
        context: the context of the jobs; its settings name the broker and the numbers of threads.
        run_store: the store that belongs to the broker; the caller closes it.
        backlog: finds the namespaces that are behind.
        work: whether this process processes messages and sweeps.
        schedule: whether this process starts scheduled runs. With neither, it only notifies workers of other processes.
        open_parts: opens the memory in another process, for nights with many namespaces; None keeps them in this one.
    """

    def __init__(
        self,
        context: JobContext,
        run_store: RunStore,
        backlog: BacklogMonitor,
        *,
        work: bool = True,
        schedule: bool = True,
        open_parts: OpenParts | None = None,
    ) -> None:
        settings = context.settings.queue
        self._context = context
        self._broker_url = settings.broker
        self.run_store = run_store
        self.broker = open_broker(run_store, settings.broker)
        processes = min(settings.night_processes, os.cpu_count() or 1)
        self._night = NightProcesses(open_parts, processes) if work and open_parts is not None and processes else None
        self.actors = declare_actors(self.broker, context, self.run_store, self._night)
        self._following = Following(context, run_store, self.broker)
        self._backlog = backlog
        self._sweep_seconds = settings.sweep_seconds
        live, background = set[str](QUEUES[:2]), set[str](QUEUES[2:])
        self._workers = (
            [
                _worker(self.broker, live, settings.worker_threads),
                _worker(self.broker, background, settings.think_threads),
            ]
            if work
            else []
        )
        self._scheduler = Scheduler(self.actors, self.run_store, settings) if schedule else None
        roles: list[Role] = [*(["worker"] if work else []), *(["scheduler"] if schedule else [])]  # pyright: ignore[reportAssignmentType]
        self._heartbeats: list[Heartbeat] = [new_heartbeat(role, now_us()) for role in roles]
        #: Namespaces with new events, not sent yet; guarded by the condition.
        self._notified: set[str] = set()
        #: All notifications so far.
        self._notifications = 0
        self._has_notified = threading.Condition()
        loops = {"notifier": self._notify_loop, "sweep": self._sweep_loop, "heartbeat": self._heartbeat_loop}
        self._threads = [
            threading.Thread(target=loop, name=f"recollect-{name}", daemon=True) for name, loop in loops.items()
        ]
        self._last_sweep_us = 0
        self._running = False

    def start(self) -> None:
        """Start the threads; sweep at once, at intervals, and whenever an embedding model has become ready."""
        # A worker embedded in another program must emit this signal itself: the time limits of messages depend on it.
        self.broker.emit_after("process_boot")
        # Two workers share one broker on purpose; dramatiq would log a warning about the middleware of the second
        # worker.
        self.broker.logger.disabled = True
        for worker in self._workers:
            worker.start()
        self.broker.logger.disabled = False
        if self._scheduler is not None:
            self._scheduler.start()
        self._running = True
        for thread in self._threads:
            thread.start()
        threading.Thread(target=self._stop_with_program, name="recollect-exit").start()

    def allow_night_processes(self) -> None:
        """Let nights start processes, which import the main module of the program again: for our commands."""
        if self._night is not None:
            self._night.is_allowed = True

    def notify(self, namespace: str) -> None:
        """Notify the workers that `namespace` has new events. Another thread sends the message."""
        with self._has_notified:
            self._notified.add(namespace)
            self._notifications += 1
            self._has_notified.notify()

    def begin_stop(self) -> None:
        """Let the threads stop after the work in progress, without waiting for them."""
        self._context.stop.set()
        with self._has_notified:
            self._has_notified.notify_all()
        # All at first, so that they stop at the same time: each looks every 0.1 s.
        for thread in (it for worker in self._workers for it in (*worker.workers, *worker.consumers.values())):
            thread.stop()

    def stop(self) -> None:
        """Finish the work in progress, then stop the threads. Unfinished messages go back into the queue."""
        if not self._running:
            return
        self._running = False
        self.begin_stop()
        if self._scheduler is not None:
            self._scheduler.stop()
        # Redis waits longer for the heartbeats of consumers than a stop takes.
        for worker in self._workers:
            worker.stop(timeout=_STOP_MS)
        if self._night is not None:
            self._night.close()
        for thread in self._threads:
            thread.join(_STOP_MS / 1_000)
        try:
            for heartbeat in self._heartbeats:
                self.run_store.deregister(heartbeat.id)
        except Exception as error:
            _logger.warning("could not delete the heartbeats of this process: %s", short_text(error))
        self.broker.close()

    def _stop_with_program(self) -> None:
        """Stop when the program ends without `stop`: Python ends daemons where they are.

        One that it ends inside the embedding model ends the process with a signal.
        """
        while not self._context.stop.wait(_EXIT_LOOK_SECONDS):
            if not threading.main_thread().is_alive():
                self.stop()

    def status(self) -> dict[str, Any]:
        """Return the fields for health: whether the workers run, the kind of broker, and the time of the last sweep."""
        return {
            "running": self._running and bool(self._workers),
            "broker": self._broker_url.partition("://")[0],
            "last_sweep": rfc3339(self._last_sweep_us) if self._last_sweep_us else None,
        }

    def queue_depths(self) -> dict[str, int]:
        """Return the number of waiting messages by queue."""
        broker: Any = self.broker
        if hasattr(broker, "do_qsize"):
            return {name: int(broker.do_qsize(name)) for name in QUEUES}
        return {name: broker.queues[name].qsize() for name in QUEUES}

    def _notify_loop(self) -> None:
        """Send one message per notified namespace, collected over `_NOTIFY_SECONDS`, until the process stops."""
        while True:
            with self._has_notified:
                self._has_notified.wait_for(lambda: self._notified or self._context.stop.is_set())
                if self._context.stop.is_set() and (not self._notified or self._workers):
                    return
            self._wait_for_more()
            with self._has_notified:
                namespaces, self._notified = self._notified, set()
            for namespace in namespaces:
                self._send(self.actors.project, namespace)

    def _wait_for_more(self) -> None:
        """Wait until no notification has arrived for `_NOTIFY_SECONDS`, at most `_NOTIFY_SECONDS_MAX`."""
        until = time.monotonic() + _NOTIFY_SECONDS_MAX
        notifications = -1
        while notifications != self._notifications and time.monotonic() < until:
            notifications = self._notifications
            if self._context.stop.wait(_NOTIFY_SECONDS):
                return

    def _send(self, actor: dramatiq.Actor[[str], None], namespace: str) -> bool:
        """Send a message for `namespace`; return whether the broker took it."""
        try:
            actor.send(namespace)
        except Exception as error:
            # The broker cannot be reached. The sweep sends the message later, and reads never depend on it.
            _logger.warning(
                "could not notify the workers of namespace %.12s: %s", folder_name(namespace), short_text(error)
            )
            return False
        return True

    def _sweep_loop(self) -> None:
        """Sweep at once, at intervals, and when an embedding model becomes ready: all vectors may be missing."""
        if not self._workers:
            return
        last_fingerprint: str | None = None
        waited = 0.0
        while not self._context.stop.is_set():
            embedder = self._context.vectors().embedder
            fingerprint = embedder.fingerprint if embedder.state == "ready" else ""
            if fingerprint != last_fingerprint or waited >= self._sweep_seconds:
                last_fingerprint, waited = fingerprint, 0.0
                try:
                    self._sweep()
                    self._following.sweep(_SWEEP_NAMESPACES_MAX)
                except RecollectError as error:
                    _logger.warning("a sweep failed; the next sweep makes up for it: %s", short_text(error))
            wait = min(_MODEL_CHECK_SECONDS, self._sweep_seconds)
            self._context.stop.wait(wait)
            waited += wait

    def _sweep(self) -> None:
        """Send a message for each namespace that is behind, and for those that wait for the extraction alone.

        While messages for the extraction are in the queue, those of such namespaces are among them, and the queue
        would grow with every sweep.
        """
        awaits_extraction = not self._extraction_messages()
        scan = self._backlog.scan(_SWEEP_NAMESPACES_MAX, unread=awaits_extraction)
        for backlog in scan.behind:
            if self._context.stop.is_set() or not self._send(self.actors.project, backlog.namespace):
                return
        for backlog in scan.waiting if awaits_extraction else ():
            if not backlog.is_parked and not self._send(self.actors.process_background, backlog.namespace):
                return
        self._last_sweep_us = now_us()

    def _extraction_messages(self) -> int:
        """Return the number of messages for the extraction; 1 while the broker does not answer."""
        try:
            return self.queue_depths()[QUEUES[-1]]
        except Exception as error:
            _logger.warning("could not ask the broker for lost messages: %s", short_text(error))
            return 1

    def _heartbeat_loop(self) -> None:
        """Store the heartbeats of this process until it stops."""
        while not self._context.stop.is_set():
            try:
                for heartbeat in self._heartbeats:
                    self.run_store.heartbeat(replace(heartbeat, seen_at_us=now_us()))
            except Exception as error:
                _logger.warning("could not store a heartbeat: %s", short_text(error))
            self._context.stop.wait(_HEARTBEAT_SECONDS)


def _worker(broker: dramatiq.Broker, queues: set[str], threads: int) -> dramatiq.Worker:
    return dramatiq.Worker(broker, queues=queues, worker_threads=threads, worker_timeout=100)
