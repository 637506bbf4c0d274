"""Messages and single memories over HTTP and by commands, with a real server."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import pytest
from support.command_line import recollect
from support.server import Server

_CHAT = [
    {"role": "user", "name": "Ann", "content": "I live in Porto. My dog is called Rex.", "id": "m1"},
    {"role": "assistant", "content": "Noted.", "id": "m2"},
]


@pytest.fixture
def http(server: Server) -> Generator[httpx.Client]:
    with httpx.Client(base_url=server.base, timeout=30) as client:
        yield client


@pytest.fixture
def home(request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    return f"/v1/namespaces/{re.sub(r'[^a-z0-9]+', '.', request.node.name)[-150:]}"


def assert_problem(answer: httpx.Response, status: int, field: str) -> str:
    assert (answer.status_code, answer.json()["field"]) == (status, field), answer.text
    return answer.json()["detail"]


def learned(http: httpx.Client, home: str) -> dict[str, str]:
    """Add the chat and return the ids of the facts by predicate, quoted for a path."""
    body = {"messages": _CHAT, "session_id": "s1", "metadata": {"channel": "email", "n": 2}}
    assert http.post(f"{home}/messages", json=body).status_code == 201
    http.post(f"{home}/settle")
    facts = http.get(f"{home}/facts").json()["items"]
    return {fact["predicate"]: quote(fact["id"], safe="") for fact in facts}


def test_a_chat_is_added_once_and_its_memories_come_with_it(http: httpx.Client, home: str) -> None:
    first = http.post(f"{home}/messages", json={"messages": _CHAT, "session_id": "s1"})
    assert (first.status_code, first.json()["version"]) == (201, 2)
    again = http.post(f"{home}/messages", json={"messages": _CHAT, "session_id": "s1"})
    assert (again.status_code, [one["duplicate"] for one in again.json()["events"]]) == (200, [True, True])
    question = {"messages": "Where do I live, in Porto?", "session_id": "s2"}
    answer = http.post(f"{home}/messages?retrieve=true&budget_tokens=500", json=question).json()
    assert "Porto" in answer["retrieval"]["context"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "king", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": "x", "foo": 1}]}, "messages.0.foo"),
        ({"message": "x"}, "messages"),
        ({"messages": "x", "session": "s"}, "session"),
        ({"messages": "x", "metadata": {"a": "y" * 9_000}}, "metadata"),
    ],
)
def test_wrong_messages_are_refused_by_name(http: httpx.Client, home: str, body: dict[str, Any], field: str) -> None:
    assert_problem(http.post(f"{home}/messages", json=body), 422, field)
    assert http.get(f"{home}/events").json()["items"] == []


def test_a_memory_is_read_corrected_pinned_ended_and_forgotten(http: httpx.Client, home: str) -> None:
    ids = learned(http, home)
    lives, pet = (f"{home}/memories/{ids[predicate]}" for predicate in ("lives in", "has pet"))
    assert http.get(lives).json()["object"] == "Porto"
    assert http.post(f"{lives}/pin", json={"reason": "home"}).json()["pinned"]
    assert not http.post(f"{lives}/unpin").json()["pinned"]
    corrected = http.patch(lives, json={"text": "Braga"}).json()
    assert (corrected["object"], corrected["status"]) == ("Braga", "active")
    assert http.get(lives).json()["superseded_by"] == corrected["id"]
    ended = http.post(f"{pet}/end", json={"ended_at": "2026-01-01T00:00:00Z"}).json()
    assert (ended["status"], ended["valid_until"]) == ("ended", "2026-01-01T00:00:00Z")
    forgotten = http.delete(f"{home}/memories/m1", params={"reason": "asked"})
    assert (forgotten.status_code, forgotten.json()["kind"]) == (200, "episode")
    assert [item["id"] for item in http.get(f"{home}/episodes").json()["items"]] == ["m2"]
    assert [item["object"] for item in http.get(f"{home}/facts").json()["items"]] == ["Braga"]
    assert http.post(f"{home}/retrieve", json={"query": "Rex dog", "gate": False}).json()["items"] == []


def test_unknown_ids_and_wrong_changes_are_refused(http: httpx.Client, home: str) -> None:
    learned(http, home)
    memory = f"{home}/memories/nobody"
    before = len(http.get(f"{home}/events").json()["items"])
    for answer in (
        http.get(memory),
        http.patch(memory, json={"text": "x"}),
        http.delete(memory),
        *(http.post(f"{memory}/{change}") for change in ("pin", "unpin", "end")),
    ):
        assert "'nobody'" in assert_problem(answer, 404, "id")
    assert_problem(http.patch(f"{home}/memories/m1", json={}), 422, "text")
    assert_problem(http.patch(f"{home}/memories/m1", json={"text": ""}), 422, "text")
    assert "text, metadata" in assert_problem(http.patch(f"{home}/memories/m1", json={"role": "x"}), 422, "role")
    assert_problem(http.patch(f"{home}/memories/m1", json={"namespace": "x"}), 422, "namespace")
    assert_problem(http.post(f"{home}/memories/m1/end"), 422, "id")
    assert_problem(http.post(f"{home}/memories/m1/pin", json={"why": "x"}), 422, "why")
    assert len(http.get(f"{home}/events").json()["items"]) == before


def test_lists_are_filtered_and_an_unknown_parameter_is_refused_with_those_there_are(
    http: httpx.Client, home: str
) -> None:
    learned(http, home)

    def ids(path: str) -> list[str]:
        return [item["id"] for item in http.get(f"{home}/{path}").json()["items"]]

    assert ids("episodes?speaker=Ann") == ["m1"]
    assert ids("episodes?metadata.channel=email&metadata.n=2&role=assistant") == ["m2"]
    assert ids("episodes?metadata.channel=chat") == []
    assert ids("episodes?since=2020-01-01T00:00:00%2B01:00&speaker=Ann&speaker=Bob") == ["m1"]
    assert len(ids("facts?subject=ann&status=active&metadata.channel=email")) == 2
    assert "subject" in assert_problem(http.get(f"{home}/facts?stauts=active"), 422, "stauts")
    assert_problem(http.get(f"{home}/facts?metadata=x"), 422, "metadata")
    assert_problem(http.get(f"{home}/facts?status=actve"), 422, "status")
    assert "entity, depth" in assert_problem(http.get(f"{home}/graph?entity=Ann&dept=1"), 422, "dept")
    assert_problem(http.get(f"{home}/events?status=active"), 422, "status")
    assert_problem(http.get("/v1/namespaces?x=1"), 422, "x")
    assert_problem(http.post(f"{home}/retrieve?wat=1", json={"query": "x"}), 422, "wat")
    event = {"type": "message.added", "payload": {"role": "user", "text": "x"}}
    assert_problem(http.post(f"{home}/events?limit=1", json=event), 422, "limit")
    assert_problem(http.post(f"{home}/messages?limit=1", json={"messages": "x"}), 422, "limit")


def test_a_retrieval_is_filtered_by_metadata(http: httpx.Client, home: str) -> None:
    learned(http, home)
    query = {"query": "Where does Ann live?", "gate": False}
    for metadata, found in (({"channel": "email", "n": 2}, True), ({"channel": ["chat"]}, False)):
        items = http.post(f"{home}/retrieve", json=query | {"metadata": metadata}).json()["items"]
        assert bool(items) is found
    wrong: dict[str, Any] = {"metadata": {"a": {}}}
    assert http.post(f"{home}/retrieve", json=query | wrong).status_code == 422
    turn = {"messages": "And where does Ann live?", "session_id": "s9"}
    passive = http.post(f"{home}/messages?retrieve=true&metadata.channel=chat", json=turn).json()
    assert passive["retrieval"]["items"] == []


def test_a_merge_of_names_is_shown_and_undone(http: httpx.Client, home: str, tmp_path: Path) -> None:
    described = {"type": "entity.described", "payload": {"name": "Wendy", "aliases": ["Dee", "Ann's mom"]}}
    http.post(f"{home}/events", json=described)
    wendy = http.get(f"{home}/memories/Wendy").json()
    assert [(item["name"], item["reason"]) for item in wendy["merged"]] == [("Dee", "alias"), ("Ann's mom", "alias")]
    separated = http.post(f"{home}/memories/Wendy/separate", json={"alias": "Dee", "reason": "a friend"})
    assert separated.json()["aliases"] == ["Ann's mom"]
    assert_problem(http.post(f"{home}/memories/Wendy/separate", json={"alias": "Dee"}), 422, "alias")
    recollect("append", "a", orjson.dumps(described).decode(), data=tmp_path)
    done = recollect("separate", "a", "Wendy", "Dee", data=tmp_path)
    assert orjson.loads(done.stdout)["aliases"] == ["Ann's mom"], done.stderr


def test_the_commands_do_the_same(tmp_path: Path) -> None:
    def run(*arguments: str) -> Any:
        done = recollect(*arguments, data=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    added = run("add", "a", orjson.dumps(_CHAT).decode(), "--session", "s1", "--metadata", "channel=email")
    assert added == "1\tm1\n2\tm2\n"
    assert run("add", "a", "I moved to Braga").startswith("3\t")
    run("settle", "a")
    lines = run("list", "a", "episodes", "--filter", "metadata.channel=email", "--filter", "speaker=Ann").splitlines()
    assert [orjson.loads(line)["id"] for line in lines] == ["m1"]
    fact = orjson.loads(run("list", "a", "facts", "--filter", "predicate=lives in", "--limit", "1"))
    assert orjson.loads(run("get", "a", fact["id"]))["object"] == "Porto"
    assert orjson.loads(run("pin", "a", fact["id"], "--reason", "home"))["pinned"]
    assert not orjson.loads(run("unpin", "a", fact["id"]))["pinned"]
    corrected = orjson.loads(run("update", "a", fact["id"], "Faro"))
    assert corrected["object"] == "Faro"
    assert orjson.loads(run("end", "a", corrected["id"]))["status"] == "ended"
    assert orjson.loads(run("update", "a", "m2", "--set", 'metadata={"mood": "calm"}'))["metadata"] == {"mood": "calm"}
    assert run("forget", "a", "m1") == "episode m1 is forgotten at version 11\n"
    for arguments in (("get", "a", "m1"), ("list", "a", "facts", "--filter", "x=1"), ("list", "a", "memories")):
        assert recollect(*arguments, data=tmp_path).returncode == 2
