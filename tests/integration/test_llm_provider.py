"""The server of a language model: its pauses and its budget, for all namespaces, as an operator sees them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.events import message
from support.openai_server import DRIPPING, SILENT, TOKENS, OpenAiServer, Raw, openai_server, sensible
from support.waiting import eventually

from recollect import Recollect
from recollect.api.operations.health import health_report
from recollect.api.operations.metrics import prometheus_metrics
from recollect.api.settings import load_settings
from recollect.events.envelope import microseconds
from recollect.jobs.extraction.extraction_job import extract
from recollect.jobs.llm.breaker import Breaker
from recollect.jobs.llm.limited_client import BYTES_MAX
from recollect.jobs.llm.speed import Speed
from recollect.jobs.llm.spend import Spend
from recollect.jobs.llm_reading.reading_job import read_by_llm

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
_LATER_US = microseconds(_START + timedelta(days=1))
_BOAT = "I am restoring a wooden boat these days"
_SENSIBLE = sensible({"boat": ["Ann is restoring a wooden boat. | I am restoring a wooden boat | habit"]})


@pytest.fixture
def server() -> Generator[OpenAiServer]:
    with openai_server() as server:
        yield server


@pytest.fixture
def open_memory(tmp_path: Path, server: OpenAiServer) -> Generator[Callable[..., Recollect]]:
    opened: list[Recollect] = []

    def open_memory(**settings: Any) -> Recollect:
        limits: dict[str, Any] = {"llm": "tiny", "llm_base_url": server.url, "llm_timeout_seconds": 30} | settings
        memory = Recollect(
            settings=load_settings(data=tmp_path, embedding_model="none", **limits),
            workers=False,
        )
        opened.append(memory)
        return memory

    yield open_memory
    for memory in opened:
        memory.close()


def tell_and_extract(memory: Recollect, text: str, *, namespace: str = "a") -> None:
    memory.append(namespace, [message(text, name="Ann", session_id="s1", occurred_at=_START)])
    extract(memory.parts.job_context, namespace, _LATER_US)
    read_by_llm(memory.parts.job_context, namespace, _LATER_US)


def objects(memory: Recollect, namespace: str = "a") -> list[str]:
    return [fact["object"] for fact in memory.facts(namespace)["items"]]


def gauges(memory: Recollect) -> dict[str, float]:
    lines = prometheus_metrics(memory.parts).decode().splitlines()
    return {
        name: float(value)
        for name, value in (line.split() for line in lines if line.startswith("recollect_llm") and "{" not in line)
    }


@pytest.mark.parametrize("answer", [SILENT, DRIPPING, Raw(200, b"{}", wait_seconds=30)])
def test_a_slow_server_costs_one_time_out_and_not_one_a_namespace(
    answer: Raw, server: OpenAiServer, open_memory: Callable[..., Recollect], caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviour = lambda _: answer
    memory = open_memory(llm_timeout_seconds=1)
    started = time.monotonic()
    for number in range(6):
        tell_and_extract(memory, "I live in Porto.", namespace=f"n{number}")
    # Six time-outs of a second each, or three of one request, would be longer.
    assert time.monotonic() - started < 5
    assert len(server.requests) == 1
    assert [objects(memory, f"n{number}") for number in range(6)] == [["Porto"]] * 6
    assert [record.message for record in caplog.records if "language model" in record.message] == [
        next(record.message for record in caplog.records if "is paused for 300 s" in record.message)
    ]


def test_a_pause_is_seen_in_health_and_metrics_until_the_server_answers(
    server: OpenAiServer, open_memory: Callable[..., Recollect], caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviour = lambda _: Raw(500, b"{}")
    memory = open_memory(llm_failures_max=2, llm_pause_seconds=1)
    assert health_report(memory.parts)["status"] == "ok"
    tell_and_extract(memory, "I live in Porto.")
    tell_and_extract(memory, "I live in Faro.", namespace="b")
    report = health_report(memory.parts)
    assert report["status"] == "degraded"
    assert report["llm"]["state"] == "paused"
    assert report["llm"]["paused_until"]
    assert "500" in report["llm"]["pause_reason"]
    assert [problem for problem in report["problems"] if "the language model is paused" in problem]
    assert gauges(memory)["recollect_llm_paused"] == 1
    time.sleep(1.1)
    server.behaviour = _SENSIBLE
    # The rules read this message, while a small question asks whether the server answers.
    tell_and_extract(memory, "I live in Braga.")
    eventually(lambda: health_report(memory.parts)["llm"]["state"] == "ready")
    tell_and_extract(memory, _BOAT)
    assert "a wooden boat" in objects(memory)
    assert health_report(memory.parts)["status"] == "ok"
    assert gauges(memory)["recollect_llm_paused"] == 0
    lines = [record.message for record in caplog.records if "language model" in record.message]
    assert len(lines) == 2
    assert lines[1].endswith("answers again.")


def test_after_a_pause_no_job_waits_for_a_server_that_still_hangs(
    server: OpenAiServer, open_memory: Callable[..., Recollect]
) -> None:
    server.behaviour = lambda _: SILENT
    memory = open_memory(llm_timeout_seconds=0.3, llm_pause_seconds=0.1)
    tell_and_extract(memory, "I live in Porto.")
    asked = len(server.requests)
    # From here on a request would take as long as the test.
    memory.parts.job_context.llm._settings = memory.parts.settings.llm.model_copy(  # pyright: ignore
        update={"llm_timeout_seconds": 60.0}
    )
    time.sleep(0.15)
    tell_and_extract(memory, "I live in Faro.", namespace="b")
    tell_and_extract(memory, "I live in Braga.", namespace="c")
    eventually(lambda: len(server.requests) == asked + 1)
    assert objects(memory, "c") == ["Braga"]


def test_a_pause_holds_for_other_processes_and_after_a_restart(
    server: OpenAiServer, open_memory: Callable[..., Recollect]
) -> None:
    server.behaviour = lambda _: SILENT
    worker = open_memory(llm_timeout_seconds=0.3)
    tell_and_extract(worker, "I live in Porto.")
    worker.close()
    restarted = open_memory(llm_timeout_seconds=0.3)
    tell_and_extract(restarted, "I live in Faro.", namespace="b")
    assert len(server.requests) == 1
    assert health_report(restarted.parts)["llm"]["state"] == "paused"
    assert gauges(restarted)["recollect_llm_paused"] == 1


def test_a_spent_budget_is_seen_and_a_restart_continues_to_count(
    server: OpenAiServer, open_memory: Callable[..., Recollect], caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviour = _SENSIBLE
    memory = open_memory(llm_tokens_per_day=TOKENS)
    tell_and_extract(memory, _BOAT)
    memory.close()
    memory = open_memory(llm_tokens_per_day=TOKENS)
    for number in range(3):
        tell_and_extract(memory, f"I live in Porto, and this is number {number}", namespace=f"n{number}")
    assert len(server.requests) == 1
    report = health_report(memory.parts)
    assert report["llm"]["state"] == "budget spent"
    assert report["llm"]["tokens_today"] == TOKENS
    assert [problem for problem in report["problems"] if "RECOLLECT_LLM_TOKENS_PER_DAY" in problem]
    assert gauges(memory) == {
        "recollect_llm_tokens_today": TOKENS,
        "recollect_llm_budget_spent": 1,
        "recollect_llm_paused": 0,
    }
    assert len([record for record in caplog.records if "are spent" in record.message]) == 1


def test_a_request_without_an_answer_uses_tokens_as_well(
    server: OpenAiServer, open_memory: Callable[..., Recollect]
) -> None:
    server.behaviour = lambda _: SILENT
    memory = open_memory(llm_timeout_seconds=0.3)
    tell_and_extract(memory, _BOAT)
    assert health_report(memory.parts)["llm"]["tokens_today"] > 100


def test_a_namespace_without_a_usable_answer_does_not_stop_the_others(
    server: OpenAiServer, open_memory: Callable[..., Recollect]
) -> None:
    server.behaviour = lambda request: "No." if "poison" in str(request) else _SENSIBLE(request)
    memory = open_memory(llm_failures_max=2)
    for number in range(4):
        tell_and_extract(memory, f"I live in Porto with poison {number}", namespace="mallory")
    assert len(server.requests) == 1
    assert health_report(memory.parts)["llm"]["paused_namespaces"] == 1
    tell_and_extract(memory, _BOAT)
    assert objects(memory) == ["a wooden boat"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b" " * (BYTES_MAX + 1) + b"{}", id="white space"),
        pytest.param(b'{"a": "' + b"x" * BYTES_MAX + b'"}', id="a long string"),
    ],
)
def test_an_answer_without_end_is_refused(
    answer: bytes, server: OpenAiServer, open_memory: Callable[..., Recollect]
) -> None:
    server.behaviour = lambda _: Raw(200, answer)
    memory = open_memory()
    tell_and_extract(memory, "I live in Porto.")
    assert objects(memory) == ["Porto"]


def test_an_unknown_model_and_a_missing_extra_are_seen_at_the_start(
    server: OpenAiServer, open_memory: Callable[..., Recollect]
) -> None:
    memory = open_memory(llm="bedrock-of-nowhere:x", llm_base_url=None)
    client = memory.parts.job_context.llm
    assert client is not None
    client.start_check()
    eventually(lambda: client.status()["state"] == "not usable")
    assert "bedrock-of-nowhere" in str(client.problem())


def test_the_first_refused_key_pauses_all_requests(server: OpenAiServer, open_memory: Callable[..., Recollect]) -> None:
    server.behaviour = lambda _: Raw(401, b'{"error": {"message": "no such key"}}')
    memory = open_memory()
    tell_and_extract(memory, _BOAT)
    tell_and_extract(memory, _BOAT, namespace="b")
    assert len(server.requests) == 1
    assert health_report(memory.parts)["llm"]["state"] == "paused"


def test_words_and_tokens_of_the_day_are_counted(server: OpenAiServer, open_memory: Callable[..., Recollect]) -> None:
    server.behaviour = _SENSIBLE
    memory = open_memory(llm="qwen2.5:7b")
    tell_and_extract(memory, _BOAT)
    status = health_report(memory.parts)["llm"]
    assert (status["requests_today"], status["words_seen_today"], status["tokens_today"]) == (1, 8, TOKENS)
    assert status["words_sent_today"] > 8
    assert 'model="qwen2.5:7b"' in prometheus_metrics(memory.parts).decode()


def test_the_time_out_follows_the_speed_of_the_server() -> None:
    speed = Speed(120)
    assert speed.seconds(1_000, 300) == 120
    speed.answered(1_000, 200, 5)
    assert 10 <= speed.seconds(1_000, 300) < 30
    for _ in range(20):
        speed.answered(1_000, 200, 100)
    assert speed.seconds(1_000, 300) > 200
    speed.timed_out()
    assert speed.seconds(1_000, 300) == 280


_CHECK_AND_ASK = """
import asyncio, threading, time
from recollect.jobs.job_settings import LlmSettings
from recollect.jobs.llm.model_call import ModelCall, failure_of
call = ModelCall("tiny", LlmSettings(llm="tiny", llm_base_url="http://127.0.0.1:9/v1"), lambda _: None)
check = threading.Thread(target=lambda: print(asyncio.run(call.setup_problem())))
check.start()
time.sleep(0.05)
try:
    asyncio.run(call.ask("Answer.", "Hello", 2))
