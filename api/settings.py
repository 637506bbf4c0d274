"""Settings: the ``RECOLLECT_*`` variables of the environment, in groups by subject, with their defaults."""

from __future__ import annotations

import logging
import os
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, create_model
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.exceptions import SettingsError

from recollect.events.encryption.master_key import KeyOptions
from recollect.events.errors import InvalidInput
from recollect.events.field_problems import first_problem
from recollect.events.intake.screening import SecretPolicies, SecretPolicy, matching_policy
from recollect.events.late_pattern import late_pattern
from recollect.jobs.job_settings import JobSettings
from recollect.projections.projection_settings import EmbeddingSettings, ReadModelSettings

_logger = logging.getLogger(__name__)

#: Variables that are not settings: the namespace of `context` and `mcp`, and the token in the examples of the docs.
#: Those of our own tests begin with `TEST_`.
_OTHER_VARIABLES = ("NAMESPACE", "TOKEN")
#: Similarity of two names from which one may be meant by the other: one of three letters may differ.
_NEAR_RATIO = 0.66
#: Settings that are named for an unknown variable.
_NEAR_MAX = 3
#: The setting in the message of pydantic-settings for a text that is not JSON.
_NAMED_FIELD = late_pattern(r'field "(\w+)"')
#: Unknown variables that this process has warned of.
_warned: set[str] = set()

#: Milliseconds that one retrieval may take.
RETRIEVAL_BUDGET_MS = 500.0
#: Seconds that retrievals wait for the embedding model: it loads in 4 seconds on 2 idle cores, in 30 on busy ones.
MODEL_WAIT_SECONDS = 60.0
#: Items in a result (`004`: 25), and the most that a request may ask for. Ten hold 84 % of LoCoMo's evidence.
RECALL_LIMIT = 10
LIMIT_MAX = 100
#: Tokens of a context (`004`), and the most that a request may ask for.
CONTEXT_TOKENS = 3_500
CONTEXT_TOKENS_MAX = 100_000
#: Bytes of traces on disk: about 10,000 retrievals.
TRACES_BYTES_MAX = 64 << 20
#: Days after which a trace, which holds a query and what it recalled, is removed.
TRACES_DAYS_MAX = 30
#: Free bytes of the disk: room for a replay of a read model of 100,000 messages, and for an hour of appends.
DISK_FREE_BYTES_MIN = 256 << 20
#: Requests of one token in a minute: a bot with 50 messages a second, each with a retrieval.
REQUESTS_PER_MINUTE = 6_000
#: Bytes of the audit log: about 80,000 requests.
AUDIT_BYTES_MAX = 16 << 20

#: Server processes. Each has some 200 MB, and every two of them share a channel.
PROCESSES_MAX = 64

_FROZEN = ConfigDict(frozen=True, extra="forbid")


class StorageSettings(BaseModel):
    """Settings of the data folder and the log."""

    model_config = _FROZEN

    #: The data folder.
    data: Path = Path("recollect-data")
    #: URL of the log: `sqlite:///…` or `postgresql://…`; log.db in the data folder when it is not set.
    log: str | None = None
    #: Whether payloads are encrypted in the log: `auto` encrypts those of a log that began with encryption, `on` and
    #: `off` hold for all new events. Events are read as they were recorded.
    encryption: Literal["auto", "on", "off"] = "auto"
    #: The folder of keys.db, which has the keys of encrypted events; the data folder when it is not set.
    keys: Path | None = None
    #: The key that wraps the keys in keys.db: 32 bytes as 64 hex digits or in base64. Without one, the mode of
    #: the file alone protects them.
    master_key: SecretStr | None = None
    #: A file with the master key, which only its owner can read.
    master_key_file: Path | None = None
    #: `module:name` of an object with the methods `wrap(key, label)` and `unwrap(wrapped, label)`, such as a client of
    #: a key management service, instead of a master key.
    master_key_provider: str | None = None
    #: Free bytes of the data folder's disk under which health is degraded and a server is not ready; 0: none.
    disk_free_bytes_min: Annotated[int, Field(ge=0)] = DISK_FREE_BYTES_MIN
    #: Bytes of retrieval traces on disk; 0 keeps none.
    traces_bytes_max: Annotated[int, Field(ge=0)] = TRACES_BYTES_MAX
    #: Days after which a trace is removed, also while no new one is written.
    traces_days_max: Annotated[int, Field(ge=1, le=3_650)] = TRACES_DAYS_MAX

    @property
    def log_url(self) -> str:
        """Return the log's URL."""
        return self.log or f"sqlite:///{self.data / 'log.db'}"

    @property
    def key_options(self) -> KeyOptions:
        """Return where the keys are, and whether new events are encrypted."""
        return KeyOptions(
            mode=self.encryption,
            folder=self.keys,
            master_key=None if self.master_key is None else self.master_key.get_secret_value(),
            master_key_file=self.master_key_file,
            master_key_provider=self.master_key_provider,
        )


