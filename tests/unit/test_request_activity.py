"""Background threads pause while a process answers requests, for a bounded time."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from recollect import Recollect
from recollect.api.http.app import create_app
from recollect.api.settings import load_settings
from recollect.jobs.derivation import request_activity as module
from recollect.jobs.derivation.request_activity import PAUSE_SECONDS_MAX, RequestActivity


class Pausing:
    """A thread that works, and then pauses for a request_activity."""

    def __init__(self, request_activity: RequestActivity) -> None:
        self.ended = threading.Event()
        self.stop = threading.Event()
        self._request_activity = request_activity
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass
        self._request_activity.pause(self.stop)
        self.ended.set()

    def join(self) -> None:
        self._thread.join()


@pytest.fixture
def unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE_SECONDS_MAX", 60.0)
    monkeypatch.setattr(module, "_PAUSE_SHARE", 600.0)


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


def test_a_thread_does_not_pause_while_no_request_is_answered(unbounded: None) -> None:
    pausing = Pausing(RequestActivity())
    assert pausing.ended.wait(30)
    pausing.join()


def test_a_pause_ends_with_the_last_request(unbounded: None) -> None:
    request_activity = RequestActivity()
    request_activity.begin()
    request_activity.begin()
    pausing = Pausing(request_activity)
    request_activity.end()
    assert not pausing.ended.wait(0.2)
    request_activity.end()
    assert pausing.ended.wait(30)
    pausing.join()


def test_a_pause_goes_on_between_a_request_and_the_next_one(unbounded: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.5)
    request_activity = RequestActivity()
    request_activity.begin()
    pausing = Pausing(request_activity)
    request_activity.end()
    assert not pausing.ended.wait(0.2)
    assert pausing.ended.wait(30)
    pausing.join()


def test_a_pause_ends_when_the_process_stops(unbounded: None) -> None:
    request_activity = RequestActivity()
    request_activity.begin()
    pausing = Pausing(request_activity)
    pausing.stop.set()
    assert pausing.ended.wait(30)
    pausing.join()


def test_a_pause_ends_while_requests_go_on() -> None:
    request_activity = RequestActivity()
    request_activity.begin()
    pausing = Pausing(request_activity)
    # The limit is far under this time, which allows for a busy machine.
    assert PAUSE_SECONDS_MAX < 3
    assert pausing.ended.wait(30)
    pausing.join()


def test_threads_pause_one_after_the_other_and_together_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE_SHARE", 3.0)
    request_activity = RequestActivity()
    request_activity.begin()
    started = time.monotonic()
    # 0.1 seconds of work each, for which each pauses 0.3 alone.
    threads = [Pausing(request_activity) for _ in range(3)]
    assert all(thread.ended.wait(30) for thread in threads)
    assert time.monotonic() - started > 0.9
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("events", {"type": "message.added", "payload": {"role": "user", "text": "Ann has a cat."}}),
        ("messages", {"messages": [{"role": "user", "content": "Ann has a dog."}]}),
        ("retrieve", {"query": "Who has a cat?"}),
    ],
)
def test_a_request_counts_from_its_admission_to_its_answer(
    memory: Recollect, monkeypatch: pytest.MonkeyPatch, path: str, body: object
) -> None:
    monkeypatch.setattr(module, "_QUIET_SECONDS", 0.0)
    app = create_app(memory)
    request_activity: RequestActivity = app.state.request_activity
    assert request_activity is memory.parts.job_context.request_activity
    seen: list[bool] = []
    begin = request_activity.begin
    monkeypatch.setattr(request_activity, "begin", lambda: (begin(), seen.append(request_activity.is_busy)))
    client = TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1))
    assert client.post(f"/v1/namespaces/ann/{path}", json=body).is_success
    assert client.post(f"/v1/namespaces/ann/{path}", content=b"{").is_error
    assert seen == [True, True]
    assert not request_activity.is_busy


def test_a_refused_request_does_not_count(memory: Recollect) -> None:
    app = create_app(memory)
    client = TestClient(app, base_url="http://localhost", client=("192.0.2.1", 1))
    assert client.post("/v1/namespaces/ann/events", json={}).status_code == 401
    assert not app.state.request_activity.is_busy
