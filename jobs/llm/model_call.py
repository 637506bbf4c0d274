"""Model call: opens the model of the settings, sends one request, and says what an error means.

pydantic-ai speaks the protocols of the providers. It is imported at the first call, because that takes a second.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from recollect.events.errors import short_text
from recollect.jobs.job_settings import LlmSettings
from recollect.jobs.llm.breaker import Failure
from recollect.projections.text.tokens import estimate_tokens

#: Two threads that import pydantic-ai at once, the check at the start and the first request, see half of its modules.
_IMPORTING = threading.Lock()
#: The reasoning that some servers send as a part of the text.
_THOUGHT_END = "</think>"
#: Seconds for the list of a server's models, and the models that a message names.
_LIST_SECONDS, _LISTED_MAX = 5.0, 10


class ModelAnswer(NamedTuple):
    """The text of an answer, and what it cost."""

    text: str
    input_tokens: int
    output_tokens: int
    #: US dollars by the list price of the provider; 0 when it is unknown.
    cost_usd: float


class ModelCall:
    """The model of the settings.

    Parameters:
        name: the model, such as `openai:gpt-5-mini`, or its name on the server of `llm_base_url`.
        count: adds the tokens and the cost of a request to the counters.
    """

    def __init__(self, name: str, settings: LlmSettings, count: Callable[[Mapping[str, float]], None]) -> None:
        self._name = name
        self._settings = settings
        self._count = count
        self._model: Any = None

    @property
    def provider(self) -> tuple[str, str]:
        """Return the provider and the model in the name; on a server of its own, `qwen2.5:7b` is one name."""
        if self._settings.llm_base_url is not None:
            return "openai-compatible", self.model_name
        provider, separator, model = self._name.partition(":")
        return (provider, model) if separator else ("unknown", self._name)

    @property
    def model_name(self) -> str:
        """Return the name of the model on its server."""
        is_own = self._settings.llm_base_url is not None
        return self._name.removeprefix("openai:") if is_own else self._name.partition(":")[2] or self._name

    async def ask(
        self, instructions: str, text: str, seconds: float, answer_tokens_max: int | None = None
    ) -> ModelAnswer:
        """Return the answer to one request.

        Parameters:
            answer_tokens_max: the tokens of the answer, at most; None: as many as the settings allow.
        """
        # The import takes a second, so it happens only when a model is used.
        with _IMPORTING:
            from pydantic_ai.direct import model_request  # noqa: PLC0415
            from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart  # noqa: PLC0415

        tokens_max = self._settings.llm_answer_tokens_max
        tokens_max = tokens_max if answer_tokens_max is None else min(answer_tokens_max, tokens_max)
        usage = {"requests": 1.0, "tokens": float(estimate_tokens(instructions + text))}
        try:
            response = await model_request(
                self._open(),
                [ModelRequest(parts=[SystemPromptPart(instructions), UserPromptPart(text)])],
                model_settings={
                    "timeout": seconds,
                    # `timeout` is that of a read; a server that sends a byte now and then never exceeds it.
                    "request_timeout": seconds,
                    # A slow server costs one time-out, not one for each attempt of the HTTP client.
                    "max_retries": 0,
                    "max_tokens": tokens_max,
                    "temperature": 0.0,
                },
            )
            # A server that counts nothing gives no number.
            input_tokens = response.usage.input_tokens or int(usage["tokens"])
            output_tokens = response.usage.output_tokens
            usage |= {"tokens": input_tokens + output_tokens, "output_tokens": output_tokens}
            usage["cost_usd"] = 0.0 if self._settings.llm_base_url is not None else _cost_usd(response)
        finally:
            # Failed requests use tokens too.
            usage["input_tokens"] = usage["tokens"] - usage.get("output_tokens", 0)
            self._count(usage)
        written = (response.text or "").rpartition(_THOUGHT_END)[2].strip()
        return ModelAnswer(written, input_tokens, output_tokens, usage["cost_usd"])

    async def setup_problem(self) -> str | None:
        """Return why the model cannot be used: a missing key or extra, or a name that its server does not list.

        None as well for a server that cannot be reached: it may start later.
        """
        try:
            model = await asyncio.to_thread(self._open)
            listed = getattr(getattr(model, "client", None), "models", None)
            page = await asyncio.wait_for(listed.list(), _LIST_SECONDS) if listed is not None else None
            names = {item.id for item in page.data} if page is not None else set[str]()
        except Exception as error:
            return short_text(error) if failure_of(error) == "refused" else None
        if not names or names & {self.model_name, f"{self.model_name}:latest"}:
            return None
        return f"the server has no model {self.model_name}; it has {', '.join(sorted(names)[:_LISTED_MAX])}"

    async def close(self) -> None:
        """Close the connections."""
        client: Any = getattr(self._model, "client", None)
        if client is not None:
            await client.close()

    def _open(self) -> Any:
        """Return the model of the settings; create it at the first call."""
        with _IMPORTING:
            if self._model is None:
                self._model = self._create()
            return self._model

    def _create(self) -> Any:
        if self._settings.llm_base_url is None:
            from pydantic_ai.models import infer_model  # noqa: PLC0415

            return infer_model(self._name)
        from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
        from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

        from recollect.jobs.llm.limited_client import limited_client  # noqa: PLC0415

        provider = OpenAIProvider(
            base_url=self._settings.llm_base_url,
            api_key=os.environ.get("OPENAI_API_KEY") or "none",
            http_client=limited_client(),
        )
        return OpenAIChatModel(self.model_name, provider=provider)


class UnusableAnswer(ValueError):
    """An answer that is not in the form that it was asked for."""


def failure_of(error: BaseException) -> Failure:
    """Return what an error says about the server."""
    with _IMPORTING:
        from pydantic_ai import exceptions  # noqa: PLC0415

    if isinstance(error, TimeoutError | exceptions.ModelRequestTimeout | exceptions.ModelTimeoutError):
        return "slow"
    # A name without its provider, a missing extra, a missing or wrong key, an unknown model.
    refused = (exceptions.UserError, exceptions.ModelAuthenticationError, exceptions.ModelNotFoundError, ImportError)
    if isinstance(error, refused) or (isinstance(error, ValueError) and "Unknown provider" in str(error)):
        return "refused"
    unusable = (
        UnusableAnswer,
        exceptions.UnexpectedModelBehavior,
        exceptions.UsageLimitExceeded,
        # Such as a text that a filter of the server refuses.
        exceptions.ModelRequestRejectedError,
    )
    return "unusable" if isinstance(error, unusable) else "unavailable"


def _cost_usd(response: Any) -> float:
    """Return the cost of a response by the list price of its model; 0 when it is unknown."""
    try:
        return float(response.cost().total_price)
    except (LookupError, AssertionError):
        return 0.0