class PrivacySettings(BaseModel):
    """Settings of what is removed from events before they are appended."""

    model_config = _FROZEN

    #: Keys, cards, bank accounts and passwords in events: `off`; `label`: contexts show them only when asked for;
    #: `redact`: the log gets `[redacted: card]` in their place.
    secrets: SecretPolicy = "redact"
    #: PINs and codes of everyday life, such as that of a door or of the wireless network at home: `off`, `label` or
    #: `redact`, as for `secrets`.
    everyday_secrets: SecretPolicy = "label"
    #: The policy of both for some namespaces, by patterns, of which the first match counts:
    #: `{"team-*": "redact", "lab": "off"}`.
    secrets_by_namespace: dict[str, SecretPolicy] = {}

    def policies(self, namespace: str) -> SecretPolicies:
        """Return the policies of a namespace."""
        by_namespace = [*self.secrets_by_namespace.items()]
        return SecretPolicies(
            credentials=matching_policy(namespace, self.secrets, by_namespace),
            everyday=matching_policy(namespace, self.everyday_secrets, by_namespace),
        )


class ServerSettings(BaseModel):
    """Settings of the HTTP server."""

    model_config = _FROZEN

    #: Address that `recollect serve` listens on. One that other machines reach is refused while there is no token.
    host: str = "127.0.0.1"
    #: Port of the server; 0 takes a free port.
    port: Annotated[int, Field(ge=0, le=65_535)] = 8787
    #: Processes that answer requests; `auto`: one for each processor. With several, each namespace is kept in the
    #: memory of one of them, worker and scheduler run in one more, and each loads the embedding model.
    processes: Annotated[int, Field(ge=1, le=PROCESSES_MAX)] | Literal["auto"] = 1
    #: Connections of a process at a time; further ones get 503. Half of the 1,024 files that a process may open on
    #: many systems.
    connections_max: Annotated[int, Field(ge=1)] = 512
    #: Seconds that a client may take to send the headers of a request.
    header_seconds_max: Annotated[float, Field(gt=0)] = 10
    #: Seconds that a client may take to send the body of a request, after its headers.
    body_seconds_max: Annotated[float, Field(gt=0)] = 30
    #: Whether MCP also offers the tools `search` and `fetch`, which connectors of ChatGPT look for.
    mcp_connector_tools: bool = False

    @property
    def process_count(self) -> int:
        """Return the number of processes that answer requests."""
        return min(PROCESSES_MAX, available_processors()) if self.processes == "auto" else self.processes


class LogSettings(BaseModel):
    """Settings of the messages of a process, and of its traces."""

    model_config = _FROZEN

    #: The least level of the messages of Recollect on standard error. `debug` has a line for each request.
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    #: `json`: a JSON object a line; `text`: for people; `auto`: JSON where standard error is not a terminal.
    log_format: Literal["auto", "json", "text"] = "auto"
    #: Whether requests, retrievals and jobs are traced with OpenTelemetry, which the extra `recollect[otel]` installs.
    #: Its own variables, such as `OTEL_EXPORTER_OTLP_ENDPOINT`, say where the spans go.
    tracing: bool = False


class AccessSettings(BaseModel):
    """Settings of access over HTTP: tokens, names of the server, rates, and the audit log."""

    model_config = _FROZEN

    #: The file of the tokens; tokens.json in the data folder when it is not set. Machines on one log share it.
    tokens: Path | None = None
    #: Names, with commas between them, that requests may address the server by besides its address and `localhost`:
    #: that of a proxy, or of a container. Pages of these hosts may send requests.
    allowed_hosts: str = ""
    #: Requests that one token may send in a minute; `settle`, `window` and work on a namespace count ten times.
    #: 0 sets no limit.
    requests_per_minute: Annotated[int, Field(ge=0)] = REQUESTS_PER_MINUTE
    #: Requests with a wrong token, or without the one they need, that one address may send in a minute; further ones
    #: get 429 and no line in the audit log, which they would fill. 0 sets no limit.
    denials_per_minute: Annotated[int, Field(ge=0)] = 60
    #: Bytes of the audit log on disk, about 200 a line; 0 keeps none.
    audit_bytes_max: Annotated[int, Field(ge=0)] = AUDIT_BYTES_MAX

    @property
    def host_names(self) -> tuple[str, ...]:
        """Return the names in `allowed_hosts`."""
        return tuple(name.strip() for name in self.allowed_hosts.split(",") if name.strip())


