"""LLM client: asks a language model for plain text, which the caller parses; neither tools nor a schema are needed.

A failure of any kind returns None, and the caller uses its rules instead. Secrets never leave: they are redacted here,
in the only place that all requests pass.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from recollect.events.envelope import now_us, rfc3339
from recollect.events.errors import InvalidInput, short_text
from recollect.events.instruments import Counter, Histogram
from recollect.events.intake.secrets import redact, unsent_secrets
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.events.storage.namespace_folder import folder_name
from recollect.events.tracing import captures_content, span
from recollect.jobs.job_settings import LlmSettings
from recollect.jobs.llm.breaker import Breaker, Failure
from recollect.jobs.llm.model_call import ModelCall, UnusableAnswer, failure_of
from recollect.jobs.llm.shared_pause import PAUSE_NAME, Pause, SharedPause
from recollect.jobs.llm.speed import Speed
from recollect.jobs.llm.spend import Spend
from recollect.projections.text.prompt_fence import fence, single_line
from recollect.projections.text.tokens import estimate_tokens

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

#: Seconds that a call may take in addition to the time-out of its request.
_SLACK_SECONDS = 5.0
#: Answers that are kept for a job that plans again, because another event was appended in the meantime.
_ANSWERS_MAX = 32

Output = TypeVar("Output")

#: The instructions of a probe.
_PROBE = "Answer with one word."
#: Tokens of an answer as a share of the conversation, and in addition, by which the expected time is estimated.
_ANSWER_SHARE, _ANSWER_TOKENS = 0.5, 200


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
        self._speed = Speed(settings.llm_timeout_seconds)
        self._breaker = Breaker(settings.llm_failures_max, settings.llm_pause_seconds)
        self._shared_pause = SharedPause(data / PAUSE_NAME)
        self._lock = threading.Lock()
        #: Whether the log says that the budget is spent.
        self._is_spent_logged = False
        self._answers: BoundedCache[str, str] = BoundedCache(_ANSWERS_MAX)
        #: The requests that are under way, by the hash of their text: a second caller waits for the same answer.
        self._flights: dict[str, Future[str | None]] = {}
        #: Why the model of the settings cannot be used, such as a missing key; None while nothing is wrong with it.
        self._setup_problem: str | None = None
        # One event loop for all calls, because an HTTP client can only be used in the loop that created it.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recollect-llm", daemon=True)
        self._thread.start()
        self._call = ModelCall(settings.llm, settings, self._count)
        #: The request that finds out after a pause whether the server answers; None before the first pause.
        self._probe: Future[Any] | None = None

    def may_read(self, namespace: str) -> bool:
        """Return whether texts of a namespace may be sent, and the model is neither paused nor over its budget."""
        if not any(fnmatchcase(namespace, pattern) for pattern in self._settings.llm_namespaces) or self._is_spent():
            return False
        return self._shared_pause.current() is None

    def ask(
        self,
        namespace: str,
        prompt: str,
        lines: Sequence[str],
        parse: Callable[[str], Output | None],
        *,
        tokens_max: int | None = None,
        seconds_max: float | None = None,
    ) -> Output | None:
        """Return the parsed answer; None when the namespace, the budget or the breaker allows no request, or it failed.

        Parameters:
            prompt: the name of a file in `prompts`.
            lines: the conversation; it is marked as data in the request, and its secrets are redacted.
            parse: returns the value of an answer; None for an unusable one.
            tokens_max: the length that the model is asked to keep to; None: any.
            seconds_max: the longest time-out, when a caller waits for the answer.
        """
        if not any(fnmatchcase(namespace, pattern) for pattern in self._settings.llm_namespaces):
            return None
        text = fence([single_line(_without_secrets(line)) for line in lines])
        instructions = _prompt(prompt) + ("" if tokens_max is None else f"\nWrite at most {tokens_max // 2} words.\n")
        key = sha256("\0".join((instructions, text)).encode(errors="replace")).hexdigest()
        cached = self._answers.get(key)
        if cached is not None:
            return parse(cached)
        with self._lock:
            flight = self._flights.get(key)
            is_first = flight is None
            if flight is None:
                flight = self._flights[key] = Future()
        if not is_first:
            answer = flight.result()
            return None if answer is None else parse(answer)
        answer = None
        try:
            answer = self._answer(namespace, prompt, instructions, text, parse, seconds_max)
            if answer is not None:
                self._answers.put(key, answer)
        finally:
            with self._lock:
                del self._flights[key]
            flight.set_result(answer)
        return None if answer is None else parse(answer)

    def _answer(
        self,
        namespace: str,
        purpose: str,
        instructions: str,
        text: str,
        parse: Callable[[str], object],
        seconds_max: float | None,
    ) -> str | None:
        """Return the text of an answer that can be parsed; None without one."""
        if self._is_spent() or self._shared_pause.current() is not None:
            return None
        if self._breaker.seconds_left() == 0 or self._shared_pause.is_over():
            self._start_probe()
            return None
        if not self._breaker.allows(namespace):
            return None
        self._spend.add({"words_sent": len(text.split())})
        answer = self._request(namespace, purpose, instructions, text, parse, seconds_max)
        if answer is not None:
            self._breaker.succeeded(namespace)
        return answer

    def note_seen(self, words: int) -> None:
        """Count the words of messages that are to be read."""
        self._spend.add({"words_seen": words})

    def _count(self, usage: Mapping[str, float]) -> None:
        """Count the tokens and the cost of a request."""
        self._spend.add(usage)
        _TOKENS.add(*self._call.provider, "input", amount=int(usage["input_tokens"]))
        _TOKENS.add(*self._call.provider, "output", amount=int(usage.get("output_tokens", 0)))

    def start_check(self) -> None:
        """Look in the background whether the model can be used, so that a missing key is shown at the start."""
        asyncio.run_coroutine_threadsafe(self._check(), self._loop)

    async def _check(self) -> None:
        problem = await self._call.setup_problem()
        if problem is not None:
            self._note_setup(problem)

    def _note_setup(self, problem: str) -> None:
        self._setup_problem = problem
        _logger.warning("The language model %s cannot be used, and rules do its work: %s", self.name, problem)

    def _start_probe(self) -> None:
        """Ask the server after a pause whether it answers, in the background, unless that is under way.

        The first request of a job would wait for the time-out of a server that hangs, and hold up the rules meanwhile.
        """
        with self._lock:
            if self._probe is not None and not self._probe.done():
                return
            self._probe = asyncio.run_coroutine_threadsafe(
                self._call.ask(_PROBE, "Hello", self._speed.seconds(10, 10)), self._loop
            )
        self._probe.add_done_callback(self._probed)

    def _probed(self, probe: Future[Any]) -> None:
        """End the pause when the server has answered; begin another one when it has not."""
        error = None if probe.cancelled() else probe.exception()
        failure = None if error is None else failure_of(error)
        _REQUESTS.add(*self._call.provider, "probe", failure or "answered")
        if probe.cancelled():
            return
        if error is not None and failure != "unusable":
            self._failed("", error)
            return
        self._breaker.succeeded("")
        self._shared_pause.end()
        self._setup_problem = None
        _logger.warning("The language model %s answers again.", self.name)

    def _request(
        self,
        namespace: str,
        purpose: str,
        instructions: str,
        text: str,
        parse: Callable[[str], object],
        seconds_max: float | None,
    ) -> str | None:
        """Return the answer to one call, which is counted and traced; None when it failed."""
        provider, model = self._call.provider
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "recollect.purpose": purpose,
        }
        if captures_content():
            attributes |= {"gen_ai.system_instructions": instructions, "gen_ai.input.messages": text}
        tokens = estimate_tokens(text)
        expected = min(int(_ANSWER_SHARE * tokens) + _ANSWER_TOKENS, self._settings.llm_answer_tokens_max)
        input_tokens = tokens + estimate_tokens(instructions)
        seconds = self._speed.seconds(input_tokens, expected)
        seconds = seconds if seconds_max is None else min(seconds, seconds_max)
        tokens_max = self._speed.answer_tokens(input_tokens, seconds)
        started = time.perf_counter()
        future = asyncio.run_coroutine_threadsafe(self._call.ask(instructions, text, seconds, tokens_max), self._loop)
        with span(f"chat {model}", attributes) as current:
            try:
                answer = future.result(seconds + _SLACK_SECONDS)
                if parse(answer.text) is None:
                    raise UnusableAnswer(f"the answer to {purpose} is not in the form that it was asked for")
            except (Exception, FutureTimeout) as error:
                future.cancel()
                failure = self._failed(namespace, error)
                _REQUESTS.add(provider, model, purpose, failure)
                current.set("error.type", failure)
                return None
            finally:
                _SECONDS.observe(time.perf_counter() - started, provider, model, purpose)
            self._speed.answered(answer.input_tokens, answer.output_tokens, time.perf_counter() - started)
            self._setup_problem = None
            _REQUESTS.add(provider, model, purpose, "answered")
            current.set("gen_ai.usage.input_tokens", answer.input_tokens)
            current.set("gen_ai.usage.output_tokens", answer.output_tokens)
        return answer.text

    def forget_answers(self, _namespace: str) -> None:
        """Drop the answers in memory, which may have words of erased events."""
        self._answers.clear()

    def status(self) -> dict[str, Any]:
        """Return the fields for health: the model, its state, the tokens of today and the pauses."""
        today = self._spend.today()
        pause = self._pause()
        is_spent = today["tokens"] >= self._settings.llm_tokens_per_day
        state = "ready" if pause is None else "paused"
        return {
            "model": self.name,
            "state": "budget spent" if is_spent else "not usable" if self._setup_problem else state,
            "tokens_today": int(today["tokens"]),
            "tokens_per_day": self._settings.llm_tokens_per_day,
            "requests_today": int(today["requests"]),
            "words_seen_today": int(today["words_seen"]),
            "words_sent_today": int(today["words_sent"]),
            "cost_usd_today": round(today["cost_usd"], 4),
            "tokens_per_second": self._speed.tokens_per_second(),
            "paused_until": None if pause is None else rfc3339(pause.until_us // 1_000_000 * 1_000_000),
            "pause_reason": self._setup_problem if pause is None else pause.reason,
            "paused_namespaces": self._breaker.paused_namespaces(),
        }

    def problem(self) -> str | None:
        """Return why the rules do the model's work, and what to do about it; None when the model is used."""
        if self._spend.tokens_today() >= self._settings.llm_tokens_per_day:
            return (
                f"the language model's {self._settings.llm_tokens_per_day} tokens of today are spent, and rules do its "
                "work until midnight UTC; raise RECOLLECT_LLM_TOKENS_PER_DAY if that is too early"
            )
        if self._setup_problem is not None:
            return f"the language model {self.name} cannot be used, and rules do its work: {self._setup_problem}"
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
        failure = failure_of(error)
        if failure == "slow":
            self._speed.timed_out()
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
        await self._call.close()


def _without_secrets(line: str) -> str:
    """Return a line without passwords, PINs, codes, keys, cards and accounts."""
    secrets = unsent_secrets(line)
    return redact(line, secrets, {secret.kind: "redacted" for secret in secrets}) if secrets else line


@cache
def _prompt(name: str) -> str:
    return files(__package__).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8")
