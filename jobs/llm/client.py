"""LLM client: asks a language model for typed answers.

A failure of any kind returns None, and the caller uses its rules instead.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from recollect.events.envelope import now_us, rfc3339
from recollect.events.errors import InvalidInput, short_text
from recollect.events.instruments import Counter, Histogram
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.events.storage.namespace_folder import folder_name
from recollect.events.tracing import captures_content, span
from recollect.jobs.job_settings import LlmSettings
from recollect.jobs.llm.breaker import Breaker, Failure
from recollect.jobs.llm.shared_pause import PAUSE_NAME, Pause, SharedPause
from recollect.jobs.llm.spend import Spend
from recollect.projections.text.prompt_fence import fence, single_line
from recollect.projections.text.tokens import estimate_tokens

if TYPE_CHECKING:
    from pydantic_ai import Agent

_logger = logging.getLogger(__name__)

_REQUESTS = Counter(
    "recollect_llm_requests",
    "Calls of a language model, by what came of them",
    ("provider", "model", "purpose", "outcome"),
)
_SECONDS = Histogram(
    "recollect_llm_request_duration_seconds", "Time of a call of a language model", ("provider", "model", "purpose")
)
_TOKENS = Counter("recollect_llm_tokens", "Tokens that language models have used", ("provider", "model", "direction"))

#: Further requests after malformed output.
RETRIES = 2
#: Seconds that a call may take in addition to the time-outs of its requests.
_SLACK_SECONDS = 5.0
#: Answers that are kept for a job that plans again, because another event was appended in the meantime.
_ANSWERS_MAX = 32

Output = TypeVar("Output", bound=BaseModel)


class Hello(BaseModel):
    """The answer to a probe; any object is one."""

    is_there: bool = True


#: The instructions of a probe.
_PROBE = "Answer that you are there."


class LlmClient:
    """The language model of the settings, with one breaker and one budget. Safe to use from many threads.

    Parameters:
        settings: the model and its limits.
        data: the folder of the file that counts the tokens.

    Raises:
        InvalidInput: the settings name no model.
    """

    def __init__(self, settings: LlmSettings, data: Path) -> None:
        if settings.llm is None:
            raise InvalidInput(
                "no language model is configured; name one, such as openai:gpt-5-mini", field="RECOLLECT_LLM"
            )
        #: The name of the model; extracted items record it as their extractor.
        self.name = settings.llm
        self._settings = settings
        self._spend = Spend(data / "llm-spend.json")
        self._breaker = Breaker(settings.llm_failures_max, settings.llm_pause_seconds)
        self._shared_pause = SharedPause(data / PAUSE_NAME)
        self._lock = threading.Lock()
        #: Whether the log says that the budget is spent.
        self._is_spent_logged = False
        self._answers: BoundedCache[str, BaseModel] = BoundedCache(_ANSWERS_MAX)
        # One event loop for all calls, because an HTTP client can only be used in the loop that created it.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recollect-llm", daemon=True)
        self._thread.start()
        self._model: Any = None
        #: The request that finds out after a pause whether the server answers; None before the first pause.
        self._probe: Future[Any] | None = None

    def ask(
        self,
        namespace: str,
        prompt: str,
        lines: Sequence[str],
        output: type[Output],
        *,
        tokens_max: int | None = None,
        retries: int = RETRIES,
    ) -> Output | None:
        """Return the model's answer; None when the budget or the breaker allows no request, or the request failed.

        Parameters:
            prompt: the name of a file in `prompts`.
            lines: the conversation; it is marked as data in the request.
            output: the type of the answer.
            tokens_max: the length that the model is asked to keep to; None: any.
            retries: further requests after malformed output; 0 when a caller waits for the answer.
        """
        text = fence([single_line(line) for line in lines])
        instructions = _prompt(prompt) + ("" if tokens_max is None else f"\nAnswer in at most {tokens_max} tokens.\n")
        key = sha256("\0".join((instructions, text)).encode(errors="replace")).hexdigest()
        cached = self._answers.get(key)
        if isinstance(cached, output):
            return cached
        if self._is_spent() or self._shared_pause.current() is not None:
            return None
        if self._breaker.seconds_left() == 0 or self._shared_pause.is_over():
            self._start_probe()
            return None
        if not self._breaker.allows(namespace):
            return None
        answer = self._request(namespace, prompt, instructions, text, output, retries)
        if answer is None:
            return None
        self._breaker.succeeded(namespace)
        self._answers.put(key, answer)
        return answer

    def _start_probe(self) -> None:
        """Ask the server after a pause whether it answers, in the background, unless that is under way.

        The first request of a job would wait for the time-out of a server that hangs, and hold up the rules meanwhile.
        """
        with self._lock:
            if self._probe is not None and not self._probe.done():
                return
            self._probe = asyncio.run_coroutine_threadsafe(self._ask(_PROBE, "Hello", Hello, 0), self._loop)
        self._probe.add_done_callback(self._probed)

    def _probed(self, probe: Future[Any]) -> None:
        """End the pause when the server has answered; begin another one when it has not."""
        error = None if probe.cancelled() else probe.exception()
        failure = None if error is None else _failure(error)
        _REQUESTS.add(*self._provider, "probe", failure or "answered")
        if probe.cancelled():
            return
        if error is not None and failure != "unusable":
            self._failed("", error)
            return
        self._breaker.succeeded("")
        self._shared_pause.end()
        _logger.warning("The language model %s answers again.", self.name)

    def _request(
        self, namespace: str, purpose: str, instructions: str, text: str, output: type[Output], retries: int
    ) -> Output | None:
        """Return the answer to one call, which is counted and traced; None when it failed."""
        provider, model = self._provider
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "recollect.purpose": purpose,
        }
        if captures_content():
            attributes |= {"gen_ai.system_instructions": instructions, "gen_ai.input.messages": text}
        started = time.perf_counter()
        future = asyncio.run_coroutine_threadsafe(self._ask(instructions, text, output, retries), self._loop)
        with span(f"chat {model}", attributes) as current:
            try:
                answer, tokens = future.result(self._settings.llm_timeout_seconds * (retries + 1) + _SLACK_SECONDS)
            except (Exception, FutureTimeout) as error:
                future.cancel()
                failure = self._failed(namespace, error)
                _REQUESTS.add(provider, model, purpose, failure)
                current.set("error.type", failure)
                return None
            finally:
                _SECONDS.observe(time.perf_counter() - started, provider, model, purpose)
            _REQUESTS.add(provider, model, purpose, "answered")
            current.set("gen_ai.usage.input_tokens", tokens[0])
            current.set("gen_ai.usage.output_tokens", tokens[1])
        return answer

    @property
    def _provider(self) -> tuple[str, str]:
        """Return the provider and the model in the name, such as `openai:gpt-5-mini`."""
        provider, separator, model = self.name.partition(":")
        return (provider, model) if separator else ("unknown", self.name)

    def forget_answers(self, _namespace: str) -> None:
        """Drop the answers in memory, which may have words of erased events."""
        self._answers.clear()

    def status(self) -> dict[str, Any]:
        """Return the fields for health: the model, its state, the tokens of today and the pauses."""
        tokens = self._spend.tokens_today()
        pause = self._pause()
        is_spent = tokens >= self._settings.llm_tokens_per_day
        return {
            "model": self.name,
            "state": "budget spent" if is_spent else "ready" if pause is None else "paused",
            "tokens_today": tokens,
            "tokens_per_day": self._settings.llm_tokens_per_day,
            "paused_until": None if pause is None else rfc3339(pause.until_us // 1_000_000 * 1_000_000),
            "pause_reason": None if pause is None else pause.reason,
            "paused_namespaces": self._breaker.paused_namespaces(),
        }

    def problem(self) -> str | None:
        """Return why the rules do the model's work, and what to do about it; None when the model is used."""
        if self._spend.tokens_today() >= self._settings.llm_tokens_per_day:
            return (
                f"the language model's {self._settings.llm_tokens_per_day} tokens of today are spent, and rules do its "
                "work until midnight UTC; raise RECOLLECT_LLM_TOKENS_PER_DAY if that is too early"
            )
        pause = self._pause()
        if pause is None:
            return None
        seconds = max(0, pause.until_us - now_us()) // 1_000_000
        return (
            f"the language model is paused for {seconds} s after failures, and rules do its work; "
            f"check its server: {pause.reason}"
        )

    def close(self) -> None:
        """Close the connections and end the thread; a second call does nothing."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(_SLACK_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SLACK_SECONDS)
        self._loop.close()

    def _pause(self) -> Pause | None:
        """Return the pause of all requests, of this or another process; None without one."""
        pause = self._shared_pause.current()
        if pause is None and self._breaker.seconds_left() is not None:
            # The time is over, and no request has shown yet whether the server answers.
            return Pause(now_us(), "it has not been asked again yet")
        return pause

    def _is_spent(self) -> bool:
        """Return whether the tokens of today are spent; log each change."""
        is_spent = self._spend.tokens_today() >= self._settings.llm_tokens_per_day
        with self._lock:
            changed, self._is_spent_logged = is_spent != self._is_spent_logged, is_spent
        if changed and is_spent:
            _logger.warning(
                "The %d tokens of today for the language model %s are spent; rules do its work until midnight UTC.",
                self._settings.llm_tokens_per_day,
                self.name,
            )
        elif changed:
            _logger.warning("The language model %s has tokens for today again.", self.name)
        return is_spent

    def _failed(self, namespace: str, error: BaseException) -> Failure:
        """Record a failed request; log it when it begins a pause. Return what the error says about the server."""
        failure = _failure(error)
        # Health shows it to operators. The log does not: a server may quote the text that it was sent.
        reason = short_text(error)
        seconds = self._settings.llm_pause_seconds
        is_new = self._breaker.failed(namespace, failure)
        if self._breaker.seconds_left() is not None:
            self._shared_pause.begin(seconds, reason)
        if is_new:
            _logger.warning(
                "The language model %s is paused for %.0f s, and rules do its work: %s", self.name, seconds, failure
            )
        elif failure == "unusable":
            _logger.warning(
                "The language model %s gives no usable answer for namespace %.12s; rules do its work there for %.0f s",
                self.name,
                folder_name(namespace),
                seconds,
            )
        return failure

    async def _close(self) -> None:
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()
        client: Any = getattr(self._model, "client", None)
        if client is not None:
            await client.close()

    async def _ask(
        self, instructions: str, text: str, output: type[Output], retries: int
    ) -> tuple[Output, tuple[int, int]]:
        """Return the answer, and the tokens of the requests and of the answers."""
        # The import takes a second, so it happens only when a model is used.
        from pydantic_ai import Agent, RunUsage, TextOutput, ToolOutput, UsageLimits  # noqa: PLC0415

        seconds = self._settings.llm_timeout_seconds
        agent: Agent[Any, Output] = Agent(
            self._open_model(),
            # Servers without tool calls answer with the JSON as text.
            output_type=[ToolOutput(output, name="answer"), TextOutput(_parser(output))],
            instructions=instructions,
            retries=retries,
            model_settings={
                "timeout": seconds,
                # `timeout` is that of a read; a server that sends a byte now and then never exceeds it.
                "request_timeout": seconds,
                # A slow server costs one time-out, not one for each attempt of the HTTP client.
                "max_retries": 0,
                "max_tokens": self._settings.llm_answer_tokens_max,
                "temperature": 0.0,
            },
        )
        usage = RunUsage()
        try:
            result = await agent.run(text, usage=usage, usage_limits=UsageLimits(request_limit=retries + 1))
        finally:
            # Failed requests use tokens too. A server that timed out, or counts nothing, gives no number.
            input_tokens = usage.input_tokens or (0 if usage.total_tokens else estimate_tokens(instructions + text))
            self._spend.add(usage.total_tokens or input_tokens)
            _TOKENS.add(*self._provider, "input", amount=input_tokens)
            _TOKENS.add(*self._provider, "output", amount=usage.output_tokens)
        return result.output, (input_tokens, usage.output_tokens)

    def _open_model(self) -> Any:
        """Return the model of the settings; create it at the first call."""
        if self._model is None:
            if self._settings.llm_base_url is None:
                from pydantic_ai.models import infer_model  # noqa: PLC0415

                self._model = infer_model(self.name)
            else:
                from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
                from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

                from recollect.jobs.llm.limited_client import limited_client  # noqa: PLC0415

                provider = OpenAIProvider(
                    base_url=self._settings.llm_base_url,
                    api_key=os.environ.get("OPENAI_API_KEY") or "none",
                    http_client=limited_client(),
                )
                self._model = OpenAIChatModel(self.name.removeprefix("openai:"), provider=provider)
        return self._model


def _failure(error: BaseException) -> Failure:
    """Return what an error says about the server."""
    from pydantic_ai import exceptions  # noqa: PLC0415

    if isinstance(error, TimeoutError | exceptions.ModelRequestTimeout | exceptions.ModelTimeoutError):
        return "slow"
    if isinstance(error, exceptions.ModelAuthenticationError | exceptions.ModelNotFoundError):
        return "unavailable"
    unusable = (
        exceptions.UnexpectedModelBehavior,
        exceptions.UsageLimitExceeded,
        # Such as a text that a filter of the server refuses.
        exceptions.ModelRequestRejectedError,
    )
    return "unusable" if isinstance(error, unusable) else "unavailable"


def _parser(output: type[Output]) -> Any:
    """Return a function that reads the answer of a model that writes JSON instead of calling a tool."""
    from pydantic_ai import ModelRetry  # noqa: PLC0415

    def parse(text: str) -> Output:
        start, end = text.find("{"), text.rfind("}")
        try:
            return output.model_validate_json(text[start : end + 1])
        except ValidationError as error:
            raise ModelRetry(f"Answer with the tool, or with its JSON only: {short_text(error)}") from None

    return parse


@cache
def _prompt(name: str) -> str:
    return files(__package__).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
