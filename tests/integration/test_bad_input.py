"""Bad input through every way in: refused clearly, and nothing written."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import orjson
import pytest
from support.command_line import recollect
from support.events import Event, message
from support.server import Server, recollect_process, serving

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput, RecollectError

_FAR = (datetime.now(UTC) + timedelta(days=400)).isoformat()

#: What is wrong: the event, and the status over HTTP.
BAD_EVENTS: dict[str, tuple[Event, int]] = {
    "unknown type": (message("x") | {"type": "message.sent"}, 422),
    "no type": ({"payload": {}}, 422),
    "over a mebibyte": (message("x" * (1 << 20)), 413),
    "a date without a zone": (message("x", occurred_at="2026-01-01T00:00:00"), 422),
    "a clock in the far future": (message("x", occurred_at=_FAR), 422),
    "an unknown field": (message("x") | {"sesion_id": "s"}, 422),
    "a message without a body": ({"type": "message.added", "payload": {"role": "user"}}, 422),
}
BAD_BODIES: dict[str, tuple[bytes, int]] = {
    "invalid UTF-8": (b'{"type":"message.added","payload":{"role":"user","text":"\xff\xfe"}}', 422),
    "NaN": (b'{"type":"message.added","payload":{"role":"user","data":NaN}}', 422),
    "cut off": (b'{"type":"message.added","payl', 422),
    "no JSON": (b"hello", 422),
    "empty": (b"", 422),
    "over 1,000 events": (orjson.dumps({"events": [message("x")] * 1_001}), 413),
    "over 2 MiB": (orjson.dumps({"events": [message("x" * 900_000)] * 3}), 413),
}
BAD_NAMESPACES = ["", "..", ".", "a/b", "../../etc", "a b", "ä", "x" * 201]


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


@pytest.mark.parametrize("what", BAD_EVENTS)
def test_a_bad_event_is_refused_over_http_and_nothing_is_written(server: Server, what: str) -> None:
    event, status = BAD_EVENTS[what]
    for body in (event, {"events": [message("good"), event]}):
        answer = httpx.post(f"{server.base}/v1/namespaces/bad/events", json=body)
        assert answer.status_code == status, answer.text
        assert answer.json()["field"].startswith("event")
    assert httpx.get(f"{server.base}/v1/namespaces/bad/events").json()["items"] == []


@pytest.mark.parametrize("what", BAD_BODIES)
def test_a_bad_body_is_refused_over_http_and_nothing_is_written(server: Server, what: str) -> None:
    body, status = BAD_BODIES[what]
    answer = httpx.post(f"{server.base}/v1/namespaces/bad/events", content=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"]
    assert httpx.get(f"{server.base}/v1/namespaces/bad/events").json()["items"] == []


@pytest.mark.parametrize("namespace", ["%2e%2e", "a%20b", "%C3%A4", "x" * 201, "a%00b", "%2e"])
def test_a_bad_namespace_is_refused_over_http(server: Server, namespace: str) -> None:
    before = httpx.get(f"{server.base}/v1/namespaces").json()
    url = f"{server.base}/v1/namespaces/{namespace}"
    answers = [
        httpx.post(f"{url}/events", json=message("x")),
        httpx.post(f"{url}/retrieve", json={"query": "x"}),
        httpx.get(f"{url}/episodes"),
        httpx.get(f"{url}/events"),
    ]
    # A client may resolve dots in a path by itself, and asks for another route then.
    assert {answer.status_code for answer in answers} <= {422, 404, 405}
    assert httpx.get(f"{server.base}/v1/namespaces").json() == before


@pytest.mark.parametrize("what", BAD_EVENTS)
def test_a_bad_event_is_refused_in_python_and_nothing_is_written(memory: Recollect, what: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        memory.append("a", [message("good"), BAD_EVENTS[what][0]])
    assert refused.value.field.startswith("events.1")
    assert memory.namespaces()["items"] == []


@pytest.mark.parametrize("namespace", BAD_NAMESPACES)
def test_a_bad_namespace_is_refused_in_python(memory: Recollect, namespace: str) -> None:
    for call in (
        lambda: memory.append(namespace, message("x")),
        lambda: memory.retrieve(namespace, "x"),
        lambda: memory.episodes(namespace),
        lambda: memory.events(namespace),
        lambda: memory.replay(namespace),
        lambda: memory.verify(namespace),
    ):
        with pytest.raises(InvalidInput) as refused:
            call()
        assert refused.value.field == "namespace"
    assert memory.namespaces()["items"] == []


def test_a_bad_option_is_refused_in_python(memory: Recollect) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        memory.retrieve("a", "x", limit=0)
    with pytest.raises(InvalidInput, match="surprise"):
        memory.retrieve("a", "x", surprise=1)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("arguments", "stdin", "names"),
    [
        (("append", "a", '{"type":"message.sent","payload":{}}'), b"", "event.type"),
        (("append", "a/b", '{"type":"message.added","payload":{"role":"user","text":"x"}}'), b"", "namespace"),
        (("append", "", '{"type":"message.added","payload":{"role":"user","text":"x"}}'), b"", "namespace"),
        (("append", "a"), BAD_BODIES["invalid UTF-8"][0], "body"),
        (("append", "a"), BAD_BODIES["NaN"][0], "body"),
        (("append", "a"), BAD_BODIES["over 2 MiB"][0], "body"),
        (("append", "a"), BAD_BODIES["over 1,000 events"][0], "events"),
        (("append", "a"), orjson.dumps(BAD_EVENTS["a date without a zone"][0]), "event.occurred_at"),
        (("retrieve", "..", "x"), b"", "namespace"),
        (("export", "--namespace", ".."), b"", "namespace"),
        (("replay", "--namespace", ".."), b"", "namespace"),
        (("verify", "--namespace", ".."), b"", "namespace"),
        (("import", "jsonl", "/no/such/file"), b"", "/no/such/file"),
        (("import", "jsonl", "-"), b'{"type":"message.added","payload":{"role":"user","text":"x"}}\n', "namespace"),
        (("dance",), b"", "dance"),
    ],
)
def test_bad_input_on_the_command_line_is_exit_2_with_one_clear_line(
    tmp_path: Path, arguments: tuple[str, ...], stdin: bytes, names: str
) -> None:
    refused = recollect(*arguments, data=tmp_path, stdin=stdin)
    assert refused.returncode == 2, refused
    assert names in refused.stderr
    assert "Traceback" not in refused.stderr
    assert recollect("export", data=tmp_path).stdout == ""


@pytest.mark.parametrize(
    ("name", "value"), [("RECOLLECT_PORT", "x"), ("RECOLLECT_RETRIEVAL_BUDGET_MS", "0"), ("RECOLLECT_LOG", "mysql://x")]
)
def test_a_bad_setting_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    refused = recollect("export", data=tmp_path)
    assert refused.returncode == 2
    assert (name if "LOG" not in name else "sqlite:///") in refused.stderr


def test_a_foreign_file_in_place_of_the_log_is_exit_2_and_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "log.db").write_bytes(b"a diary " * 1_000)
    refusals = [recollect("export", data=tmp_path), recollect("retrieve", "a", "x", data=tmp_path)]
    for refused in (*refusals, recollect_process("serve", "--port", "0", data=tmp_path)):
        assert refused.returncode == 2
        assert "move it away" in refused.stderr
    assert (tmp_path / "log.db").read_bytes().startswith(b"a diary")


def test_a_file_in_place_of_the_data_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(RecollectError, match="file"):
        Recollect(tmp_path / "file", workers=False)


def test_a_full_disk_answers_507_says_what_to_do_and_keeps_what_was_acknowledged(small_disk: Path) -> None:
    acknowledged: list[str] = []
    answer = httpx.Response(500)
    # A server on a disk this small is not ready, since less is free than it wants.
    environment = {"RECOLLECT_DISK_FREE_BYTES_MIN": "0"}
    with serving(small_disk, environment=environment) as server, httpx.Client(base_url=server.base, timeout=30) as http:
        for number in range(500):
            answer = http.post("/v1/namespaces/a/events", json=message("x" * 5_000, id=f"e{number}"))
            if answer.status_code != 201:
                break
            acknowledged.append(f"e{number}")
        assert answer.status_code == 507, answer.text
        assert "free some space" in answer.json()["detail"]
        assert acknowledged
        stored = [item["id"] for item in http.get("/v1/namespaces/a/events", params={"limit": 1000}).json()["items"]]
        assert stored == acknowledged

        subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
        assert http.post("/v1/namespaces/a/events", json=message("more")).status_code == 201
    assert recollect("verify", data=small_disk).returncode == 0


def test_a_read_only_disk_is_exit_2_with_what_to_check(small_disk: Path) -> None:
    event = '{"type":"message.added","payload":{"role":"user","text":"x"}}'
    assert recollect("append", "a", event, data=small_disk).returncode == 0
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for arguments in (("append", "a", event), ("serve", "--port", "0"), ("export",)):
        refused = recollect(*arguments, data=small_disk)
        assert refused.returncode == 2, refused
        assert "Traceback" not in refused.stderr
        assert str(small_disk) in refused.stderr
        assert "check" in refused.stderr
