"""Actors: the functions that workers run for messages.

A message only says that a namespace may have work, so it may arrive twice, late or never.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dramatiq
from msgspec import Struct

from recollect.events.envelope import Head, now_us
from recollect.events.errors import short_text
from recollect.events.log_context import log_context
from recollect.events.storage.namespace_folder import folder_name
from recollect.events.tracing import hidden_namespace
from recollect.jobs.derivation.job_context import OUTAGES, JobContext
from recollect.jobs.queue.background_following import ACTOR, Following
from recollect.jobs.queue.due_namespaces import BATCH_NAMESPACES, next_batch
from recollect.jobs.queue.night_processes import NightProcesses, Outcome, run_job
from recollect.jobs.queue.registry import LIVE_JOBS
from recollect.jobs.queue.run_store import Finished, RunStore

_logger = logging.getLogger(__name__)

#: Seconds that one `embed` message works before it goes back to the end of the queue, so that other namespaces are
#: served.
_EMBED_SECONDS_MAX = 60.0
#: Milliseconds after which a batch of a scheduled run is tried again when the log does not answer.
_AWAY_MS = 10_000
#: Priorities of dramatiq: a lower number is processed first.
_LIVE, _NIGHTLY = 0, 10


class Actors(Struct, frozen=True, kw_only=True):
    """The actors on one broker. `project` and `embed` have their own queues; the others share the background queue."""

    #: Projects the new events of a namespace.
    project: dramatiq.Actor[[str], Any]
    #: Embeds the new episodes of a namespace.
    embed: dramatiq.Actor[[str], Any]
    #: Runs the live jobs of a namespace.
    process_background: dramatiq.Actor[[str], Any]
    #: Processes one batch of a scheduled run. Arguments: the job, the scheduled time in microseconds since 1970 UTC,
    #: and the namespace before the batch.
    run: dramatiq.Actor[[str, int, str], Any]
    #: Lets a consumer handle the new events of a namespace. Arguments: the name of the consumer, the namespace, and 1
    #: to try again what has failed too often.
    follow: dramatiq.Actor[[str, str, int], Any]


#: The name of the background queue in brokers. It predates the names in the code and stays, because a release that
#: renamed it would leave waiting messages unread. The same holds for the actor `think`.
_BACKGROUND_QUEUE = "think"
#: The queues: first the two live ones, then the background queue.
QUEUES = ("project", "embed", _BACKGROUND_QUEUE)


#: Seconds between two log lines about an outage, which concerns all messages alike.
_OUTAGE_LOG_SECONDS = 5.0


def _is_outage(error: Exception) -> bool:
    """Return whether an error is that of the log's server, the disk or the broker, and not of the message."""
    if isinstance(error, (*OUTAGES, dramatiq.BrokerConnectionError)):
        return True
    # Imported by the broker, where that is Redis.
    redis_errors: Any = sys.modules.get("redis.exceptions")
    return redis_errors is not None and isinstance(error, redis_errors.RedisError)


class _OutageLog:
    """Logs an outage, and not each message that meets it."""

    def __init__(self) -> None:
        self._logged_at = -_OUTAGE_LOG_SECONDS

    def add(self, actor: str, error: Exception) -> None:
        """Log that a message is left to the sweep, unless another one was logged a short while ago."""
        if time.monotonic() - self._logged_at >= _OUTAGE_LOG_SECONDS:
            self._logged_at = time.monotonic()
            _logger.warning("%s and what follows is left to the next sweep: %s", actor, short_text(error))


class _Stopping(dramatiq.RateLimitExceeded):
    """The worker is stopping, and the message is processed again later.

    Of all exceptions that dramatiq retries, this kind alone is not logged as an error with its traceback.
    """


