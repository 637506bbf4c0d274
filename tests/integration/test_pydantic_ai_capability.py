"""`MemoryCapability`: a real agent of pydantic-ai that remembers, with a model that does as the test says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from recollect import AsyncRecollect, MemoryCapability, Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput, StorageError

QUESTION = "Where is the red sofa from?"


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        sofa = {"role": "user", "text": "The red sofa is from Porto."}
        memory.append("ann", {"type": "message.added", "session_id": "old", "payload": sofa})
        yield memory


class Script:
    """A model that gives replies in turn, and keeps the instructions of each request."""

    def __init__(self, *replies: str | ToolCallPart | Exception) -> None:
        self.replies = list(replies)
        self.instructions: list[str] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.instructions.append(info.instructions or "")
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return ModelResponse(parts=[TextPart(reply) if isinstance(reply, str) else reply])

    def agent(self, *capabilities: MemoryCapability, **settings: Any) -> Agent[Any, Any]:
        return Agent(FunctionModel(self), capabilities=capabilities, instructions="Be brief.", **settings)


def recorded(memory: Recollect, namespace: str = "ann") -> list[tuple[str, str]]:
    messages = [event for event in memory.events(namespace)["items"] if event["session_id"] != "old"]
    return [(event["payload"]["role"], event["payload"]["text"]) for event in messages]


@pytest.mark.parametrize("is_async", [True, False])
async def test_an_agent_gets_memories_and_its_run_is_recorded(memory: Recollect, is_async: bool) -> None:
    given = AsyncRecollect.over(memory) if is_async else memory
    script = Script("From Porto.")
    agent = script.agent(MemoryCapability(given, namespace="ann", user_name="Ann", assistant_name="Bot"))
    assert (await agent.run(QUESTION)).output == "From Porto."
    [instructions] = script.instructions
    assert instructions.startswith("Be brief.")
    assert "The red sofa is from Porto." in instructions
    assert recorded(memory) == [("user", QUESTION), ("assistant", "From Porto.")]
    assert [event["payload"]["name"] for event in memory.events("ann", after=1)["items"]] == ["Ann", "Bot"]


async def test_the_requests_of_a_run_have_one_context_and_it_is_recorded_once(memory: Recollect) -> None:
    script = Script(ToolCallPart("search_memory", {"query": "red sofa"}), "From Porto.", "You are welcome.")
    agent = script.agent(MemoryCapability(memory, namespace="ann", tools=True))
    first = await agent.run(QUESTION)
    assert script.instructions[0] == script.instructions[1]
    answers = [
        part.content for message in first.new_messages() for part in message.parts if part.part_kind == "tool-return"
    ]
    assert "The red sofa is from Porto." in str(answers)
    await agent.run("Thanks a lot", message_history=first.all_messages())
    assert recorded(memory) == [
        ("user", QUESTION),
        ("assistant", "From Porto."),
        ("user", "Thanks a lot"),
        ("assistant", "You are welcome."),
    ]
    sessions = {event["session_id"] for event in memory.events("ann", after=1)["items"]}
    assert len(sessions) == 1


async def test_a_failed_run_leaves_the_prompt(memory: Recollect) -> None:
    with pytest.raises(TimeoutError):
        await Script(TimeoutError()).agent(MemoryCapability(memory, namespace="ann")).run("I love tea")
    assert recorded(memory) == [("user", "I love tea")]


class Answer(BaseModel):
    city: str


async def test_outputs_of_other_types_and_streams_are_recorded(memory: Recollect) -> None:
    capability = MemoryCapability(memory, namespace=lambda ctx: ctx.deps, session="s1")
    script = Script(ToolCallPart("final_result", {"city": "Porto"}))
    await script.agent(capability, output_type=Answer, deps_type=str).run(QUESTION, deps="bob")
    assert recorded(memory, "bob") == [("user", QUESTION), ("assistant", '{"city":"Porto"}')]

    async def chunks(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        for chunk in ("From ", "Porto."):
            yield chunk

    agent: Agent[str, str] = Agent(FunctionModel(stream_function=chunks), capabilities=[capability], deps_type=str)
    async with agent.run_stream([QUESTION, "Tell me."], deps="cem") as stream:
        assert await stream.get_output() == "From Porto."
    assert recorded(memory, "cem") == [("user", f"{QUESTION}\nTell me."), ("assistant", "From Porto.")]


def test_a_number_of_a_user_or_a_chat_is_refused_before_a_run(memory: Recollect) -> None:
    numbers: tuple[dict[str, Any], ...] = ({"namespace": 42}, {"namespace": "ann", "session": 7})
    for wrong in numbers:
        with pytest.raises(InvalidInput, match="give text, such as str"):
            MemoryCapability(memory, **wrong)


def test_a_folder_is_refused_with_what_to_give() -> None:
    folder: Any = "./recollect-data"
    with pytest.raises(InvalidInput, match=r"memory: give an open memory, such as recollect\.Recollect.*, not a str"):
        MemoryCapability(folder, namespace="ann")


async def test_without_its_memory_an_agent_goes_on() -> None:
    class Failing:
        def append(self, *_: Any, **__: Any) -> Any:
            raise StorageError("the disk is full")

        retrieve = append_and_retrieve = append

    script = Script("Hello!")
    assert (await script.agent(MemoryCapability(Failing(), namespace="ann")).run("Hi")).output == "Hello!"
    assert script.instructions == ["Be brief."]
