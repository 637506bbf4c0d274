"""Job settings: the limits and times of jobs, with their defaults, in groups by subject."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from recollect.events.catalogue import ERASURE_TYPES, PRODUCER_EVENTS, TimeZoneName, type_of
from recollect.projections.schema.time_to_live import TTL_DAYS

#: The share of a window's budget over which its oldest turns are summarised, and from which passive retrieval reports
#: that the window is full (`000`).
WINDOW_FULL_SHARE = 0.75

#: Microseconds after its last message at which a conversation counts as quiet.
QUIET_US = 300_000_000


def _with_default_days(given: dict[str, int]) -> dict[str, int]:
    """Return the time to live of every type: as given, or its default; refuse a type that there is not."""
    if unknown := [name for name in given if name not in TTL_DAYS]:
        raise ValueError(f"{unknown[0]} is not a type; give {', '.join(TTL_DAYS)}")
    return TTL_DAYS | given


#: Days until an unconfirmed memory becomes stale, by type.
TtlDays = Annotated[dict[str, Annotated[int, Field(ge=1, le=36_500)]], AfterValidator(_with_default_days)]

#: Types of events that a retention rule may name: those of producers.
_RETENTION_TYPES = frozenset(type_of(event_class) for event_class in PRODUCER_EVENTS) - ERASURE_TYPES

_FROZEN = ConfigDict(frozen=True, extra="forbid")


class QueueSettings(BaseModel):
    """The broker, the threads of workers, and when scheduled jobs run."""

    model_config = _FROZEN

    #: The URL of the broker: `memory://` or `redis://host:port/0`.
    broker: str = "memory://"
    #: The time zone of the nightly jobs (3:00), such as `Europe/Berlin`, and of the days of users whose events and
    #: namespaces name none.
    timezone: TimeZoneName = "UTC"
    #: Threads of a worker that project and embed new events.
    worker_threads: Annotated[int, Field(ge=1, le=64)] = 2
    #: Threads of a worker for the background queue, which extract and compact; the other threads never do this work.
    think_threads: Annotated[int, Field(ge=1, le=64)] = 1
    #: Processes of a low priority, at most one for each core, that a worker starts for a scheduled run while 20
    #: namespaces or more have work; each has an embedding model in memory. 0: the worker's threads do it, as
    #: they do in a program of your own.
    night_processes: Annotated[int, Field(ge=0, le=64)] = 2
    #: Port at which a worker or a scheduler answers /metrics, /health/live and /health/ready; 0: none.
    worker_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    #: Address of that port. All who reach it read the metrics, which have no names.
    worker_host: str = "127.0.0.1"
    #: Seconds between two sweeps, which find work whose message was lost.
    sweep_seconds: Annotated[float, Field(gt=0)] = 30.0
    #: Seconds without progress after which a scheduled run counts as stalled and is started again.
    slot_stale_seconds: Annotated[float, Field(gt=0)] = 300.0


class RetentionRule(BaseModel):
    """How long events are kept: those over one of the limits are erased, with what was derived from them alone."""

    model_config = _FROZEN

    #: The namespaces; `*` stands for any letters.
    namespace: str = "*"
    #: The type of the events, such as `message.added`.
    type: str
    #: Days after which an event is erased.
    ttl_days: Annotated[int, Field(ge=1, le=36_500)] | None = None
    #: The newest events of the type that are kept; older ones are erased.
    keep_last: Annotated[int, Field(ge=0, le=10_000_000)] | None = None

    @model_validator(mode="after")
    def _has_a_limit(self) -> RetentionRule:
        if self.type not in _RETENTION_TYPES:
            raise ValueError(f"type is one of {', '.join(sorted(_RETENTION_TYPES))}")
        if self.ttl_days is None and self.keep_last is None:
            raise ValueError("give ttl_days, keep_last or both")
        return self


class RetentionSettings(BaseModel):
    """Retention: events that are erased by age or number."""

    model_config = _FROZEN

    #: Rules as a JSON list, such as `[{"namespace": "support-*", "type": "message.added", "ttl_days": 30}]`: a
    #: pattern of namespaces (all by default), the type of the events, `ttl_days`, `keep_last` or both. Of several rules
    #: that fit, the strictest limit holds. The nightly job erases what is over a limit, and writes receipts.
    retention: tuple[RetentionRule, ...] = ()


class CompactionSettings(BaseModel):
    """Compaction, expiry and staleness."""

    model_config = _FROZEN

    #: Hours after which raw episodes are compressed.
    compress_after_hours: Annotated[float, Field(gt=0)] = 24
    #: Days after which a compressed episode that was not distilled expires.
    compressed_expires_after_days: Annotated[float, Field(gt=0)] = 90
    #: Days after which raw episodes with a summary expire.
    raw_expires_after_days: Annotated[float, Field(gt=0)] = 7
    #: Importance from which raw episodes are kept.
    raw_importance_kept: Annotated[int, Field(ge=1, le=11)] = 8
    #: Days after which compressed episodes are distilled.
    distill_after_days: Annotated[float, Field(gt=0)] = 7
    #: Memories of a namespace (facts, preferences, procedures); the same number of summaries is allowed. Above the
    #: limit, the least important become stale or expire.
    memories_max: Annotated[int, Field(ge=1)] = 2_000
    #: Days without confirmation until a memory becomes stale, by type, as a JSON object such as `{"fact": 365}`: 1 to
    #: 36500, which is never. Types that it does not name keep their default.
    ttl_days: TtlDays = TTL_DAYS


class ConversationSettings(BaseModel):
    """Observations of running conversations."""

    model_config = _FROZEN

    #: Tokens of unobserved turns from which a session is observed.
    observe_tokens: Annotated[int, Field(ge=100)] = 3_000
    #: Tokens of a session's observations over which they are condensed to half.
    reflect_tokens: Annotated[int, Field(ge=100)] = 4_000


class LlmSettings(BaseModel):
    """The language model that extracts, summarises and observes, if one is configured."""

    model_config = _FROZEN

    #: The model as pydantic-ai names it, such as `openai:gpt-5-mini`; without a model, rules extract and summarise.
    llm: str | None = None
    #: The URL of an OpenAI-compatible server; `llm` is then the name of the model on that server.
    llm_base_url: str | None = None
    #: The namespaces whose texts may be sent to the model, as patterns: `["*"]` is all, `[]` none.
    llm_namespaces: tuple[str, ...] = ("*",)
    #: Seconds that the first request may take; from then on the time-out follows the measured speed of the server. One
    #: request that takes longer pauses the model for all namespaces.
    llm_timeout_seconds: Annotated[float, Field(gt=0)] = 120
    #: Tokens, of prompts and answers together, that may be used in a day (UTC). The last answer may exceed it.
    llm_tokens_per_day: Annotated[int, Field(ge=0)] = 500_000
    #: Tokens of one answer, with the reasoning of the model; together with a prompt of about 6,000 tokens they must fit
    #: in the context of the model.
    llm_answer_tokens_max: Annotated[int, Field(ge=256)] = 2_048
    #: Consecutive failures after which all namespaces use only the rules for `llm_pause_seconds`. A namespace whose
    #: messages get no usable answer is left to the rules alone, and counts once.
    llm_failures_max: Annotated[int, Field(ge=1)] = 3
    #: Seconds of that pause.
    llm_pause_seconds: Annotated[float, Field(gt=0)] = 300


class JobSettings(BaseModel):
    """All settings of jobs."""

    model_config = _FROZEN

    queue: QueueSettings = QueueSettings()
    compaction: CompactionSettings = CompactionSettings()
    retention: RetentionSettings = RetentionSettings()
    conversation: ConversationSettings = ConversationSettings()
    llm: LlmSettings = LlmSettings()
