"""Every number that jobs go by, with its default; each can be set as ``RECOLLECT_<NAME>``."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, Field

from recollect.jobs.compaction.policy import CompactionPolicy
from recollect.jobs.conversation.policy import ConversationPolicy
from recollect.jobs.extraction.policy import ExtractionPolicy
from recollect.jobs.llm.policy import LlmPolicy


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is no time zone; give a name such as Europe/Berlin") from None
    return name


class SchedulePolicy(BaseModel):
    """When jobs are done, and by how many threads."""

    #: The time zone of "nightly".
    timezone: Annotated[str, AfterValidator(_known_zone)] = "UTC"
    #: Threads that fold and embed what is new.
    worker_threads: Annotated[int, Field(ge=1, le=64)] = 2
    #: Threads that extract, compress and distill. They never take the others' place.
    think_threads: Annotated[int, Field(ge=1, le=64)] = 1
    #: Between two sweeps for work that nobody told of.
    sweep_seconds: Annotated[float, Field(gt=0)] = 30.0
    #: Seconds without a sign of life after which a slot is begun again.
    slot_stale_seconds: Annotated[float, Field(gt=0)] = 300.0
    #: Attempts on a message, kills of its worker included, before it is a dead letter.
    attempts_max: Annotated[int, Field(ge=1)] = 4
    #: Seconds after which one piece of work is ended.
    job_seconds_max: Annotated[float, Field(gt=0)] = 600.0


class Policy(CompactionPolicy, ExtractionPolicy, ConversationPolicy, SchedulePolicy, LlmPolicy):
    """What jobs go by."""
