"""A client whose server is away, slow, restarted, another program, or behind a proxy that loses answers."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path
from uuid import uuid4

import pytest
from support.command_line import recollect
from support.events import message
from support.flaky_proxy import Fate, answer, flaky_proxy
from support.server import Server, begin, serving

from recollect import AsyncClient, Client
from recollect.api.client import exchange
from recollect.api.http_contract import error_of, problem_fields
from recollect.events.errors import (
    AppendUnknown,
    ContractMismatch,
    InvalidInput,
    NotFound,
    RecollectError,
    ScopeMissing,
    ServerUnavailable,
    StorageError,
    TooManyRequests,
    Unauthenticated,
)

GATEWAY = answer("502 Bad Gateway", b"<html>nginx</html>", "content-type: text/html")
SLOWER = answer("429 Too Many Requests", b"{}", "retry-after: 0")
#: An address of this machine at which nothing listens.
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "PAUSE_SECONDS", 0.001)


@pytest.fixture
def ns() -> str:
    return f"failures-{uuid4()}"


def messages(client: Client, ns: str) -> list[str]:
    """Return the ids of the messages; workers append events of their own."""
    return [event["id"] for event in client.events(ns)["items"] if event["type"] == "message.added"]


def test_an_append_whose_answer_is_lost_is_recorded_once(server: Server, ns: str) -> None:
    fates: list[Fate] = ["lose", GATEWAY, "lose", "pass"]
    with flaky_proxy(server.base, fates) as proxy, Client(proxy.base) as client:
        recorded = client.append(ns, [message("I love tea"), message("I love coffee")], expected_version=0)
        # It is the caller's first append of them, although the server had recorded them before the last attempt.
        assert [(one.version, one.duplicate) for one in recorded] == [(1, False), (2, False)]
        assert len(proxy.requests) == 4
        assert len({request.partition(b"\r\n\r\n")[2] for request in proxy.requests}) == 1
        proxy.fates += ["lose"]
        recorded += client.add(ns, "I love milk")
        proxy.fates += ["lose"]
        turn, result = client.append_and_retrieve(ns, message("what do I love?"))
        assert result is not None
        assert messages(client, ns) == [one.id for one in (*recorded, *turn)]
        # An id of the caller that was recorded before stays a duplicate.
        again = {**message("I love milk"), "id": "milk"}
        assert [client.append(ns, again)[0].duplicate for _ in range(2)] == [False, True]


async def test_the_asynchronous_client_records_it_once_too(server: Server, ns: str) -> None:
    with flaky_proxy(server.base, ["lose", GATEWAY]) as proxy:
        async with AsyncClient(proxy.base) as client:
            assert [one.version for one in await client.add(ns, "I love tea")] == [1]
        assert len(proxy.requests) == 3
    with Client(server.base) as client:
        assert len(messages(client, ns)) == 1


def test_an_append_without_any_answer_names_the_ids_to_send_again(server: Server, ns: str) -> None:
    with flaky_proxy(server.base, ["lose"] * 10_000) as proxy, Client(proxy.base, timeout_seconds=0.2) as client:
        with pytest.raises(AppendUnknown, match="send them again with the same ids") as unknown:
            client.append(ns, message("I love tea"))
        ids = unknown.value.event_ids
    with Client(server.base) as client:
        assert messages(client, ns) == list(ids)
    with Client(NOWHERE, timeout_seconds=0.05) as client, pytest.raises(ServerUnavailable, match="cannot be reached"):
        # Nothing was sent, so nothing can be recorded.
        client.append(ns, message("I love tea"))


def test_a_change_whose_answer_is_lost_is_not_sent_again(server: Server, ns: str) -> None:
    with flaky_proxy(server.base) as proxy, Client(proxy.base) as client:
        client.append(ns, message("I love tea", id="m1"))
        proxy.fates += ["lose"]
        with pytest.raises(ServerUnavailable, match="may have been done all the same"):
            client.pin(ns, "m1")
        assert client.get(ns, "m1").get("pinned")
        assert [event["type"] for event in client.events(ns)["items"]].count("memory.pinned") == 1
        # Refused by the rate, it was not done.
        proxy.fates += [SLOWER, SLOWER]
        assert not client.unpin(ns, "m1")["pinned"]


def test_a_rate_is_waited_for_when_there_is_time(server: Server, ns: str) -> None:
    later = answer("429 Too Many Requests", b"{}", "retry-after: 30")
    with flaky_proxy(server.base, [SLOWER, later]) as proxy, Client(proxy.base) as client:
        with pytest.raises(TooManyRequests) as refused:
            client.append(ns, message("I love tea"))
        assert refused.value.retry_seconds == 30
        assert client.append(ns, message("I love tea"))[0].version == 1
        assert len(proxy.requests) == 3


@pytest.mark.parametrize(
    ("fate", "words"),
    [
        (answer("502 Bad Gateway", b"<html></html>", "content-type: text/html", "retry-after: 60"), "502 Bad Gateway"),
        (answer("200 OK", b"<html>sign in</html>", "content-type: text/html"), "not as Recollect does"),
        (answer("302 Found", b"", "location: https://sign.in/"), "302 Found.*to https://sign.in/"),
        (answer("404 Not Found", b'{"detail": "Not Found"}'), "older than this client"),
        (answer("200 OK", b'{"things": []}'), "has not the fields.*upgrade"),
        (answer("200 OK", b'{"items": [], "next": null}', "recollect-contract: 2"), "upgrade the client"),
        (answer("200 OK", b'{"items": [], "next": null}', "recollect-contract: 0"), "upgrade the server"),
    ],
)
def test_an_answer_that_is_not_recollects_is_told_plainly(ns: str, fate: Fate, words: str) -> None:
    with flaky_proxy(NOWHERE, [fate] * 2) as proxy, Client(proxy.base) as client:
        with pytest.raises((ContractMismatch, ServerUnavailable), match=words):
            client.facts(ns)
        result = client.retrieve(ns, "what do I love?")
        assert (result.items, result.context) == ((), "")
        assert result.degraded[0].startswith("server: ")


def test_a_server_that_speaks_no_http_is_not_reached(ns: str) -> None:
    with (
        flaky_proxy(NOWHERE, [b"SSH-2.0-OpenSSH_9.2\r\n"] * 10_000) as proxy,
        Client(proxy.base, timeout_seconds=0.1) as client,
        pytest.raises(ServerUnavailable),
    ):
        client.facts(ns)


def test_a_retrieval_fails_open_within_its_time(server: Server, ns: str, caplog: pytest.LogCaptureFixture) -> None:
    with flaky_proxy(server.base, ["hang"]) as proxy, Client(proxy.base, timeout_seconds=0.3) as client:
        started = time.monotonic()
        result = client.retrieve(ns, "what do I love?")
        assert time.monotonic() - started < 5
        assert result.as_json() | {"latency_ms": 0} == result.as_json() | {"latency_ms": 0, "items": [], "context": ""}
        # Bots show it to people, so it names no address.
        assert [note.startswith("server: A remote server cannot be reached") for note in result.degraded] == [True]
        assert "did not answer POST retrieve within 0.3 seconds" in caplog.text
        assert "what do I love" not in caplog.text
        assert client.append_and_retrieve(ns, message("I love tea"), no_store=True)[0] == []
    with Client(NOWHERE, timeout_seconds=0.05, fails_open=False) as client, pytest.raises(ServerUnavailable):
        client.retrieve(ns, "what do I love?")
    with Client(NOWHERE, timeout_seconds=0.05) as client:
        with pytest.raises(InvalidInput, match="limit"):
            client.retrieve(ns, "what do I love?", limit=0)
        assert client.append_and_retrieve(ns, message("x"), no_store=True)[1] is not None
        with pytest.raises(ServerUnavailable):
            client.append_and_retrieve(ns, message("x"))


async def test_an_asynchronous_retrieval_fails_open_while_others_go_on(server: Server, ns: str) -> None:
    with flaky_proxy(server.base, ["hang"]) as proxy:
        async with AsyncClient(proxy.base, timeout_seconds=0.5) as slow, AsyncClient(server.base) as client:
            hanging = asyncio.create_task(slow.retrieve(ns, "tea"))
            recorded = await asyncio.gather(*(client.add(ns, f"cup {at}") for at in range(5)))
            assert len({one[0].version for one in recorded}) == 5
            assert (await hanging).degraded[0].startswith("server: ")


def test_a_server_with_tokens_that_is_killed_and_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "httpx2")
    caplog.set_level(logging.DEBUG, "recollect")
    token, reader = (
        recollect("token", "create", "--name", "bot", "--namespace", "team-*", *scopes, data=tmp_path).stdout.split()[
            -1
        ]
        for scopes in (("--scope", "write", "--scope", "export"), ("--scope", "read"))
    )
    with serving(tmp_path) as first, Client(first.base, token, timeout_seconds=60) as client:
        with Client(first.base, reader) as other:
            assert other.episodes("team-blue")["items"] == []
            with pytest.raises(NotFound, match="no such namespace for this token"):
                other.episodes("other")
            with pytest.raises(ScopeMissing, match="scope write") as missing:
                other.add("team-blue", "I love tea")
        for wrong in (None, "rcl_" + "x" * 43):
            with Client(first.base, wrong) as stranger, pytest.raises(Unauthenticated):
                # An error of the caller, which a retrieval raises too.
                stranger.retrieve("team-blue", "tea")
        before = client.add("team-blue", "I love tea")
        first.kill()
        second = begin("serve", "--port", first.base.rpartition(":")[2], data=tmp_path)
        try:
            # Sent while the server starts: the client waits for it.
            after = client.add("team-blue", "I love coffee")
            assert messages(client, "team-blue") == [before[0].id, after[0].id]
        finally:
            second.kill()
            second.wait()
        shown = f"{client!r} {vars(client)} {missing.value!r} {caplog.text}"
        assert [secret for secret in (token, reader) if secret in shown] == []


def test_a_wrong_address_or_token_is_refused_at_once_and_the_token_is_not_repeated() -> None:
    for url in ("memory.example.org", "ftp://x", "http://", "http://x:port", "http://x/?token=1", "http://me:secret@x"):
        with pytest.raises(InvalidInput, match="url: ") as refused:
            Client(url)
        assert "secret" not in str(refused.value)
    for token in ("rcl_x\r\nHost: other", "", "ключ"):
        with pytest.raises(InvalidInput, match="token: ") as refused:
            Client("http://127.0.0.1:1", token)
        assert "rcl_x" not in str(refused.value)
    assert Client("https://memory.example.org/recollect/").url == "https://memory.example.org/recollect"


def test_every_error_of_the_tree_comes_back_as_itself() -> None:
    def classes(kind: type[RecollectError]) -> list[type[RecollectError]]:
        return [kind, *(found for child in kind.__subclasses__() for found in classes(child))]

    made = InvalidInput("give a text", field="events.0.text")
    assert vars(error_of({"detail": str(made), **problem_fields(made)}) or made) == vars(made)
    for kind in classes(RecollectError):
        back = error_of({"error": kind.__name__, "detail": "the words"})
        assert type(back) is kind
        assert str(back) == "the words"
    assert "path" not in problem_fields(StorageError("/secret/log.db"))
    for foreign in ("Path", "first_problem", "nothing", None):
        assert error_of({"error": foreign, "detail": ""}) is None
