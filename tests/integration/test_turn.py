"""A turn: it retrieves before the bot answers, and records what both said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import pytest

from recollect import AsyncRecollect, Recollect
from recollect.api.memory.turn import Turn
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput, InvalidNamespace, StorageError


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


class Unreachable:
    """A memory whose disk is full, or whose server is away."""

    def append(self, *_: Any, **__: Any) -> Any:
        raise StorageError("the disk is full")

    retrieve = append_and_retrieve = append


def texts(memory: Recollect, namespace: str = "ann") -> list[tuple[str, str, str | None]]:
    return [
        (event["payload"]["role"], event["payload"]["text"], event["session_id"])
        for event in memory.events(namespace)["items"]
        if event["type"] == "message.added"
    ]


def test_a_turn_retrieves_before_and_records_after(memory: Recollect) -> None:
    with memory.turn("ann", "s1", "The red sofa is from Porto.") as turn:
        assert turn.context == ""
        turn.reply = "Nice sofa."
    with memory.turn("ann", "s2", "Where is the red sofa from?", user_name="Ann", assistant_name="Bot") as turn:
        assert "from Porto" in turn.context
        turn.reply = "From Porto."
    assert texts(memory) == [
        ("user", "The red sofa is from Porto.", "s1"),
        ("assistant", "Nice sofa.", "s1"),
        ("user", "Where is the red sofa from?", "s2"),
        ("assistant", "From Porto.", "s2"),
    ]
    names = [event["payload"].get("name") for event in memory.events("ann")["items"]]
    assert names == [None, None, "Ann", "Bot"]
    assert [appended.version for appended in turn.recorded] == [3, 4]


def test_after_an_exception_the_message_is_kept_and_no_reply(memory: Recollect) -> None:
    with pytest.raises(TimeoutError), memory.turn("ann", "s1", "I love tea") as turn:
        turn.reply = "Half an ans"
        raise TimeoutError
    assert texts(memory) == [("user", "I love tea", "s1")]


def test_a_turn_without_a_reply_records_the_message_alone(memory: Recollect) -> None:
    with memory.turn("ann", None, "I love tea"):
        pass
    with memory.turn("ann", None, "I love tea", no_store=True) as turn:
        turn.reply = "So you say."
    assert texts(memory) == [("user", "I love tea", None)]


def test_a_streamed_reply_is_what_was_shown(memory: Recollect) -> None:
    with memory.turn("ann", "s1", "Tell me a story") as turn:
        assert list(turn.stream(iter(["Once ", "upon"]))) == ["Once ", "upon"]
    with memory.turn("ann", "s1", "Another one") as turn:
        for chunk in turn.stream(iter(["There ", "was ", "a cat"])):
            if chunk == "was ":
                break
    assert [text for role, text, _ in texts(memory) if role == "assistant"] == ["Once upon", "There was "]


def test_a_bot_that_sends_no_history_gets_the_running_conversation_too(memory: Recollect) -> None:
    contexts: list[str] = []
    for history in (True, False):
        for text in ("The red sofa is from Porto.", "Where is the red sofa from?"):
            with memory.turn(f"ann-{history}", "s1", text, history=history) as turn:
                contexts.append(turn.context)
    assert ["from Porto" in context for context in contexts] == [False, False, False, True]
    assert [session for _, _, session in texts(memory, "ann-False")] == ["s1", "s1"]


def test_a_message_may_have_the_form_of_openai(memory: Recollect) -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "I love tea"}], "id": "m1"}
    with memory.turn("ann", "s1", message, metadata={"channel": "email"}) as turn:
        turn.reply = "Noted."
    assert [event["payload"]["metadata"] for event in memory.events("ann")["items"]] == [{"channel": "email"}] * 2
    assert turn.recorded[0].id == "m1"


def test_a_turn_goes_on_without_its_memory(caplog: pytest.LogCaptureFixture) -> None:
    with Turn(Unreachable(), "ann", "s1", "my secret plan") as turn:
        assert turn.context == ""
        turn.reply = "Hello!"
    assert isinstance(turn.error, StorageError)
    assert repr(turn) == (
        "Turn(namespace='ann', session='s1', memories=0, replied=True, recorded=0, error=StorageError)"
    )
    assert "my secret plan" not in caplog.text
    with pytest.raises(StorageError), Turn(Unreachable(), "ann", "s1", "hi", strict=True):
        pass


def test_what_the_caller_does_wrong_is_raised(memory: Recollect) -> None:
    with pytest.raises(InvalidNamespace), memory.turn("no such/name", "s1", "hi"):
        pass
    wrong: Any = {"budget": 1}
    with pytest.raises(InvalidInput, match="no such field"), memory.turn("ann", "s1", "hi", **wrong):
        pass
    completion: Any = {"choices": []}
    with pytest.raises(InvalidInput, match="text of the reply"), memory.turn("ann", "s1", "hi") as turn:
        turn.reply = completion


def test_a_turn_without_its_block_says_so_before_it_is_lost(memory: Recollect) -> None:
    turn = memory.turn("ann", "s1", "I love tea")
    with pytest.raises(InvalidInput, match="with memory.turn"):
        _ = turn.context
    assert "recorded=0" in repr(turn)


async def test_the_async_turn_does_the_same(memory: Recollect) -> None:
    twin = AsyncRecollect.over(memory)
    async with twin.turn("ann", "s1", "The red sofa is from Porto.") as turn:
        turn.reply = "Nice."

    async def chunks() -> AsyncIterator[str]:
        for chunk in ("From ", "Porto."):
            yield chunk

    async with twin.turn("ann", "s2", "Where is the red sofa from?") as turn:
        assert "from Porto" in turn.context
        assert [chunk async for chunk in turn.stream(chunks())] == ["From ", "Porto."]
    with pytest.raises(asyncio.CancelledError):
        async with twin.turn("ann", "s2", "And the lamp?") as turn:
            turn.reply = "The lamp"
            raise asyncio.CancelledError
    assert [text for _, text, _ in texts(memory)][-3:] == [
        "Where is the red sofa from?",
        "From Porto.",
        "And the lamp?",
    ]
