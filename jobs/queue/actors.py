"""What workers do. A message says where there may be work, and nothing else: it may come twice, late or never."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dramatiq

from recollect.events.envelope import now_us
from recollect.events.errors import RecollectError
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.queue.registry import LIVE_JOBS, SCHEDULED_JOBS
from recollect.jobs.queue.run_store import RunStore

_logger = logging.getLogger(__name__)

#: How long one `embed` message works before it makes room for others and comes back.
_EMBED_SECONDS_MAX = 60.0
#: Namespaces of one page of a scheduled job: what a kill can cost, since a page is done again.
BATCH_NAMESPACES = 20
#: A dramatiq priority; a lower number goes first.
_LIVE, _NIGHTLY = 0, 10


@dataclass(frozen=True, slots=True)
class Actors:
    """The actors on one broker: `project` and `embed` are light and live; `think` and `run` share the third queue."""

    #: Fold the news of a namespace.
    project: dramatiq.Actor[[str], Any]
    #: Embed what a namespace has new.
    embed: dramatiq.Actor[[str], Any]
    #: Do the live jobs of a namespace.
    process_background: dramatiq.Actor[[str], Any]
    #: Do a page of a scheduled job: its name, its slot, and the namespace that the page follows.
    run: dramatiq.Actor[[str, int, str], Any]


#: The queues, by cost.
QUEUES = ("project", "embed", "think")


def declare_actors(broker: dramatiq.Broker, context: JobContext, run_store: RunStore) -> Actors:
    """Declare the actors on `broker`."""

    def project(namespace: str) -> None:
        context.read_models.catch_up(namespace)
        actors.embed.send(namespace)
        actors.process_background.send(namespace)

    def embed(namespace: str) -> None:
        deadline = time.monotonic() + _EMBED_SECONDS_MAX
        context.vectors().embed_new(namespace, stop=context.stop, deadline=deadline)
        if time.monotonic() > deadline and not context.stop.is_set():
            actors.embed.send(namespace)

    def think(namespace: str) -> None:
        for job in LIVE_JOBS.values():
            job.work(context, namespace, now_us())

    def run(job: str, slot_us: int, after: str) -> None:
        names = [head.namespace for head in context.log.heads(after=after, limit=BATCH_NAMESPACES)]
        # The next page goes out before this one is done: all workers share the work, and the queue stays short.
        if names:
            actors.run.send(job, slot_us, names[-1])
        if not run_store.has_batch(job, slot_us, after):
            for name in names:
                if context.stop.is_set():
                    raise InterruptedError("the worker stops; the page is done again")
                _run_one(context, run_store, job, slot_us, name)
            run_store.finish_batch(job, slot_us, after)
        if not names:
            run_store.end(job, slot_us, now_us())

    actors = Actors(
        project=_actor(project, broker, "project"),
        embed=_actor(embed, broker, "embed"),
        process_background=_actor(think, broker, "think"),
        run=_actor(run, broker, "think", priority=_NIGHTLY),
    )
    return actors


def _run_one(context: JobContext, run_store: RunStore, job: str, slot_us: int, namespace: str) -> None:
    """Do a scheduled job for one namespace; a failure is kept, and stops no other namespace."""
    try:
        events = SCHEDULED_JOBS[job].work(context, namespace, slot_us)
        run_store.record_progress(job, slot_us, now_us(), events=events)
    except RecollectError as error:
        _logger.warning("%s failed for namespace %r", job, namespace, exc_info=True)
        run_store.record_progress(job, slot_us, now_us(), error=f"{namespace}: {error}")


def _actor(
    work: Callable[..., None], broker: dramatiq.Broker, queue: str, *, priority: int = _LIVE
) -> dramatiq.Actor[..., Any]:
    return dramatiq.Actor(
        work, broker=broker, actor_name=work.__name__, queue_name=queue, priority=priority, options={}
    )