def declare_actors(
    broker: dramatiq.Broker, context: JobContext, run_store: RunStore, night: NightProcesses | None = None
) -> Actors:
    """Declare the actors on `broker` and return them.

    Parameters:
        night: the processes for full batches of scheduled runs; without them, the threads of the worker process them.
    """

    def project(namespace: str) -> None:
        context.catch_up(namespace)
        actors.embed.send(namespace)
        actors.process_background.send(namespace)
        context.pause()

    def embed(namespace: str) -> None:
        deadline = time.monotonic() + _EMBED_SECONDS_MAX
        # Another machine may have projected the events into its own files.
        context.catch_up(namespace)
        context.vectors().embed_new(namespace, stop=context.stop, deadline=deadline)
        if time.monotonic() > deadline and not context.stop.is_set():
            actors.embed.send(namespace)

    def process_background(namespace: str) -> None:
        version = context.catch_up(namespace).version
        _run_live_jobs(context, namespace)
        run_store.note_read(folder_name(namespace), version)
        following.send_due(context.log.head(namespace))
        context.pause()

    def run(job: str, scheduled_at_us: int, after: str) -> None:
        try:
            run_batch(job, scheduled_at_us, after)
        except OUTAGES as error:
            _logger.warning("a batch of %s is tried again in %d s: %s", job, _AWAY_MS // 1_000, short_text(error))
            again: Any = actors.run
            again.send_with_options(args=(job, scheduled_at_us, after), delay=_AWAY_MS)

    def run_batch(job: str, scheduled_at_us: int, after: str) -> None:
        batch = next_batch(context, run_store, job, scheduled_at_us, after)
        # The next batch is sent before this one is processed: all workers share the run, and the queue stays short.
        if batch.last is not None:
            actors.run.send(job, scheduled_at_us, batch.last)
        # A batch that was begun before, by a worker that was killed or by a message that came twice, has only the
        # namespaces that are not recorded as finished.
        if batch.due:
            states: list[Finished] = []
            try:
                for outcome in _outcomes(context, night, job, batch.due, scheduled_at_us):
                    _record(run_store, job, scheduled_at_us, outcome)
                    if outcome.state is not None:
                        states.append(outcome.state)
            except InterruptedError as error:
                raise _Stopping(str(error)) from error
            finally:
                run_store.record_finished(job, states)
        if batch.last is None:
            run_store.end(job, scheduled_at_us, now_us())

    following = Following(context, run_store, broker)
    outage_log = _OutageLog()
    actors = Actors(
        project=_actor(project, broker, outage_log, name="project", queue="project"),
        embed=_actor(embed, broker, outage_log, name="embed", queue="embed"),
        process_background=_actor(process_background, broker, outage_log, name="think", queue=_BACKGROUND_QUEUE),
        run=_actor(run, broker, outage_log, name="run", queue=_BACKGROUND_QUEUE, priority=_NIGHTLY),
        follow=_actor(following.run, broker, outage_log, name=ACTOR, queue=_BACKGROUND_QUEUE),
    )
    return actors


def _run_live_jobs(context: JobContext, namespace: str) -> None:
    """Run the live jobs of a namespace, in order."""
    for job in LIVE_JOBS.values():
        try:
            job.work(context, namespace, now_us())
        except InterruptedError as error:
            raise _Stopping(str(error)) from error


def _outcomes(
    context: JobContext, night: NightProcesses | None, job: str, heads: Sequence[Head], at_us: int
) -> Iterator[Outcome]:
    """Yield the results of a scheduled job in the namespaces of a batch.

    Raises:
        InterruptedError: the worker is stopping.
    """
    if night is not None and night.is_allowed and len(heads) == BATCH_NAMESPACES:
        yield from night.run_batch(job, heads, at_us, context.stop)
        return
    for head in heads:
        if context.stop.is_set():
            raise InterruptedError("the worker is stopping; the batch is processed again later")
        yield run_job(context, job, head, at_us)
        context.pause()


def _record(run_store: RunStore, job: str, scheduled_at_us: int, outcome: Outcome) -> None:
    """Count a namespace of a run; record its error, so that the other namespaces are processed."""
    if outcome.error is None:
        run_store.record_progress(job, scheduled_at_us, now_us(), events=outcome.events)
        return
    _logger.warning("%s failed for namespace %.12s: %s", job, folder_name(outcome.head.namespace), outcome.error)
    run_store.record_progress(job, scheduled_at_us, now_us(), error=f"{outcome.head.namespace}: {outcome.error}")


def _actor(
    work: Callable[..., None],
    broker: dramatiq.Broker,
    outage_log: _OutageLog,
    *,
    name: str,
    queue: str,
    priority: int = _LIVE,
) -> dramatiq.Actor[..., Any]:
    def in_context(*arguments: Any) -> None:
        # The first argument of a run is the job, that of `follow` the consumer, that of the others the namespace.
        namespace = arguments[1] if name == ACTOR else arguments[0]
        fields = {"job": arguments[0]} if name == "run" else {"job": name, "namespace": hidden_namespace(namespace)}
        with log_context({**fields}):
            try:
                work(*arguments)
            except Exception as error:
                if not _is_outage(error):
                    raise
                outage_log.add(name, error)

    actor = dramatiq.Actor(in_context, broker=broker, actor_name=name, queue_name=queue, priority=priority, options={})
    # At the level debug it logs the arguments, and so the names of namespaces.
    actor.logger.setLevel(logging.INFO)
    return actor
