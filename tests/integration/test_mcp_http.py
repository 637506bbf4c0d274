"""MCP over HTTP and over standard streams: tokens, namespaces, other hosts, and clients at the same time."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from support.access import Application, application
from support.command_line import recollect
from support.events import message
from support.mcp_client import Mode, data_of, http_client_of, text_of
from support.server import Server

from recollect.api.access.audit_log import read_audit
from recollect.api.mcp import mcp_server

CLIENTS = 8
LIST_TOOLS: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Generator[Application]:
    """Two tenants; from the first token on every request needs one."""
    with application(tmp_path_factory.mktemp("mcp-http")) as house:
        house.memory.append("acme.ann", message("my canary is called Tweety", name="Ann"))
        house.memory.append("rival.bob", message("my canary is falcon-4471", name="Bob"))
        house.token("read")
        yield house


def post(house: Application, path: str, headers: dict[str, str], **options: Any) -> Any:
    return house.http.post(path, json=LIST_TOOLS, headers=ACCEPT | headers, follow_redirects=False, **options)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/acme.ann", "/mcp/acme.ann/"])
async def test_a_token_of_one_namespace_reaches_it_by_each_url(house: Application, path: str, mode: Mode) -> None:
    token = house.token("read", namespace="acme.ann")
    async with http_client_of(house.app, path, token, mode) as client:
        recalled = text_of(await client.call_tool("recall", {"query": "what is the canary called?"}))
    assert "Tweety" in recalled
    assert "falcon" not in recalled


async def test_eight_clients_at_once_never_get_the_memories_of_another(house: Application) -> None:
    async def live(number: int) -> None:
        own, mode = f"crowd.{number}", "auto" if number % 2 else "legacy"
        token = house.token("read", "write", namespace=own)
        async with http_client_of(house.app, "/mcp", token, mode) as client:
            for turn in range(3):
                text = f"The locker of client {number} in turn {turn} is locker-{number}-{turn}."
                data_of(await client.call_tool("remember", {"text": text}))
                recalled = data_of(await client.call_tool("recall", {"query": "which locker has which client?"}))
                texts = [item["text"] for item in recalled["episodes"]]
                assert texts
                assert all(f"locker-{number}-" in text for text in texts)
                timeline = data_of(await client.call_tool("timeline", {}))["episodes"]
                assert len(timeline) == turn + 1

    await asyncio.gather(*(live(number) for number in range(CLIENTS)))


def test_without_a_token_it_is_401_with_the_scheme(house: Application) -> None:
    for path in ("/mcp", "/mcp/acme.ann"):
        refused = post(house, path, {})
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert post(house, path, {"Authorization": "Bearer rcl_wrong"}).status_code == 401


def test_a_foreign_namespace_is_404_whether_it_exists_or_not(house: Application) -> None:
    token = house.token("read", namespace="acme.*")
    for path in ("/mcp/rival.bob", "/mcp/rival.bob/", "/mcp/rival.none"):
        refused = post(house, path, token)
        assert refused.status_code == 404
        assert "no such namespace for this token" in refused.text


async def test_a_header_of_the_hosts_configuration_names_the_namespace(house: Application) -> None:
    token = house.token("read", namespace="acme.*")
    assert post(house, "/mcp", token | {"X-Recollect-Namespace": "rival.bob"}).status_code == 404
    async with http_client_of(house.app, "/mcp", token | {"X-Recollect-Namespace": "acme.ann"}) as client:
        assert "Tweety" in text_of(await client.call_tool("recall", {"query": "what is the canary called?"}))


def test_a_token_of_several_namespaces_has_to_name_one_in_the_url(house: Application) -> None:
    for namespace in ("acme.*", ("acme.ann", "acme.zoe"), "*"):
        refused = post(house, "/mcp", house.token("read", namespace=namespace))
        assert refused.status_code == 422
        assert "/mcp/ann" in refused.text
    assert post(house, "/mcp/acme.ann", house.token("read", namespace="acme.*")).status_code == 200


def test_another_host_and_a_page_of_another_site_are_refused(house: Application) -> None:
    token = house.token("read", namespace="acme.ann")
    assert post(house, "/mcp", token | {"Host": "evil.example"}).status_code == 421
    assert post(house, "/mcp", token | {"Origin": "https://evil.example"}).status_code == 403
    assert post(house, "/mcp", token | {"Origin": "http://127.0.0.1:8787"}).status_code == 200


async def test_a_client_shows_what_to_install_when_the_server_has_no_sdk(
    house: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None: ...

    monkeypatch.setattr(mcp_server, "find_spec", missing)
    with pytest.RaisesGroup(
        pytest.RaisesExc(MCPError, match=r"pip install 'recollect\[mcp\]'"), flatten_subgroups=True
    ):
        async with http_client_of(house.app, "/mcp", house.token("read", namespace="acme.ann")) as client:
            await client.list_tools()


def test_only_posts_are_answered_and_none_is_redirected(house: Application) -> None:
    token = house.token("read", namespace="acme.ann")
    for path in ("/mcp", "/mcp/", "/mcp/acme.ann", "/mcp/acme.ann/"):
        assert post(house, path, token).status_code == 200
        for method in ("GET", "DELETE"):
            refused = house.http.request(method, path, headers=ACCEPT | token, follow_redirects=False)
            assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


async def test_a_token_without_the_scope_is_refused_by_the_tool(house: Application) -> None:
    assert post(house, "/mcp", house.token("write", namespace="acme.ann")).status_code == 403
    async with http_client_of(house.app, "/mcp", house.token("read", namespace="acme.ann")) as client:
        refused = await client.call_tool("forget", {"query": "canary"})
    assert refused.is_error
    assert "no scope write" in text_of(refused)


async def test_each_call_is_a_line_of_the_audit_log_without_its_text(house: Application) -> None:
    token = house.token("read", namespace="acme.ann")
    async with http_client_of(house.app, "/mcp", token) as client:
        await client.call_tool("recall", {"query": "the secret of the canary"})
        await client.call_tool("remember", {"text": "a secret"})
    lines = list(read_audit(house.data / "audit", namespace="acme.ann"))[:2]
    assert [(line["route"], line["status"], line["count"]) for line in lines] == [
        ("MCP remember", 403, None),
        ("MCP recall", 200, 1),
    ]
    assert "secret" not in str(lines)


async def test_a_real_server_answers_without_a_token_on_its_own_machine(server: Server) -> None:
    async with (
        httpx2.AsyncClient(timeout=30) as http,
        Client(streamable_http_client(f"{server.base}/mcp/mcp-real", http_client=http)) as client,
    ):
        data_of(await client.call_tool("remember", {"text": "The sofa is red."}))
        assert "sofa is red" in text_of(await client.call_tool("recall", {"query": "which colour has the sofa?"}))
        assert (await client.list_tools()).tools[0].name == "recall"


async def test_the_command_serves_a_client_over_its_streams_and_logs_to_the_other(tmp_path: Path) -> None:
    command = ["-c", "from recollect.api.cli.main import run; run()", "--data", str(tmp_path), "mcp"]
    environment = os.environ | {"RECOLLECT_NAMESPACE": "ann", "RECOLLECT_EMBEDDING_MODEL": "none"}
    async with Client(StdioServerParameters(command=sys.executable, args=command, env=environment)) as client:
        data_of(await client.call_tool("remember", {"text": "Ann's dog is called Rex."}))
        assert "Rex" in text_of(await client.call_tool("recall", {"query": "what is the dog called?"}))
    listed = recollect("list", "ann", "episodes", data=tmp_path)
    assert "Rex" in listed.stdout


def test_the_command_needs_a_namespace(tmp_path: Path) -> None:
    refused = recollect("mcp", data=tmp_path)
    assert refused.returncode == 2
    assert "--namespace" in refused.stderr
    assert "namespace" in recollect("mcp", "--namespace", "a b", data=tmp_path).stderr
