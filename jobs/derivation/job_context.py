"""Job context: the collaborators of a job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from recollect.events.backends.log import EventLog
from recollect.jobs.job_settings import JobSettings
from recollect.jobs.llm.client import LlmClient
from recollect.projections.embeddings.vectors import CurrentVectors
from recollect.projections.read_models.read_models import ReadModels


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """The parts of the memory that jobs use: they read the read models and append events to the log."""

    log: EventLog
    read_models: ReadModels
    vectors: CurrentVectors
    settings: JobSettings = field(default_factory=JobSettings)
    #: The client of the language model; None when rules extract and summarise.
    llm: LlmClient | None = None
    #: Set when the process stops; a job then returns after its current append.
    stop: threading.Event = field(default_factory=threading.Event)


#: A job takes the context, a namespace and the current time in microseconds since 1970 UTC, and returns the number of
#: appended events. A second call, or a call in another process at the same time, appends no further event.
Job = Callable[[JobContext, str, int], int]
