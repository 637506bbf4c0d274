"""Settling: runs the background work of one namespace to its end, or to a deadline, in the caller's thread."""

from __future__ import annotations

import math
import threading
import time

from msgspec.structs import replace

from recollect.events.errors import InvalidInput, NotSettled, ProjectionFailed, StillBuilding
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.derivation.request_activity import RequestActivity
from recollect.jobs.queue.backlog import BacklogMonitor
from recollect.jobs.queue.registry import LIVE_JOBS
from recollect.jobs.queue.settle_result import SettleResult

#: Rounds before the call gives up. A round does all the work that is due, and the next round handles the events that
#: its jobs appended: three are usual. More are needed only while other processes keep appending.
ROUNDS_MAX = 100
#: Seconds between two looks at a model that loads.
_MODEL_POLL_SECONDS = 1.0


class _StopAt(threading.Event):
    """The stop of a call with a deadline: set when the process stops, or when the deadline is over."""

    def __init__(self, stop: threading.Event, deadline: float) -> None:
        super().__init__()
        self._stop = stop
        self._deadline = deadline

    def is_set(self) -> bool:
        """Return whether the work has to end."""
        return self._stop.is_set() or time.monotonic() >= self._deadline


def settle(
    context: JobContext,
    backlog: BacklogMonitor,
    namespace: str,
    now_us: int,
    *,
    deadline: float = math.inf,
    rounds_max: int = ROUNDS_MAX,
) -> SettleResult:
    """Project, embed and run the live jobs of `namespace` until no work is left or `deadline` is over.

    Parameters:
        now_us: the current time of the jobs, in microseconds since 1970 UTC.
        deadline: `time.monotonic()` seconds after which no further step begins. A step that has begun is completed: a
            batch of events or vectors, or a request to a language model.
        rounds_max: rounds before `NotSettled` is raised.

    Raises:
        InvalidInput: the embedding model cannot be loaded. ProjectionFailed: the namespace is parked. NotSettled: work
            is left after `rounds_max` rounds, or the memory was closed meanwhile. StorageError: the disk failed.
    """
    # The call is a request itself, so it does not pause for others.
    bounded = replace(context, stop=_StopAt(context.stop, deadline), request_activity=RequestActivity())
    is_settled = _wait_for_model(bounded, deadline) and _run_rounds(
        bounded, backlog, namespace, now_us, rounds_max, deadline
    )
    if not is_settled and time.monotonic() < deadline:
        stopped = context.stop.is_set()
        raise NotSettled(namespace, "the memory is being closed" if stopped else f"{rounds_max} rounds done")
    behind = backlog.namespace_backlog(namespace)
    return SettleResult(
        namespace=namespace,
        version=context.log.head(namespace).version,
        is_settled=is_settled,
        events=behind.events,
        embeddings=behind.embeddings,
        messages=behind.messages,
        model=context.vectors().embedder.state,
    )


def _wait_for_model(context: JobContext, deadline: float) -> bool:
    """Wait while the embedding model loads; return False when the call has to end first.

    Raises:
        InvalidInput: the model cannot be loaded.
    """
    embedder = context.vectors().embedder
    if embedder.state == "off":
        return True
    embedder.start()
    while not embedder.wait_ready(max(0.0, min(_MODEL_POLL_SECONDS, deadline - time.monotonic()))):
        if embedder.state != "loading":
            raise InvalidInput(embedder.reason, field="model")
        if context.stop.is_set():
            return False
    return True


def _run_rounds(
    context: JobContext, backlog: BacklogMonitor, namespace: str, now_us: int, rounds_max: int, deadline: float
) -> bool:
    """Do the work of `namespace`; return whether none is left."""
    for _ in range(rounds_max):
        if context.stop.is_set():
            return False
        # With a deadline, a read model that is far behind is projected in batches, and not rebuilt at once.
        try:
            progress = context.read_models.catch_up(namespace, deadline=None if math.isinf(deadline) else deadline)
        except StillBuilding:
            return False
        if progress.parked is not None:
            raise ProjectionFailed(namespace, progress.parked.version, progress.parked.error)
        # Embedding comes before the jobs: the observer cuts observations where the vectors show a change of topic.
        context.vectors().embed_new(namespace, stop=context.stop, deadline=deadline)
        try:
            appended = sum(job.work(context, namespace, now_us) for job in LIVE_JOBS.values())
        except InterruptedError:
            # The extraction ends within its batch, which is read again later.
            return False
        backlog.note_read(namespace, progress.version)
        if not appended and backlog.namespace_backlog(namespace).is_settled and not context.stop.is_set():
            return True
    return False
