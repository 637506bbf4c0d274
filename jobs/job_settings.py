"""Job settings: every number that jobs use, with its default, in groups by subject."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_FROZEN = ConfigDict(frozen=True, extra="forbid")


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is no time zone; give a name such as Europe/Berlin") from None
    return name


class QueueSettings(BaseModel):
    """The broker, the threads of workers, and when scheduled jobs run."""

    model_config = _FROZEN

    #: What carries messages to workers: `memory://` or `redis://host:port/0`.
    broker: str = "memory://"
    #: The time zone of the nightly jobs (3:00), such as `Europe/Berlin`.
    timezone: Annotated[str, AfterValidator(_known_zone)] = "UTC"
    #: Threads of a worker that project and embed new events.
    worker_threads: Annotated[int, Field(ge=1, le=64)] = 2
    #: Threads of a worker that extract and compact; they never take the place of the others.
    think_threads: Annotated[int, Field(ge=1, le=64)] = 1
    #: Seconds between two sweeps for work whose notification was lost.
    sweep_seconds: Annotated[float, Field(gt=0)] = 30.0
    #: Seconds without progress after which a scheduled run is started again.
    slot_stale_seconds: Annotated[float, Field(gt=0)] = 300.0
    #: Attempts at a message, those ended by a kill included, before it becomes a dead letter.
    attempts_max: Annotated[int, Field(ge=1)] = 4
    #: Seconds after which one message's work is stopped.
    job_seconds_max: Annotated[float, Field(gt=0)] = 600.0


class ExtractionSettings(BaseModel):
    """Extraction of knowledge from messages."""

    model_config = _FROZEN

    #: Messages that one extraction reads.
    extraction_messages_max: Annotated[int, Field(ge=1, le=500)] = 100
    #: Confidence under which an extracted fact is kept as rejected.
    extraction_confidence_min: Annotated[float, Field(ge=0, le=1)] = 0.5


class CompactionSettings(BaseModel):
    """Compaction, expiry and staleness. The defaults are those of the seeds `000` and `004`."""

    model_config = _FROZEN

    #: Hours after which raw episodes are compressed.
    compress_after_hours: Annotated[float, Field(gt=0)] = 24
    #: Tokens of a compressed episode, as a share of its sources'.
    compressed_share: Annotated[float, Field(gt=0, lt=1)] = 0.25
    #: Turns in one compressed episode.
    compressed_turns_max: Annotated[int, Field(ge=2, le=1_000)] = 200
    #: Days after which a compressed episode that was not distilled expires.
    compressed_expires_after_days: Annotated[float, Field(gt=0)] = 90
    #: Days after which raw episodes with a summary expire.
    raw_expires_after_days: Annotated[float, Field(gt=0)] = 7
    #: Importance from which raw episodes are kept.
    raw_importance_kept: Annotated[int, Field(ge=1, le=11)] = 8
    #: Days after which compressed episodes are distilled.
    distill_after_days: Annotated[float, Field(gt=0)] = 7
    #: Tokens of a distilled episode, as a share of its sources'.
    distilled_share: Annotated[float, Field(gt=0, lt=1)] = 0.05
    #: Cosine from which two memories are merged.
    dedup_similarity: Annotated[float, Field(gt=0, le=1)] = 0.92
    #: Days in which an inferred fact that is not confirmed loses half of its confidence.
    decay_half_life_days: Annotated[float, Field(gt=0)] = 120
    #: Confidence under which an inferred fact becomes stale.
    decay_floor: Annotated[float, Field(ge=0, lt=1)] = 0.2
    #: Memories of a namespace (facts, preferences, procedures), and as many summaries; beyond, the least important go.
    memories_max: Annotated[int, Field(ge=1)] = 2_000
    #: Tokens of a day's digest.
    digest_tokens: Annotated[int, Field(ge=16)] = 120
    #: Cosine from which memories belong to one cluster.
    cluster_similarity: Annotated[float, Field(gt=0, le=1)] = 0.6
    #: Bytes of a read model over which its raw episodes are compressed at once and its free pages are given back.
    model_bytes_max: Annotated[int, Field(ge=1 << 20)] = 512 << 20


class ConversationSettings(BaseModel):
    """Windows and observations of running conversations. The defaults are those of the seeds `000` and `002`."""

    model_config = _FROZEN

    #: Tokens of unobserved turns from which a session is observed.
    observe_tokens: Annotated[int, Field(ge=100)] = 3_000
    #: Tokens of a session's observations from which they are condensed to half.
    reflect_tokens: Annotated[int, Field(ge=100)] = 4_000
    #: Tokens of observations that one event records.
    observations_tokens_max: Annotated[int, Field(ge=200)] = 8_000
    #: Share of a window's budget over which its oldest turns are summarised.
    window_full_share: Annotated[float, Field(gt=0, le=1)] = 0.75
    #: Recent turns that a window keeps as they are, when there are as many; 30 % of the turns otherwise.
    window_turns_kept: Annotated[int, Field(ge=1)] = 10
    #: Tokens over which a message gets a short form.
    long_message_tokens: Annotated[int, Field(ge=100)] = 300
    #: Tokens of a short form.
    short_form_tokens: Annotated[int, Field(ge=16)] = 60


class LlmSettings(BaseModel):
    """The language model that summarises and extracts, if one is configured."""

    model_config = _FROZEN

    #: The model as pydantic-ai names it, such as `openai:gpt-5-mini`; without one, rules do the work.
    llm: str | None = None
    #: The URL of an OpenAI-compatible server; `llm` is then the model's name there.
    llm_base_url: str | None = None
    #: Seconds that one answer may take.
    llm_timeout_seconds: Annotated[float, Field(gt=0)] = 30
    #: Tokens, of prompts and answers, that a day (UTC) may cost.
    llm_tokens_per_day: Annotated[int, Field(ge=0)] = 500_000
    #: Failures in a row after which a namespace uses the rules alone for a while.
    llm_failures_max: Annotated[int, Field(ge=1)] = 3
    #: How long, in seconds.
    llm_pause_seconds: Annotated[float, Field(gt=0)] = 300
    #: Messages that are read at once, unless the conversation has been quiet for five minutes.
    llm_messages_min: Annotated[int, Field(ge=1)] = 10


class JobSettings(BaseModel):
    """All settings of jobs."""

    model_config = _FROZEN

    queue: QueueSettings = QueueSettings()
    extraction: ExtractionSettings = ExtractionSettings()
    compaction: CompactionSettings = CompactionSettings()
    conversation: ConversationSettings = ConversationSettings()
    llm: LlmSettings = LlmSettings()
