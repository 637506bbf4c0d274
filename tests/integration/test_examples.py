"""The examples of ops/examples: each runs as a reader would run it; only the remote service is a fake."""

from __future__ import annotations

import importlib.util
import io
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from openai import AsyncOpenAI
from support.openai_server import OpenAiServer, openai_server, responded, said, streamed

from recollect import AsyncRecollect, Recollect
from recollect.api.integrations.openai_client import close_memories

EXAMPLES = Path(__file__).parents[2] / "ops" / "examples"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[OpenAiServer]:
    """The language model, in the place that the environment names, and a data folder."""
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("RECOLLECT_EMBEDDING_MODEL", "none")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with openai_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server
    close_memories()


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def said_to(namespace: str) -> list[tuple[str, str, str | None]]:
    with Recollect(workers=False) as memory:
        payloads = [event["payload"] for event in memory.events(namespace)["items"] if event["type"] == "message.added"]
    return [(payload["role"], payload["text"], payload.get("name")) for payload in payloads]


def test_every_example_is_run_and_short() -> None:
    names = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    assert names == ["discord_bot", "openai_bot", "telegram_bot", "terminal_bot"]
    assert all(len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 60 for name in names)


@pytest.mark.parametrize("name", ["terminal_bot", "openai_bot"])
def test_a_bot_at_the_terminal_remembers_in_the_next_conversation(
    name: str, server: OpenAiServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.behaviour = lambda request: streamed("I ", "see.") if request.get("stream") else said("I see.")
    for line in ("The red sofa is from Porto.\n", "Where is the red sofa from?\n"):
        monkeypatch.setattr(sys, "stdin", io.StringIO(line))
        example(name).main()
        # The next conversation is another process.
        close_memories()
    assert capsys.readouterr().out.count("I see.") == 2
    assert "The red sofa is from Porto." in str(server.requests[-1]["messages"])
    assert [role for role, _, _ in said_to("me")] == ["user", "assistant"] * 2


async def test_the_discord_bot_remembers_each_user(server: OpenAiServer) -> None:
    server.behaviour = lambda _: said("I see.")
    replies: list[str] = []

    async def reply(text: str) -> None:
        replies.append(text)

    def message(user: int, channel: int, text: str) -> Any:
        return SimpleNamespace(
            author=SimpleNamespace(id=user, display_name=f"User {user}", bot=False),
            channel=SimpleNamespace(id=channel),
            clean_content=text,
            reply=reply,
        )

    async with AsyncOpenAI() as client:
        bot = example("discord_bot").Bot(client)
        await bot.answer(message(1, 7, "The red sofa is from Porto."))
        await bot.answer(message(1, 8, "Where is the red sofa from?"))
        assert "from Porto" in server.requests[-1]["messages"][1]["content"]
        await bot.answer(message(2, 8, "Where is the red sofa from?"))
        assert "from Porto" not in str(server.requests[-1]["messages"])
    assert replies == ["I see."] * 3
    close_memories()
    assert said_to("discord-1")[0] == ("user", "The red sofa is from Porto.", "User 1")
    assert len(said_to("discord-2")) == 2


async def test_the_telegram_bot_remembers_the_running_conversation(server: OpenAiServer) -> None:
    server.behaviour = lambda _: responded("I see.")
    replies: list[str] = []

    async def reply_text(text: str) -> None:
        replies.append(text)

    def update(text: str) -> Any:
        message = SimpleNamespace(chat_id=7, text=text, reply_text=reply_text)
        return SimpleNamespace(effective_message=message, effective_user=SimpleNamespace(id=1, first_name="Ann"))

    async with AsyncOpenAI() as client, AsyncRecollect() as memory:
        bot = example("telegram_bot").Bot(memory, client)
        await bot.answer(update("The red sofa is from Porto."), None)
        await bot.answer(update("Where is the red sofa from?"), None)
    assert "The red sofa is from Porto." in server.requests[-1]["instructions"]
    assert replies == ["I see.", "I see."]
    assert said_to("telegram-1")[0] == ("user", "The red sofa is from Porto.", "Ann")
