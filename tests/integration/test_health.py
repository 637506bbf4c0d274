"""Health, readiness, the backlog and request ids of a server, asked in process."""

from __future__ import annotations

import random
import re
import socket
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.access import Application, application
from support.embedders import HashingEmbedder
from support.events import message, message_draft
from support.waiting import eventually

from recollect.api.http.worker_endpoint import worker_endpoint
from recollect.api.operations import state_monitor
from recollect.api.operations.disk_usage import DatabaseBytes
from recollect.api.operations.health import health_report
from recollect.api.operations.metrics import prometheus_metrics
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.envelope import now_us
from recollect.events.errors import StorageError
from recollect.jobs.queue.backlog import BacklogMonitor, backlog_totals
from recollect.jobs.queue.run_store import HEARTBEAT_SHOWN_SECONDS_MAX, Heartbeat
from recollect.jobs.queue.sqlite_run_store import SqliteRunStore
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models import history
from recollect.projections.read_models.read_models import ReadModels

_MINUTE_US = 60_000_000


@pytest.fixture
def house(tmp_path: Path) -> Generator[Application]:
    with application(tmp_path) as house:
        yield house


def ready(house: Application) -> tuple[int, dict[str, Any]]:
    answer = house.http.get("/health/ready")
    return answer.status_code, answer.json()


def test_the_lag_is_what_was_appended_and_is_not_done_at_any_moment(tmp_path: Path, log: SqliteLog) -> None:
    models, runs = ReadModels(tmp_path, log, first_batch_events=3, batch_events=3), SqliteRunStore(tmp_path / "jobs.db")
    vectors = Vectors(tmp_path, models, HashingEmbedder())
    monitor = BacklogMonitor(log, models, lambda: vectors, runs)
    chance = random.Random(4)
    appended, embedded, read = dict.fromkeys("abc", 0), 0, dict.fromkeys("abc", 0)
    for step in range(60):
        namespace = chance.choice("abc")
        match chance.choice(("append", "append", "project", "embed", "read")):
            case "append":
                count = chance.randint(1, 9)
                log.append(namespace, [message_draft(f"apple {step} {number}") for number in range(count)])
                appended[namespace] += count
            case "project":
                # It ends after one batch, so that a part stays behind.
                models.catch_up(namespace, deadline=0.0)
            case "embed":
                embedded += vectors.embed_new(namespace)
            case _:
                version = models.progress(namespace).version
                monitor.note_read(namespace, version)
                read[namespace] = max(read[namespace], version)
        projected = sum(models.progress(name).version for name in appended)
        lag = backlog_totals(monitor.scan(100), now_us())
        assert lag["read_models"] == sum(appended.values()) - projected
        assert lag["embeddings"] == sum(appended.values()) - embedded
        assert lag["extraction"] == sum(appended.values()) - sum(read.values())
        assert (lag["ages_seconds"]["embeddings"] is None) == (lag["embeddings"] == 0)
    vectors.close()
    models.close()
    runs.close()


def test_messages_without_a_fact_are_no_backlog_once_the_extraction_has_looked_at_them(house: Application) -> None:
    house.memory.append("a", message("hello"))
    assert health_report(house.memory.parts)["lag"]["extraction"] == 1
    house.memory.settle("a")
    assert health_report(house.memory.parts)["lag"]["extraction"] == 0
    assert b"recollect_namespaces_behind 0.0" in prometheus_metrics(house.memory.parts)


def test_the_lag_is_listed_by_namespace_the_longest_wait_first(house: Application) -> None:
    for namespace, count in (("a", 1), ("b", 2), ("c", 1)):
        house.memory.append(namespace, [message(f"hello {number}") for number in range(count)])
    house.memory.settle("c")
    lag = house.http.get("/v1/health/lag").json()
    assert [(item["namespace"], item["extraction"]) for item in lag["items"]] == [("a", 1), ("b", 2)]
    assert lag["items"][0]["ages_seconds"]["extraction"] >= lag["items"][1]["ages_seconds"]["extraction"]
    assert (lag["totals"]["extraction"], lag["totals"]["namespaces_behind"]) == (3, 2)
    assert [item["namespace"] for item in house.http.get("/v1/health/lag?limit=1").json()["items"]] == ["a"]


