"""LLM client: asks a language model for typed answers.

A failure of any kind returns None, and the caller uses its rules instead.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from concurrent.futures import TimeoutError as FutureTimeout
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from recollect.events.errors import InvalidInput, short_text
from recollect.jobs.job_settings import LlmSettings
from recollect.jobs.llm.breaker import Breaker
from recollect.jobs.llm.spend import Spend

if TYPE_CHECKING:
    from pydantic_ai import Agent

_logger = logging.getLogger(__name__)

#: Further requests after malformed output.
_RETRIES = 2
#: Seconds that a call may take in addition to the time-outs of its requests.
_SLACK_SECONDS = 5.0

Output = TypeVar("Output", bound=BaseModel)


class LlmClient:
    """The language model of the settings. Safe to use from many threads.

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
        # One event loop for all calls, because an HTTP client can only be used in the loop that created it.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recollect-llm", daemon=True)
        self._thread.start()
        self._model: Any = None

    def ask(self, namespace: str, prompt: str, text: str, output: type[Output]) -> Output | None:
        """Return the model's answer; None when the budget or the breaker allows no request, or the request failed.

        Parameters:
            prompt: the name of a file in `prompts`.
            text: the conversation; it is marked as data in the request.
            output: the type of the answer.
        """
        if self._spend.tokens_today() >= self._settings.llm_tokens_per_day or not self._breaker.allows(namespace):
            return None
        future = asyncio.run_coroutine_threadsafe(self._ask(prompt, text, output), self._loop)
        try:
            answer = future.result(self._settings.llm_timeout_seconds * (_RETRIES + 1) + _SLACK_SECONDS)
        except (Exception, FutureTimeout) as error:
            future.cancel()
            _logger.warning("the language model did not answer for namespace %r: %s", namespace, short_text(error))
            self._breaker.failed(namespace)
            return None
        self._breaker.succeeded(namespace)
        return answer

    def status(self) -> dict[str, Any]:
        """Return the fields for health: the model, the tokens of today, and the number of paused namespaces."""
        return {
            "model": self.name,
            "tokens_today": self._spend.tokens_today(),
            "tokens_per_day": self._settings.llm_tokens_per_day,
            "paused_namespaces": self._breaker.open_count(),
        }

    def close(self) -> None:
        """Close the connections and end the thread; a second call does nothing."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(_SLACK_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SLACK_SECONDS)
        self._loop.close()

    async def _close(self) -> None:
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()
        client: Any = getattr(self._model, "client", None)
        if client is not None:
            await client.close()

    async def _ask(self, prompt: str, text: str, output: type[Output]) -> Output:
        # The import takes a second, so it happens only when a model is used.
        from pydantic_ai import Agent, RunUsage, UsageLimits  # noqa: PLC0415

        agent: Agent[Any, Output] = Agent(
            self._open_model(),
            output_type=output,
            instructions=_prompt(prompt),
            retries=_RETRIES,
            model_settings={"timeout": self._settings.llm_timeout_seconds, "temperature": 0.0},
        )
        usage = RunUsage()
        try:
            result = await agent.run(
                f"<conversation>\n{text.replace('</conversation>', '')}\n</conversation>",
                usage=usage,
                usage_limits=UsageLimits(request_limit=_RETRIES + 1),
            )
        finally:
            # Failed requests use tokens too.
            self._spend.add(usage.total_tokens)
        return result.output

    def _open_model(self) -> Any:
        """Return the model of the settings; create it at the first call."""
        if self._model is None:
            if self._settings.llm_base_url is None:
                from pydantic_ai.models import infer_model  # noqa: PLC0415

                self._model = infer_model(self.name)
            else:
                from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
                from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

                key = os.environ.get("OPENAI_API_KEY") or "none"
                provider = OpenAIProvider(base_url=self._settings.llm_base_url, api_key=key)
                self._model = OpenAIChatModel(self.name.removeprefix("openai:"), provider=provider)
        return self._model


@cache
def _prompt(name: str) -> str:
    return files(__package__).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
