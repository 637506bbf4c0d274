"""Webhooks: get each event signed and in order, are tried again and parked, and reach no private network."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.command_line import recollect as command
from support.events import message
from support.waiting import eventually

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import ForeignFile, InvalidInput
from recollect.jobs.following import consumers, webhook_delivery
from recollect.jobs.following.consumers import pause_seconds
from recollect.jobs.following.webhook_delivery import DeliveryFailed, WebhookSender
from recollect.jobs.following.webhook_store import Webhook, WebhookStore, check_url, is_public


class Receiver:
    """A program on this machine that gets webhooks."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                status = receiver.answers.pop(0) if receiver.answers else 204
                self.send_response(status)
                if status == 302:
                    self.send_header("location", "/elsewhere")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://localhost:{self.server.server_address[1]}/hook?a=1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def texts(self) -> list[str]:
        return [json.loads(body)["payload"]["text"] for _, body in self.got]


@pytest.fixture
def receiver() -> Generator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(consumers, "_PAUSE_SECONDS_MAX", 0.02)


def memory_of(folder: Path, *, workers: bool = True) -> Recollect:
    return Recollect(settings=load_settings(data=folder, embedding_model="none", sweep_seconds=0.3), workers=workers)


def add(data: Path, url: str, *options: str) -> tuple[str, str]:
    """Add a webhook named `crm` of the namespace a; return what the command prints, the name and the secret."""
    done = command("webhook", "add", "a", url, "--name", "crm", *options, data=data)
    assert done.returncode == 0, done.stderr
    name, secret = done.stdout.split()
    return name, secret


def test_a_webhook_gets_the_events_in_order_with_a_signature(tmp_path: Path, receiver: Receiver) -> None:
    with memory_of(tmp_path, workers=False) as memory:
        memory.append("a", message("before"))
    name, secret = add(tmp_path, receiver.url, "--types", "message.added", "--allow-private")
    assert (name, secret[:6]) == ("crm", "whsec_")
    with memory_of(tmp_path) as memory:
        memory.append("a", [message("one"), message("two")])
        memory.append("b", message("of another namespace"))
        eventually(lambda: len(receiver.got) == 2)
    assert receiver.texts() == ["one", "two"]
    headers, body = receiver.got[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(base64.b64decode(secret[6:]), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    assert headers["host"] == receiver.url.split("/")[2]
    assert receiver.got[0][0]["webhook-id"] != receiver.got[1][0]["webhook-id"]
    path = tmp_path / "webhooks.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret not in command("webhook", "list", data=tmp_path).stdout


def test_changes_of_knowledge_are_sent_too(tmp_path: Path, receiver: Receiver) -> None:
    add(tmp_path, receiver.url, "--knowledge", "--allow-private")
    with memory_of(tmp_path) as memory:
        memory.append("a", message("I live in Porto.", name="Ann"))
        eventually(lambda: len(receiver.got) == 1)
    assert json.loads(receiver.got[0][1])["new"] == "Porto"


def test_an_event_is_sent_again_until_it_is_taken_and_those_before_it_are_not(
    tmp_path: Path, receiver: Receiver
) -> None:
    add(tmp_path, receiver.url, "--allow-private")
    receiver.answers = [204, 500, 302, 204]
    with memory_of(tmp_path) as memory:
        memory.append("a", [message("one"), message("two"), message("three")])
        eventually(lambda: len(receiver.got) == 5)
    assert receiver.texts() == ["one", "two", "two", "two", "three"]
    ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert len(set(ids)) == 3


def test_one_that_fails_too_often_is_parked_with_its_cause_and_goes_on_when_it_is_retried(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_delivery, "ATTEMPTS_MAX", 3)
    add(tmp_path, receiver.url, "--allow-private")
    receiver.answers = [503] * 3
    with memory_of(tmp_path) as memory:
        memory.append("a", message("one"))
        eventually(lambda: bool(memory.parts.run_store.dead_letters()))
        listed = command("webhook", "list", data=tmp_path).stdout
        assert "at 0 of 1, parked: " in listed
        assert "the answer is 503" in listed
        memory.append("a", message("two"))
        assert command("webhook", "retry", "crm", data=tmp_path).returncode == 0
        eventually(lambda: receiver.texts()[3:] == ["one", "two"])
        assert memory.parts.run_store.dead_letters() == []
    assert "crm: a -> http://localhost" in command("webhook", "list", data=tmp_path).stdout
    assert command("webhook", "remove", "crm", data=tmp_path).returncode == 0
    assert command("webhook", "list", data=tmp_path).stdout == ""
    for action in ("remove", "retry"):
        assert command("webhook", action, "crm", data=tmp_path).returncode == 2


def test_a_webhook_reaches_no_private_network_also_by_a_name(tmp_path: Path, receiver: Receiver) -> None:
    store = WebhookStore(tmp_path)
    options: dict[str, Any] = {"name": None, "types": (), "knowledge": False, "allows_private": False}
    for url in (receiver.url, receiver.url.replace("localhost", "127.0.0.1"), "http://169.254.169.254/latest"):
        webhook = store.add("a", url, **options)
        with pytest.raises(DeliveryFailed, match="private network"):
            WebhookSender().send(webhook, "m", {"version": 1})
    assert receiver.got == []


@pytest.mark.parametrize(
    "address",
    "127.0.0.1 10.1.2.3 192.168.0.1 172.16.0.1 169.254.169.254 0.0.0.0 100.64.0.1 224.0.0.1 ::1 fe80::1%eth0 fc00::1 "
    "::ffff:10.0.0.1 64:ff9b::a00:1 2002:a00:1:: ff02::1".split(),
)
def test_addresses_of_private_networks_are_recognised(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_are_recognised(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url", ["ftp://x.org", "file:///etc/passwd", "https://", "http://a:b@x.org", "http://x.org/\n", "x", "http://x:0/"]
)
def test_addresses_that_are_not_of_http_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        check_url(url)


def test_pauses_double_and_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "_PAUSE_SECONDS", 1.0)
    monkeypatch.setattr(consumers, "_PAUSE_SECONDS_MAX", 600.0)
    for failures in range(1, 40):
        whole = min(600.0, 2.0 ** (failures - 1))
        assert whole / 2 <= pause_seconds(failures) <= whole


def test_names_are_taken_once_and_a_damaged_file_is_refused(tmp_path: Path) -> None:
    add(tmp_path, "https://example.org/hook")
    assert command("webhook", "add", "a", "https://example.org", "--name", "crm", data=tmp_path).returncode == 2
    [webhook] = WebhookStore(tmp_path).webhooks().values()
    assert isinstance(webhook, Webhook)
    (tmp_path / "webhooks.json").write_text('{"webhooks": [{"name": 1}]}')
    with pytest.raises(ForeignFile):
        WebhookStore(tmp_path).webhooks()
