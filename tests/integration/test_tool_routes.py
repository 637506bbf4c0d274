"""The tools as plain HTTP, as Open WebUI reads and calls them; and its filter for automatic memory."""

from __future__ import annotations

import re
import runpy
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.access import Application, application
from support.events import message
from support.server import Server

FILTER = Path(__file__).parents[2] / "docs" / "examples" / "open_webui_filter.py"
#: Names of tools that every provider of language models accepts.
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Application]:
    """Two users; from the first token on every request needs one."""
    with application(tmp_path_factory.mktemp("tools")) as house:
        house.memory.append("user-ann", message("my canary is called Tweety", name="Ann"))
        house.memory.append("user-bob", message("my canary is falcon-4471", name="Bob"))
        house.token("read")
        yield house


def operations(description: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for methods in description["paths"].values() for operation in methods.values()]


def test_a_host_makes_a_tool_with_arguments_of_each_operation(house: Application) -> None:
    described = house.http.get("/tools/openapi.json", headers=house.token("read", namespace="user-ann")).json()
    assert [operation["operationId"] for operation in operations(described)][:2] == ["recall", "remember"]
    assert described["servers"] == [{"url": "/tools"}]
    for operation in operations(described):
        assert operation["description"].startswith("Use this when")
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert schema["type"] == "object"
        assert schema["properties"]
        assert "$ref" not in str(operation)
        assert "namespace" not in schema["properties"]


def test_operations_of_the_whole_api_have_short_names_of_their_own(house: Application) -> None:
    described = operations(house.app.openapi())
    names = [operation["operationId"] for operation in described]
    assert [name for name in names if not TOOL_NAME.fullmatch(name)] == []
    assert len(set(names)) == len(names)
    assert all(
        operation["summary"] and operation["description"] for operation in described if "description" in operation
    )
    assert {"retrieve", "append", "add_messages", "list_facts", "read_memory"} <= set(names)


def test_a_tool_is_called_for_the_namespace_of_the_token(house: Application) -> None:
    token = house.token("read", "write", namespace="user-ann")
    recalled = house.http.post("/tools/recall", json={"query": "what is the canary called?"}, headers=token)
    assert recalled.status_code == 200
    assert [item["text"] for item in recalled.json()["episodes"]] == ["my canary is called Tweety"]
    remembered = house.http.post("/tools/remember", json={"text": "Ann's dog is called Rex."}, headers=token)
    assert remembered.json()["status"] == "accepted"
    wrong = house.http.post("/tools/recall", json={"question": "x"}, headers=token)
    assert (wrong.status_code, wrong.json()["detail"]) == (422, "query: is missing; also wrong: question")


def test_the_header_names_the_user_within_the_reach_of_the_token(house: Application) -> None:
    token = house.token("read", namespace="user-*")

    def recall(namespace: str) -> Any:
        headers = token | {"X-Recollect-Namespace": namespace}
        return house.http.post("/tools/recall", json={"query": "what is the canary?"}, headers=headers)

    assert "falcon" in recall("user-bob").text
    assert "falcon" not in recall("user-ann").text
    for foreign in ("rival.bob", "*", ""):
        assert recall(foreign).status_code == 404
    assert recall("user-").status_code == 200
    assert recall("user-a b").status_code == 422
    assert house.http.post("/tools/recall", json={"query": "x"}, headers=token).status_code == 422


def test_each_tool_needs_its_scopes_and_a_token(house: Application) -> None:
    reader = house.token("read", namespace="user-ann")
    assert house.http.post("/tools/remember", json={"text": "x"}, headers=reader).status_code == 403
    assert house.http.post("/tools/forget", json={"query": "x"}, headers=reader).status_code == 403
    assert house.http.post("/tools/timeline", json={}, headers=reader).status_code == 200
    for path in ("/tools/recall", "/tools/openapi.json"):
        method = "GET" if path.endswith("json") else "POST"
        assert house.http.request(method, path).status_code == 401


async def test_the_filter_recalls_before_an_answer_and_records_both_sides(server: Server) -> None:
    memory: Any = runpy.run_path(str(FILTER))["Filter"]()
    memory.valves.url = server.base
    user, chat = {"id": "ann-1"}, {"chat_id": "c1"}
    first = {"messages": [{"role": "user", "content": "My boat is called Nautilus.", "id": "m1"}]}
    assert (await memory.inlet(first, __user__=user, __metadata__=chat))["messages"][-1]["role"] == "user"
    answered = {"messages": [*first["messages"], {"role": "assistant", "content": "A fine name.", "id": "m2"}]}
    await memory.outlet(answered, __user__=user, __metadata__=chat)
    asked = {"messages": [{"role": "user", "content": "What is the name of the boat?", "id": "m3"}]}
    system, question = (await memory.inlet(asked, __user__=user, __metadata__={"chat_id": "c2"}))["messages"]
    assert system["role"] == "system"
    assert "My boat is called Nautilus." in system["content"]
    assert question["content"] == "What is the name of the boat?"


async def test_the_filter_lets_a_chat_go_on_without_the_memory() -> None:
    memory: Any = runpy.run_path(str(FILTER))["Filter"]()
    memory.valves.url = "http://127.0.0.1:1"
    body = {"messages": [{"role": "user", "content": "hello"}]}
    assert await memory.inlet(body, __user__={"id": "ann"}) == {"messages": [{"role": "user", "content": "hello"}]}
    assert await memory.inlet({"messages": []}, __user__={"id": "ann"}) == {"messages": []}
