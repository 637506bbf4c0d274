"""Job context: the collaborators of a job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from recollect.events.backends.log import EventLog
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.jobs.derivation.request_activity import RequestActivity
from recollect.jobs.job_settings import JobSettings
from recollect.jobs.llm.model_client import LlmClient
from recollect.projections.embeddings.vectors import CurrentVectors
from recollect.projections.read_models.read_models import ProjectionProgress, ReadModels

#: Namespaces whose last look is kept: 0.3 kB each.
_LOOKS_MAX = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLook:
    """The result of a look at a namespace that found nothing to erase."""

    #: The head of the namespace.
    version: int
    #: The time up to which no event of these is over its time to live, in microseconds; None for any time.
    due_us: int | None


def _new_looks() -> BoundedCache[str, RetentionLook]:
    return BoundedCache(_LOOKS_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The parts of the memory that jobs use: they read the read models and append events to the log."""

    log: EventLog
    read_models: ReadModels
    vectors: CurrentVectors
    settings: JobSettings = field(default_factory=JobSettings)
    #: The client of the language model; None when rules extract and summarise.
    llm: LlmClient | None = None
    #: By namespace, the last look of this process at what its rules of retention erase.
    retention_looks: BoundedCache[str, RetentionLook] = field(default_factory=_new_looks)
    #: Set when the process stops; a job then returns after its current append.
    stop: threading.Event = field(default_factory=threading.Event)
    #: The requests of this process, for which background threads pause.
    request_activity: RequestActivity = field(default_factory=RequestActivity)

    def catch_up(self, namespace: str) -> ProjectionProgress:
        """Project the new events of a namespace, with a pause after each batch while requests are answered.

        Under steady appends there are always further events: a thread that pauses at the end only takes half of a
        processor.
        """
        return self.read_models.catch_up(namespace, pause=self.pause)

    def pause(self) -> None:
        """Pause this thread while requests are answered; see `RequestActivity.pause`."""
        self.request_activity.pause(self.stop)


#: A job takes the context, a namespace and the current time in microseconds since 1970 UTC, and returns the number of
#: appended events. A second call, or a call in another process at the same time, appends no further event.
Job = Callable[[JobContext, str, int], int]
