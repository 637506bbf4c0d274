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

from recollect import Client

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


class WebUi:
    """Calls the filter as Open WebUI 0.12.4 does: the messages have no ids, and the user's own is in the metadata."""

    def __init__(self, url: str, user: dict[str, Any]) -> None:
        self.filter: Any = runpy.run_path(str(FILTER))["Filter"]()
        self.filter.valves.url = url
        self.user = user

    async def asked(self, content: Any, *, chat: str = "c1", message_id: str = "", **metadata: Any) -> list[Any]:
        """Return the messages that the model gets for the user's message."""
        text = content if isinstance(content, str) else content[0]["text"]
        user_message = {"id": message_id, "role": "user", "content": text} if message_id else None
        return (
            await self.filter.inlet(
                {"messages": [{"role": "user", "content": content}]},
                __user__=self.user,
                __metadata__={"chat_id": chat, "user_message": user_message, **metadata},
            )
        )["messages"]

    async def answered(self, text: str, *, chat: str = "c1", message_id: str = "a1") -> None:
        body = {"messages": [{"id": message_id, "role": "assistant", "content": text}], "chat_id": chat}
        await self.filter.outlet(body, __user__=self.user, __metadata__={"chat_id": chat})


def recorded(server: Server, namespace: str) -> list[tuple[str | None, str, str | None]]:
    with Client(server.base) as client:
        episodes = client.list(namespace, "episodes")["items"]
    return [(episode["role"], episode["text"], episode["session_id"]) for episode in episodes]


async def test_the_filter_recalls_before_an_answer_and_records_both_sides(server: Server) -> None:
    web = WebUi(server.base, {"id": "ann-1"})
    assert len(await web.asked("My boat is called Nautilus.", message_id="m1")) == 1
    await web.answered("A fine name.")
    system, question = await web.asked("What is the name of the boat?", chat="c2", message_id="m2")
    assert system["role"] == "system"
    assert "My boat is called Nautilus." in system["content"]
    assert question["content"] == "What is the name of the boat?"
    assert recorded(server, "user-ann-1")[:2] == [
        ("user", "My boat is called Nautilus.", "c1"),
        ("assistant", "A fine name.", "c1"),
    ]
    other = WebUi(server.base, {"id": "bob-1"})
    assert len(await other.asked("What is the name of the boat?", message_id="m3")) == 1


async def test_the_filter_records_a_message_once_and_what_its_user_wrote(server: Server) -> None:
    web = WebUi(server.base, {"id": "ann-2"})
    await web.asked("I grow tomatoes.", message_id="m1")
    # The answer is generated again, with an instruction of the page as the last message.
    await web.filter.inlet(
        {"messages": [{"role": "user", "content": "Make it more concise"}]},
        __user__=web.user,
        __metadata__={"chat_id": "c1", "user_message": {"id": "m1", "content": "I grow tomatoes."}},
    )
    await web.answered("How")
    await web.answered("How nice.")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 3_000_000}}
    await web.asked([{"type": "text", "text": "My garden"}, picture], message_id="m2")
    assert [text for _, text, _ in recorded(server, "user-ann-2")] == [
        "I grow tomatoes.",
        "How",
        "How nice.",
        "My garden",
    ]


async def test_the_filter_remembers_chats_over_the_api_and_none_that_are_temporary_or_shared(server: Server) -> None:
    web = WebUi(server.base, {"id": "ann-3"})
    await web.asked("My bike is green.", chat="")
    for chat, metadata in (("temporary:s", {}), ("channel:x", {}), ("c1", {"internal": True})):
        assert len(await web.asked("What colour is my bike?", chat=chat, message_id="m1", **metadata)) == 1
    await web.answered("Green.", chat="temporary:s")
    assert recorded(server, "user-ann-3") == [("user", "My bike is green.", None)]


async def test_the_filter_lets_a_chat_go_on_without_the_memory() -> None:
    for url, user in (("http://127.0.0.1:1", {"id": "ann"}), ("http://[", {"id": "ann"}), ("http://127.0.0.1:1", {})):
        web = WebUi(url, user)
        assert await web.asked("hello", message_id="m1") == [{"role": "user", "content": "hello"}]
        assert await web.filter.inlet({"messages": []}, __user__=user) == {"messages": []}
