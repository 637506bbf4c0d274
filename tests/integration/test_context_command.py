"""`recollect context` and `recollect hook`: the context for the prompts of coding agents."""

from __future__ import annotations

import shlex
from collections.abc import Generator
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.command_line import recollect
from support.events import message
from support.server import recollect_process, serving
from support.waiting import eventually

from recollect import Recollect
from recollect.api.settings import load_settings

CAT = "We adopted a black cat called Biscuit."
QUESTION = "What is the name of the cat that we adopted?"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A memory that no server serves."""
    _fill(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """A memory with its running server."""
    folder = tmp_path_factory.mktemp("served")
    with serving(folder):
        _fill(folder)
        yield folder


def _fill(folder: Path) -> None:
    with Recollect(settings=load_settings(data=folder, embedding_model="none"), workers=False) as memory:
        fact = {"subject": "Ann", "predicate": "lives in", "object": "Porto"}
        memory.append("ann", [message(CAT, name="Ann"), {"type": "fact.stated", "payload": fact}])


def context(folder: Path, stdin: str | dict[str, Any], *options: str) -> str:
    """Return what the hook prints; it always succeeds."""
    content = stdin.encode() if isinstance(stdin, str) else orjson.dumps(stdin)
    done = recollect("context", "--namespace", "ann", "--stdin", *options, data=folder, stdin=content)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_prompt_on_standard_input_gets_its_context(data: Path, served: Path) -> None:
    for folder in (data, served):
        printed = context(folder, QUESTION)
        assert printed.startswith("<recalled-memory-")
        assert CAT in printed
    assert CAT in recollect("context", "--namespace", "ann", QUESTION, data=data).stdout


def test_nothing_is_printed_when_the_memory_has_nothing_about_it(data: Path, served: Path) -> None:
    for folder in (data, served):
        for prompt in ("Refactor the parser of the configuration", "", "  \n"):
            assert context(folder, prompt) == ""


@pytest.mark.parametrize(
    "fields",
    [
        # Claude Code, and Codex, whose fields have the same names.
        {
            "session_id": "8c35adc1",
            "transcript_path": "/home/ann/.claude/projects/x.jsonl",
            "cwd": "/home/ann/project",
            "permission_mode": "default",
            "hook_event_name": "UserPromptSubmit",
            "prompt": QUESTION,
        },
        # Kiro.
        {"hook_event_name": "userPromptSubmit", "cwd": "/home/ann/project", "prompt": QUESTION},
        {"prompt": QUESTION, "session_id": "s1"},
    ],
)
def test_the_json_of_a_host_is_read(served: Path, fields: dict[str, Any]) -> None:
    assert CAT in context(served, fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"session_id": "s1", "cwd": "/x", "hook_event_name": "SessionStart", "source": "startup"},
        {"hook_event_name": "agentSpawn", "cwd": "/home/ann/project"},
    ],
)
def test_the_start_of_a_conversation_gets_who_the_user_is(data: Path, served: Path, fields: dict[str, Any]) -> None:
    for folder in (data, served):
        assert "Ann lives in Porto" in context(folder, fields)


def test_a_prompt_that_looks_like_json_is_a_prompt(data: Path) -> None:
    assert CAT in context(data, "{ our adopted cat called Biscuit")
    assert context(data, {"prompt": None, "hook_event_name": "Stop"}) == ""
    assert CAT in context(data, '{"question": "our adopted cat called Biscuit"}')


def test_a_recorded_prompt_is_remembered_once_and_is_not_its_own_context(data: Path, served: Path) -> None:
    for folder in (data, served):
        fields = {"prompt": "My boat is called Nautilus.", "session_id": "s9", "prompt_id": "p9"}
        assert "Nautilus" not in context(folder, fields, "--record")
        assert "Nautilus" not in context(folder, fields, "--record")
        assert "Nautilus" in context(folder, "How is my boat called?")
        listed = recollect("list", "ann", "episodes", "--filter", "session_id=s9", data=folder).stdout
        [episode] = map(orjson.loads, listed.splitlines())
        assert (episode["id"], episode["role"]) == ("hook:s9:p9", "user")


def test_it_never_fails(data: Path, tmp_path: Path) -> None:
    def failed(folder: Path, *options: str) -> None:
        done = recollect("context", "--stdin", *options, data=folder, stdin=QUESTION.encode())
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith("recollect: no memories")

    failed(data, "--namespace", "a name that is not allowed")
    (tmp_path / "file").write_text("not a folder")
    failed(tmp_path / "file", "--namespace", "ann", "--record")
    (data / "log.db").write_bytes(b"damaged" * 1_000)
    failed(data, "--namespace", "ann")
    assert context(tmp_path / "empty", QUESTION) == ""
    assert not (tmp_path / "empty").exists()


def test_a_server_that_was_killed_is_not_waited_for(data: Path) -> None:
    (data / "server.lock").write_text("1\nhttp://127.0.0.1:1\nsecret\n")
    assert CAT in context(data, QUESTION)


def test_after_its_time_it_prints_nothing(data: Path) -> None:
    arguments = ("context", "--namespace", "ann", "--seconds-max", "0.1", QUESTION)
    done = recollect_process(*arguments, data=data)
    assert (done.returncode, done.stdout) == (0, "")
    assert "within 0.1 seconds" in done.stderr


def test_a_prompt_whose_hook_has_no_time_is_recorded_all_the_same(data: Path) -> None:
    fields = {"prompt": "My kite is called Zephyr.", "session_id": "late", "prompt_id": "p1"}
    arguments = ("context", "--namespace", "ann", "--stdin", "--record", "--seconds-max", "0.1")
    done = recollect_process(*arguments, data=data, stdin=orjson.dumps(fields))
    assert (done.returncode, done.stdout) == (0, "")
    assert "recorded in the background" in done.stderr

    def is_recorded() -> bool:
        return "Zephyr" in recollect("list", "ann", "episodes", "--filter", "session_id=late", data=data).stdout

    eventually(is_recorded)


#: An agent and its file in the folder of a user.
AGENT_FILES = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "cursor": ".cursor/mcp.json",
    "opencode": ".config/opencode/opencode.json",
}


@pytest.mark.parametrize("agent", [*AGENT_FILES, "kiro"])
def test_an_agent_is_set_up_by_one_command_and_as_before_after_another(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    beep = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "beep"}]}]}, "mcp": {"timeout": 5}}
    before = {} if agent == "kiro" else {home / AGENT_FILES[agent]: beep}
    for path, content in before.items():
        path.parent.mkdir(parents=True)
        path.write_bytes(orjson.dumps(content))
    for namespace in ("bert", "carla"):
        done = recollect("hook", "install", agent, "--user", "--namespace", namespace, data=data)
        assert done.returncode == 0, done.stderr
    text = "".join(path.read_text() for path in home.rglob("*.json"))
    assert "carla" in text
    assert text.count('"*"') == (agent == "kiro")
    assert "bert" not in text
    assert recollect("hook", "remove", agent, "--user", data=data).returncode == 0
    left = {path: orjson.loads(path.read_bytes()) for path in home.rglob("*") if path.is_file()}
    for content in left.values():
        content.pop("$schema", None)
    assert left == before


def test_a_file_that_is_no_plain_json_is_left_alone(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "opencode.json").write_text('{"model": "x"} // mine')
    done = recollect("hook", "install", "opencode", "--namespace", "ann", data=data)
    assert done.returncode == 2
    assert "merge, or remove, by hand" in done.stderr
    assert (tmp_path / "opencode.json").read_text() == '{"model": "x"} // mine'


@pytest.mark.parametrize("host", ["claude-code", "codex", "kiro"])
@pytest.mark.parametrize("options", [[], ["--record"]])
def test_a_hook_is_the_configuration_of_its_host_and_its_command_runs(
    data: Path, host: str, options: list[str]
) -> None:
    printed = recollect("hook", "show", host, "--namespace", "ann", *options, data=data)
    assert printed.returncode == 0
    hooks = orjson.loads(printed.stdout)["hooks"]
    prompts = "userPromptSubmit" if host == "kiro" else "UserPromptSubmit"
    starts = "agentSpawn" if host == "kiro" else "SessionStart"
    assert set(hooks) == ({prompts} if options else {prompts, starts})
    handlers = hooks[prompts] if host == "kiro" else hooks[prompts][0]["hooks"]
    program, *arguments = shlex.split(handlers[0]["command"])
    assert Path(program).name == "recollect"
    assert CAT in recollect(*arguments, data=data, stdin=orjson.dumps({"prompt": QUESTION})).stdout