except Exception as error:
    print(failure_of(error))
check.join()
"""


def test_the_check_at_the_start_and_a_first_request_import_one_after_the_other() -> None:
    done = subprocess.run([sys.executable, "-c", _CHECK_AND_ASK], capture_output=True, text=True, check=False)
    assert (sorted(done.stdout.split()), done.stderr) == (["None", "unavailable"], "")


def test_an_answer_without_end_is_cut_before_it_is_late() -> None:
    speed = Speed(120)
    assert speed.answer_tokens(900, 120) is None
    # 20 output tokens a second, as many as 60 input tokens.
    speed.answered(600, 200, 20)
    assert speed.answer_tokens(900, 75) == 900
    assert speed.answer_tokens(900, 5) == 256


def test_a_breaker_pauses_after_failures_and_tries_again_after_a_pause() -> None:
    now = [0.0]
    breaker = Breaker(2, 10, clock=lambda: now[0])
    assert not breaker.failed("a", "unavailable")
    assert breaker.allows("a")
    assert breaker.failed("b", "unavailable")
    assert not breaker.allows("c")
    now[0] = 11
    assert breaker.allows("a")
    assert not breaker.allows("b")
    assert breaker.succeeded("a")
    assert breaker.allows("b")


def test_a_breaker_pauses_again_when_the_first_request_after_a_pause_fails() -> None:
    now = [0.0]
    breaker = Breaker(5, 10, clock=lambda: now[0])
    assert breaker.failed("a", "slow")
    now[0] = 11
    assert breaker.allows("a")
    assert not breaker.failed("a", "unavailable")
    now[0] = 20
    assert breaker.seconds_left() == 1
    assert not breaker.allows("a")


def test_unusable_answers_pause_their_namespace_first() -> None:
    now = [0.0]
    breaker = Breaker(2, 10, clock=lambda: now[0])
    assert not breaker.failed("a", "unusable")
    assert not breaker.allows("a")
    assert breaker.allows("b")
    assert breaker.failed("b", "unusable")
    assert not breaker.allows("c")
    now[0] = 11
    assert breaker.paused_namespaces() == 0
    assert breaker.allows("a")


def test_the_spend_is_kept_by_day(tmp_path: Path) -> None:
    Spend(tmp_path / "spend.json").add({"tokens": 5})
    Spend(tmp_path / "spend.json").add({"tokens": 7, "words_sent": 3})
    assert Spend(tmp_path / "spend.json").tokens_today() == 12
    (tmp_path / "spend.json").write_bytes(b'{"2026')
    assert Spend(tmp_path / "spend.json").tokens_today() == 0


_ADDING = """
import sys
from pathlib import Path
from recollect.jobs.llm.spend import Spend

spend = Spend(Path(sys.argv[1]))
for _ in range(500):
    spend.add({"tokens": 3})
"""


def test_processes_that_count_at_once_lose_no_token(tmp_path: Path) -> None:
    path = tmp_path / "llm-spend.json"
    adding = [subprocess.Popen([sys.executable, "-c", _ADDING, str(path)]) for _ in range(2)]
    assert [process.wait(120) for process in adding] == [0, 0]
    # By day, as the processes may run into the next one.
    assert sum(day["tokens"] for day in orjson.loads(path.read_bytes()).values()) == 2 * 500 * 3
