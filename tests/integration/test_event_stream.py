"""The event stream over HTTP: what it sends, where it resumes, how many may be open, and when it ends."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from support.events import message
from support.flaky_proxy import flaky_proxy
from support.waiting import eventually

from recollect import AsyncClient, Client, Recollect
from recollect.api.http.app import create_app
from recollect.api.http.bounded_protocol import bounded_protocol
from recollect.api.http.routes import event_stream
from recollect.api.http.uvicorn_config import uvicorn_config
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput, InvalidNamespace, ServerUnavailable

PATH = "/v1/namespaces/a/events"


class Serving:
    """A server in a thread of this process, whose limits can be patched."""

    def __init__(self, folder: Path) -> None:
        settings = load_settings(data=folder, embedding_model="none")
        self.memory = Recollect(settings=settings, workers=False)
        self.app: Any = create_app(self.memory)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.base = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn_config(self.app, settings.server, bounded_protocol(settings.server)))
        self.thread = threading.Thread(target=self.server.run, args=([self.listener],))
        self.thread.start()
        eventually(lambda: self.server.started)

    def say(self, *texts: str) -> None:
        for text in texts:
            self.memory.append("a", message(text, name="Ann"))

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(30)
        assert not self.thread.is_alive()
        self.listener.close()


@pytest.fixture
def serving(tmp_path: Path) -> Generator[Serving]:
    serving = Serving(tmp_path)
    yield serving
    serving.stop()


@contextmanager
def stream(serving: Serving, query: str = "", headers: dict[str, str] | None = None) -> Generator[Iterator[str]]:
    """Open a stream, and yield its lines."""
    with httpx.stream("GET", f"{serving.base}{PATH}?follow=true{query}", headers=headers, timeout=30) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield response.iter_lines()


def following(lines: Iterator[str]) -> tuple[str | None, dict[str, Any]]:
    """Return the id and the data of the next event."""
    id: str | None = None
    until = time.monotonic() + 30
    for line in lines:
        # Comments would go on for ever.
        assert time.monotonic() < until, "no event has come"
        if line.startswith("id: "):
            id = line.removeprefix("id: ")
        if line.startswith("data: "):
            return id, json.loads(line.removeprefix("data: "))
    raise EOFError


def test_the_log_comes_first_and_then_what_is_appended(serving: Serving) -> None:
    serving.say("one")
    with stream(serving) as lines:
        id, first = following(lines)
        serving.say("two")
        later, second = following(lines)
    assert (id, later) == ("1", "2")
    assert [first["payload"]["text"], second["payload"]["text"]] == ["one", "two"]
    [listed] = httpx.get(f"{serving.base}{PATH}", params={"limit": 1}).json()["items"]
    assert first == listed


def test_a_client_that_connects_again_goes_on_after_the_last_id(serving: Serving) -> None:
    serving.say("one", "two", "three")
    with stream(serving, headers={"Last-Event-ID": "2"}) as lines:
        assert following(lines)[1]["payload"]["text"] == "three"
    with stream(serving, "&after=1") as lines:
        assert following(lines)[1]["payload"]["text"] == "two"


def test_changes_have_an_id_when_their_event_is_complete(serving: Serving) -> None:
    for text in ("I live in Porto.", "I moved to Graz."):
        serving.say(text)
        serving.memory.settle("a")
    with stream(serving, "&knowledge=true") as lines:
        changes = [following(lines) for _ in range(2)]
    assert [(change["change"], change["old"], change["new"]) for _, change in changes] == [
        ("added", None, "Porto"),
        ("replaced", "Porto", "Graz"),
    ]
    assert all(id in (None, str(change["position"])) for id, change in changes)


@pytest.mark.parametrize(
    ("query", "header"),
    [("&limit=3", None), ("&as_of=1", None), ("&types=x.y", None), ("", "x"), ("", "7"), ("&after=7", None)],
)
def test_parameters_that_do_not_fit_are_refused(serving: Serving, query: str, header: str | None) -> None:
    headers = {} if header is None else {"Last-Event-ID": header}
    answer = httpx.get(f"{serving.base}{PATH}?follow=true{query}", headers=headers)
    assert answer.status_code == 422, answer.text
    assert httpx.get(f"{serving.base}{PATH}?knowledge=true").status_code == 422


def test_only_so_many_followers_are_connected_and_one_that_leaves_makes_room(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "FOLLOWERS_MAX", 1)
    serving.say("one")
    with stream(serving) as lines:
        following(lines)
        refused = httpx.get(f"{serving.base}{PATH}?follow=true")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
    eventually(lambda: not serving.app.state.followers)
    with stream(serving) as lines:
        assert following(lines)[0] == "1"


def test_a_stream_needs_the_right_of_the_list_and_ends_with_the_token(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.1)
    serving.say("one")
    tokens = serving.app.state.access.tokens
    _, reader = tokens.create(name="reader", scopes=["read"], patterns=["*"], days=None)
    listed, exporter = tokens.create(name="exporter", scopes=["export"], patterns=["a"], days=None)
    refused = httpx.get(f"{serving.base}{PATH}?follow=true", headers={"authorization": f"Bearer {reader}"})
    assert refused.status_code == 403
    with stream(serving, headers={"authorization": f"Bearer {exporter}"}) as lines:
        assert following(lines)[0] == "1"
        tokens.revoke(listed.id)
        with pytest.raises(EOFError):
            following(lines)


def test_a_silent_stream_has_comments_and_is_audited_when_it_begins(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.1)
    with stream(serving) as lines:
        assert [line for line, _ in zip((line for line in lines if line), range(2), strict=False)] == [":", ":"]
        folder = serving.memory.parts.settings.storage.data / "audit"
        [line] = [line for path in folder.glob("*.ndjson") for line in path.read_text().splitlines()]
    assert json.loads(line)["route"] == "GET /v1/namespaces/{namespace}/events"


def test_a_stop_of_the_server_ends_its_streams(tmp_path: Path) -> None:
    serving = Serving(tmp_path)
    serving.say("one")
    with stream(serving) as lines:
        following(lines)
        serving.server.should_exit = True
        # The end of the body arrives: the connection is not cut.
        assert [line for line in lines if line.startswith("data")] == []
    serving.stop()


def test_a_client_follows_over_a_connection_that_is_cut(serving: Serving) -> None:
    texts = [f"message {number}" for number in range(6)]
    serving.say(*texts[:4])
    with flaky_proxy(serving.base, [1_500, 1 << 30]) as proxy, Client(proxy.base) as client:
        items = client.follow("a", after=0)
        followed = [next(items) for _ in range(4)]
        serving.say(*texts[4:])
        followed += [next(items) for _ in range(2)]
        assert [item["payload"]["text"] for item in followed] == texts
        first, second = (request.partition(b" HTTP/1.1")[0] for request in proxy.requests)
    # The first connection ended within an item, and the second one began with it.
    assert b"after=0" in first
    assert b"after=0" not in second


async def test_an_asynchronous_client_follows_changes_over_a_connection_that_is_cut(serving: Serving) -> None:
    for text in ("I live in Porto.", "I moved to Graz."):
        serving.say(text)
        serving.memory.settle("a")
    with flaky_proxy(serving.base, [700, 1 << 30]) as proxy:
        async with AsyncClient(proxy.base) as client:
            items = client.follow("a", after=0, knowledge=True)
            changes = [await anext(items) for _ in range(2)]
            await items.aclose()
    assert [(change["change"], change["new"]) for change in changes] == [("added", "Porto"), ("replaced", "Graz")]
    assert len(proxy.requests) == 2


def test_a_client_follows_from_now_on_and_gets_refusals_as_errors(serving: Serving) -> None:
    serving.say("one")
    with Client(serving.base) as client:
        items = client.follow("a", types=["message.added"])
        serving.say("two")
        assert next(items)["payload"]["text"] == "two"
        with pytest.raises(InvalidInput, match="after: 7 is not a position"):
            next(client.follow("a", after=7))
        with pytest.raises(InvalidInput, match="no events of the type"):
            next(client.follow("a", after=0, types=["x.y"]))
        with pytest.raises(InvalidNamespace):
            client.follow("a b", after=0)
    assert list(items) == []


def test_a_client_whose_server_is_gone_stops_following(tmp_path: Path) -> None:
    serving = Serving(tmp_path)
    serving.say("one")
    with Client(serving.base, timeout_seconds=0.5) as client:
        items = client.follow("a", after=0)
        next(items)
        serving.stop()
        with pytest.raises(ServerUnavailable, match="cannot be reached"):
            next(items)
