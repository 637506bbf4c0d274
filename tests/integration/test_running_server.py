"""Commands beside a running server: they ask it, and do its work themselves when it does not answer."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.command_line import recollect
from support.events import message
from support.server import Server, serving

from recollect import Recollect
from recollect.api.cli.mcp_commands import command_session
from recollect.api.folder_locks import server_address, serving_lock
from recollect.api.mcp.tool_catalogue import call_tool
from recollect.api.settings import load_settings
from recollect.events.errors import FolderInUse

_FACT = "I live in Porto."


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, tiny_model: str) -> Generator[tuple[Path, Server]]:
    """A data folder and its server, which has a model; the commands of the tests have none."""
    data = tmp_path_factory.mktemp("served")
    with serving(data, model=tiny_model) as server:
        body = orjson.dumps({"events": [message(_FACT, name="Ann"), message("the sofa is red", name="Ann")]})
        assert recollect("append", "ann", data=data, stdin=body).returncode == 0
        yield data, server


def test_the_server_answers_a_retrieval_with_the_model_that_it_has_loaded(served: tuple[Path, Server]) -> None:
    data, _ = served
    asked = recollect("retrieve", "ann", "where is Porto?", "--json", data=data)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert orjson.loads(asked.stdout)["degraded"] == []
    here = recollect("retrieve", "ann", "where is Porto?", "--no-server", "--json", data=data)
    assert "turned off" in orjson.loads(here.stdout)["degraded"][0]


def test_a_trace_and_a_past_version_come_from_the_server_too(served: tuple[Path, Server]) -> None:
    data, _ = served
    trace = orjson.loads(recollect("retrieve", "ann", "the red sofa", "--explain", data=data).stdout)
    assert trace["query"] == "the red sofa"
    past = recollect("retrieve", "ann", "the red sofa", "--as-of", "1", "--json", data=data)
    assert orjson.loads(past.stdout)["version"] == 1


def test_what_the_server_refuses_is_refused_with_its_words(served: tuple[Path, Server]) -> None:
    data, _ = served
    for arguments, words in (
        (("ann", "sofa", "--as-of", "99999"), "as_of: "),
        (("ann", "sofa", "--format", "xml"), "format: "),
        (("no one", "sofa"), "namespace"),
        (("nobody", "sofa"), "'nobody' has no events"),
    ):
        refused = recollect("retrieve", *arguments, data=data)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert words in refused.stderr


def test_settle_returns_when_facts_are_extracted(served: tuple[Path, Server]) -> None:
    data, _ = served
    settled = recollect("settle", "ann", data=data)
    assert settled.returncode == 0
    assert settled.stdout.startswith("ann: settled at version ")
    unsettled = recollect("settle", "ann", "--timeout-seconds", "0", data=data)
    assert (unsettled.returncode, unsettled.stdout) == (1, "")
    assert "ann: not settled at version " in unsettled.stderr
    facts = recollect("sql", "SELECT type FROM events WHERE type = 'facts.extracted'", "--format", "csv", data=data)
    assert facts.stdout.count("facts.extracted") >= 1


def test_the_tools_of_a_command_ask_the_server_and_work_without_it(tmp_path: Path) -> None:
    said = "We adopted a black cat called Biscuit from the shelter in Faro last week."
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        tools = command_session(lambda: memory, tmp_path, "cat")

        def call(tool: str, **arguments: str) -> dict[str, Any]:
            answer = call_tool(tools, tool, arguments)
            assert answer.data is not None, answer.text
            return answer.data

        with serving(tmp_path) as server:
            memory.append("cat", message(said, name="Ann"))
            assert call("recall", query="which cat did Ann adopt?")["episodes"][0]["text"] == said
            assert call("remember", text=f"Ann said: {said}")["status"] == "echo"
            first = call("remember", text="The cat sleeps on the sofa.", idempotency_key="sofa")
            server.kill()
        again = call("remember", text="The cat sleeps on the sofa.", idempotency_key="sofa")
        assert again == first | {"status": "duplicate"}
        assert "sofa" in str(call("recall", query="where does the cat sleep?")["episodes"])


def test_a_command_does_the_work_itself_when_the_server_was_killed(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        published = server_address(tmp_path)
        assert published is not None
        assert published[0] == server.base
        assert recollect("append", "ann", data=tmp_path, stdin=orjson.dumps(message("the sofa is red"))).returncode == 0
        server.kill()
    found = recollect("retrieve", "ann", "the red sofa", data=tmp_path)
    assert "the sofa is red" in found.stdout
    assert "does not answer" in found.stderr
    assert recollect("settle", "ann", "--no-server", data=tmp_path).stdout.startswith("ann: settled at version ")


def test_a_server_of_another_log_is_not_asked(served: tuple[Path, Server], tmp_path: Path) -> None:
    _, server = served
    assert recollect("append", "ann", data=tmp_path, stdin=orjson.dumps(message("the sofa is blue"))).returncode == 0
    (tmp_path / "server.lock").write_text(f"1\n{server.base}\n")
    assert "the sofa is blue" in recollect("retrieve", "ann", "the blue sofa", data=tmp_path).stdout


def test_a_server_that_ends_leaves_no_address_and_names_its_process_while_it_runs(tmp_path: Path) -> None:
    with serving_lock(tmp_path) as publish:
        assert server_address(tmp_path) is None
        publish("http://127.0.0.1:1", "secret")
        assert server_address(tmp_path) == ("http://127.0.0.1:1", "secret")
        with pytest.raises(FolderInUse, match=r"\(process \d+\)"), serving_lock(tmp_path):
            pass
        assert server_address(tmp_path) == ("http://127.0.0.1:1", "secret")
    assert server_address(tmp_path) is None