class RetrievalSettings(BaseModel):
    """Settings of retrieval: its time budget, how much it returns, how it searches and ranks, the relevance gate."""

    model_config = _FROZEN

    #: Milliseconds that one retrieval may take.
    retrieval_budget_ms: Annotated[float, Field(gt=0)] = RETRIEVAL_BUDGET_MS
    #: Seconds that the first retrievals of a Python process, and those over HTTP with `wait=true`, wait for the
    #: embedding model and its first batch; each of them embeds new messages first. 0: none waits, and only workers
    #: embed new messages.
    model_wait_seconds: Annotated[float, Field(ge=0, le=3_600)] = MODEL_WAIT_SECONDS
    #: Cross-encoder of sentence-transformers, by name or path, that reorders the first 20 episodes; empty for none.
    reranker: str = ""
    #: Probability of an answer from which a retrieval returns items; 0 always returns items. None: what was measured
    #: best, 0.15 for a question and 0.6 for a turn; 0.09 with another embedding model, 0.06 by keywords alone.
    gate_answer_min: Annotated[float, Field(ge=0, le=1)] | None = None
    #: Items in a result, at most, when the request has no `limit`; twice as many when an active query asks for a list,
    #: a number of things or all about a topic.
    recall_limit: Annotated[int, Field(ge=1, le=LIMIT_MAX)] = RECALL_LIMIT
    #: Tokens of a context, at most, when the request has no `budget_tokens`.
    context_tokens: Annotated[int, Field(ge=0, le=CONTEXT_TOKENS_MAX)] = CONTEXT_TOKENS
    #: Days in which age halves the odds of an episode, besides what the fitted weights make of its age; not set: only
    #: these.
    recency_half_life_days: Annotated[float, Field(gt=0)] | None = None


class Settings(JobSettings):
    """The settings of one process, in groups. ``RECOLLECT_PORT=9000`` sets `server.port`."""

    storage: StorageSettings = StorageSettings()
    privacy: PrivacySettings = PrivacySettings()
    server: ServerSettings = ServerSettings()
    access: AccessSettings = AccessSettings()
    logging: LogSettings = LogSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    read_models: ReadModelSettings = ReadModelSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()

    @property
    def tokens_path(self) -> Path:
        """Return the file of the tokens."""
        return self.access.tokens or self.storage.data / "tokens.json"


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def setting_groups() -> dict[str, type[BaseModel]]:
    """Return the groups by name. No two groups have a field of the same name."""
    return {name: type(group) for name, group in Settings()}


def load_settings(**values: Any) -> Settings:
    """Return the settings of the environment, overridden by `values`; warn once of variables that are not settings.

    Parameters:
        values: fields by name, such as ``port=9000``.

    Raises:
        InvalidInput: a value does not fit its setting.
    """
    for name, advice in unknown_variables().items():
        if name not in _warned:
            _warned.add(name)
            _logger.warning("%s", advice)
    flat_settings = _flat_settings()
    try:
        flat = flat_settings(**values)
    except SettingsError as error:
        # Only its message names the setting.
        named = _NAMED_FIELD.search(str(error))
        field = named[1] if named else "settings"
        reason = "is not JSON; docs/reference/settings.md has an example"
        raise InvalidInput(reason, field=f"RECOLLECT_{field.upper()}") from None
    except ValidationError as error:
        problem = first_problem(error, flat_settings)
        raise InvalidInput(problem.reason, field=f"RECOLLECT_{str(problem.field).upper()}") from None
    groups: dict[str, Any] = {
        name: group.model_construct(**{field: getattr(flat, field) for field in group.model_fields})
        for name, group in setting_groups().items()
    }
    return Settings(**groups)


def unknown_variables() -> dict[str, str]:
    """Return the variables of the environment that are named as settings and are not, each with what to do."""
    settings = [name.upper() for group in setting_groups().values() for name in group.model_fields]
    unknown: dict[str, str] = {}
    for variable in sorted(os.environ):
        prefix, _, name = variable.upper().partition("_")
        if prefix != "RECOLLECT" or name in settings or name in _OTHER_VARIABLES or name.startswith("TEST_"):
            continue
        # Of several, letters do not say which one is meant: BUDGET_TOKENS is nearest to REFLECT_TOKENS.
        near = [
            f"RECOLLECT_{setting}" for setting in get_close_matches(name, settings, n=_NEAR_MAX, cutoff=_NEAR_RATIO)
        ]
        advice = f"did you mean {' or '.join(near)}?" if near else "docs/reference/settings.md lists the settings"
        unknown[variable] = f"{variable} is not a setting and has no effect; {advice}"
    return unknown


@cache
def _flat_settings() -> type[BaseSettings]:
    """Return a class with the fields of all groups, which pydantic-settings fills from the environment."""
    fields: dict[str, Any] = {
        name: (field.annotation, field)
        for group in setting_groups().values()
        for name, field in group.model_fields.items()
    }
    return create_model("_FlatSettings", __base__=_EnvironmentSettings, **fields)


class _EnvironmentSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="RECOLLECT_", frozen=True, extra="forbid")
