"""Job context: the collaborators of a job."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct, field

from recollect.events.backends.log import EventLog
from recollect.events.envelope import EventDraft, RecordedEvent
from recollect.events.errors import DiskFull, LogUnreachable, ReadOnly
from recollect.events.intake.quarantine import with_quarantine
from recollect.events.intake.screening import SecretPolicies, screen_all
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.jobs.derivation.request_activity import RequestActivity
from recollect.jobs.job_settings import JobSettings
from recollect.jobs.llm.model_client import LlmClient
from recollect.projections.embeddings.vectors import CurrentVectors
from recollect.projections.read_models.read_models import ProjectionProgress, ReadModels

#: Errors of the machine, not of a message. The sweep sends the message again when they are over; retries would use up
#: the attempts of every message during an outage, and leave as many dead letters.
OUTAGES = (LogUnreachable, DiskFull, ReadOnly)
#: Namespaces whose last look is kept: 0.3 kB each.
_LOOKS_MAX = 100_000
#: Namespaces with messages that are read and not recorded, and their items: 0.5 kB each.
_READ_MAX = 50_000


class RetentionLook(Struct, frozen=True, kw_only=True):
    """The result of a look at a namespace that found nothing to erase."""

    #: The head of the namespace.
    version: int
    #: The time up to which no event of these is over its time to live, in microseconds; None for any time.
    due_us: int | None


class ReadMessages(Struct, frozen=True, kw_only=True):
    """Messages that the extraction of this process has read, and not recorded: they say next to nothing."""

    #: The version up to which messages were recorded as read.
    after: int
    #: The last of the messages, without its text.
    last: RecordedEvent
    count: int
    #: The processor time that they took.
    seconds: float
    #: What was extracted from them: kinds and payloads.
    items: Sequence[tuple[str, dict[str, Any]]]
    #: The time of the latest message with items; None without items.
    said_us: int | None


def _new_looks() -> BoundedCache[str, RetentionLook]:
    return BoundedCache(_LOOKS_MAX)


def _new_read_messages() -> BoundedCache[str, ReadMessages]:
    return BoundedCache(_READ_MAX, lambda read: 1 + len(read.items))


def _new_versions() -> BoundedCache[str, int]:
    return BoundedCache(_LOOKS_MAX)


def _default_screen(_: str, drafts: Sequence[EventDraft]) -> list[EventDraft]:
    return with_quarantine(screen_all(drafts, SecretPolicies()))


class JobContext(Struct, frozen=True, kw_only=True):
    """The parts of the memory that jobs use: they read the read models and append events to the log."""

    log: EventLog
    read_models: ReadModels
    vectors: CurrentVectors
    settings: JobSettings = field(default_factory=JobSettings)
    #: The client of the language model; None when rules extract and summarise.
    llm: LlmClient | None = None
    #: Returns the events of a producer without private sections, their secrets treated by the policies of a namespace.
    screen: Callable[[str, Sequence[EventDraft]], list[EventDraft]] = _default_screen
    #: By namespace, the last look of this process at what its rules of retention erase.
    retention_looks: BoundedCache[str, RetentionLook] = field(default_factory=_new_looks)
    #: By namespace, the messages after the last recorded one that the extraction of this process has read.
    read_messages: BoundedCache[str, ReadMessages] = field(default_factory=_new_read_messages)
    #: By namespace, the version up to which its last events were searched for what a request has forgotten, in vain.
    unforgotten_versions: BoundedCache[str, int] = field(default_factory=_new_versions)
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
