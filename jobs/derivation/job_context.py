"""What a job works with."""

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
    """The memory as jobs see it: they read the models, and append events; nothing else."""

    log: EventLog
    read_models: ReadModels
    vectors: CurrentVectors
    settings: JobSettings = field(default_factory=JobSettings)
    #: The language model; None: the rules do the work.
    llm: LlmClient | None = None
    #: Set when the process ends; a job then stops at the next point where nothing is half done.
    stop: threading.Event = field(default_factory=threading.Event)


#: A job: called with the context, a namespace and the time it is done for, in microseconds since 1970 UTC; returns how
#: many events it appended. Done twice, or by two at once, it appends nothing more.
Job = Callable[[JobContext, str, int], int]