def test_health_and_metrics_answer_while_the_log_hangs(house: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    assert house.http.get("/health").json()["status"] == "ok"
    hangs, goes_on = threading.Event(), threading.Event()
    heads = house.memory.parts.log.heads

    def hanging_heads(**options: Any) -> Any:
        hangs.set()
        goes_on.wait(60)
        return heads(**options)

    # A log that does not answer, such as one in PostgreSQL on a network that drops packets.
    monkeypatch.setattr(house.memory.parts.log, "heads", hanging_heads)
    monkeypatch.setattr(state_monitor, "SLOW_SECONDS", 0.0)
    house.http.get("/health")
    assert hangs.wait(60)
    health = house.http.get("/health").json()
    assert health["status"] == "degraded"
    assert "the log has not answered" in health["problems"][0]
    assert "recollect_projection_lag_events" in house.http.get("/metrics").text
    assert house.http.get("/health/live").status_code == 200
    status, answer = ready(house)
    assert (status, answer["checks"]["log"].startswith("no answer")) == (503, True)
    goes_on.set()


def test_a_server_that_compares_backlogs_for_long_is_ready(house: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ready(house)[0] == 200
    compares, goes_on = threading.Event(), threading.Event()
    scan = house.memory.parts.backlog.scan

    def long_scan(*arguments: Any) -> Any:
        compares.set()
        goes_on.wait(60)
        return scan(*arguments)

    # One that gets hardly any processor time, or that opens very many namespaces.
    monkeypatch.setattr(house.memory.parts.backlog, "scan", long_scan)
    monkeypatch.setattr(state_monitor, "SLOW_SECONDS", 0.0)
    house.http.get("/health")
    assert compares.wait(60)
    assert "the backlog has not answered" in house.http.get("/health").json()["problems"][0]
    assert ready(house)[0] == 200
    goes_on.set()


def test_a_server_is_ready_soon_after_a_log_that_kept_it_waiting_is_back(
    house: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads, is_away = house.memory.parts.log.heads, threading.Event()

    def unreachable_heads(**options: Any) -> Any:
        if not is_away.is_set():
            return heads(**options)
        time.sleep(1.0)
        raise StorageError("the server of the log has not answered")

    monkeypatch.setattr(house.memory.parts.log, "heads", unreachable_heads)
    is_away.set()
    house.http.get("/health")
    eventually(lambda: ready(house)[0] == 503)
    is_away.clear()
    # It checks again by itself; what a check waited for does not put off the next one, which would take 20 s.
    eventually(lambda: ready(house)[0] == 200, seconds_max=10.0)


def test_a_disk_that_is_nearly_full_is_a_problem_and_no_place_for_requests(tmp_path: Path) -> None:
    with application(tmp_path, disk_free_bytes_min=1 << 60) as house:
        health = house.http.get("/health").json()
        assert health["status"] == "degraded"
        assert "MiB left" in health["problems"][0]
        status, answer = ready(house)
        assert (status, answer["ready"]) == (503, False)
        assert answer["reasons"] == [f"disk: less than {1 << 60} bytes are free"]
        assert str(tmp_path) not in str(answer)


def test_the_bytes_of_files_are_counted_by_kind(house: Application) -> None:
    house.memory.append("a", message("hello"))
    house.memory.episodes("a")
    counted = DatabaseBytes(house.data)
    counted.advance(60.0)
    on_disk = sum(file.stat().st_size for file in house.data.rglob("*") if file.is_file())
    assert sum(counted.by_kind.values()) == on_disk
    assert min(counted.by_kind[kind] for kind in ("log", "jobs", "read_models")) > 0


def test_a_server_whose_last_append_failed_is_not_ready(house: Application) -> None:
    house.memory.append("a", message("hello"))
    assert ready(house)[0] == 200
    log = house.memory.parts.log
    assert isinstance(log, SqliteLog)
    log.append_failed_at = time.monotonic()
    status, answer = ready(house)
    assert (status, answer["checks"]["log"]) == (503, "the last append failed")
    assert any("the last append failed" in problem for problem in health_report(house.memory.parts)["problems"])
    house.memory.append("a", message("hello again"))
    assert ready(house)[0] == 200


def test_a_list_of_one_more_moment_than_are_built_at_a_time_is_refused_with_a_time_to_ask_again(
    house: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        house.memory.append("a", message(f"hello {number}"))
    blocked = threading.Event()
    build = history.build_read_model

    def slow(*arguments: Any, **options: Any) -> int:
        blocked.wait(60)
        return build(*arguments, **options)

    monkeypatch.setattr(history, "build_read_model", slow)
    asked = [house.memory.retrieve("a", RetrieveRequest(query="hello", as_of=version)) for version in range(1, 6)]
    assert [any("are being built" in note for note in result.degraded) for result in asked] == [False] * 4 + [True]
    refused = house.http.get("/v1/namespaces/a/facts", params={"as_of": "6"})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
    blocked.set()
    assert house.http.get("/v1/namespaces/a/facts", params={"as_of": "1"}).status_code == 200


def test_a_dead_worker_is_a_problem_for_ten_minutes_and_then_forgotten(house: Application) -> None:
    runs, present_us = house.memory.parts.run_store, now_us()
    runs.heartbeat(Heartbeat(id="dead", role="worker", host="h", pid=7, seen_at_us=present_us - _MINUTE_US))
    health = health_report(house.memory.parts)
    assert [(process["pid"], process["alive"]) for process in health["processes"]] == [(7, False)]
    assert "no worker is alive" in health["problems"][0]
    runs.heartbeat(Heartbeat(id="alive", role="worker", host="h", pid=8, seen_at_us=present_us))
    assert "a worker has died" in health_report(house.memory.parts)["problems"][0]
    gone_us = present_us - int(HEARTBEAT_SHOWN_SECONDS_MAX * 1_000_000) - 1
    runs.heartbeat(Heartbeat(id="dead", role="worker", host="h", pid=7, seen_at_us=gone_us))
    health = health_report(house.memory.parts)
    assert [process["pid"] for process in health["processes"]] == [8]
    assert health["problems"] == []


@pytest.mark.parametrize("given", ["abc-123", "01a2.b_3", "x" * 64])
def test_a_plain_request_id_is_repeated(house: Application, given: str) -> None:
    assert house.http.get("/health/live", headers={"X-Request-Id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize(
    "given", [b"", b"a b", b"x" * 65, b'"}{', b"\xff\xfe", b"a\tb", b"<script>", b"ann@example.org"]
)
def test_any_other_request_id_is_replaced(house: Application, given: bytes) -> None:
    answer = house.http.get("/v1/namespaces/a/facts", headers=[(b"x-request-id", given)])
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["x-request-id"])


def test_two_request_ids_are_replaced_by_one_also_in_errors(house: Application) -> None:
    answer = house.http.get("/nowhere", headers=[(b"x-request-id", b"a"), (b"x-request-id", b"b")])
    assert answer.status_code == 404
    assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["x-request-id"])


def test_a_worker_answers_metrics_and_health_at_its_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    with application(tmp_path, worker_port=port) as house, worker_endpoint(house.memory.parts) as address:
        assert address == f"http://127.0.0.1:{port}"
        assert httpx.get(f"{address}/health/live").json()["live"] is True
        assert httpx.get(f"{address}/health/ready").status_code == 200
        assert "recollect_projection_lag_events" in httpx.get(f"{address}/metrics").text
        assert httpx.get(f"{address}/v1/namespaces").status_code == 404
