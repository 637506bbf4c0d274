"""LlamaIndex with wrapped clients: its real model, chat engine and agent, and a server on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.chat_engine.simple import SimpleChatEngine
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.llms.openai import OpenAI
from llama_index.llms.openai_like import OpenAILike  # pyright: ignore[reportMissingTypeStubs]
from openai import AsyncOpenAI
from openai import OpenAI as OpenAiClient
from support.openai_server import OpenAiServer, Raw, openai_server, said, streamed, streamed_call

import recollect
from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import StorageError

#: The workflows of agents list the members of a model of pydantic, deprecated ones too.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")
QUESTION = "Where is the red sofa from?"
ANSWER = "From Porto."
SOFA = {"role": "user", "text": "The red sofa is from Porto."}


@pytest.fixture(scope="module")
def server() -> Generator[OpenAiServer]:
    with openai_server() as server:
        yield server


@pytest.fixture
def memory(tmp_path: Path, server: OpenAiServer) -> Generator[Recollect]:
    server.requests.clear()
    server.behaviour = answer
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        memory.append("ann", {"type": "message.added", "session_id": "old", "payload": SOFA})
        yield memory


class Models:
    """Makes LlamaIndex's models with wrapped clients, which `close` closes."""

    def __init__(self, server: OpenAiServer, memory: Recollect) -> None:
        self._server = server
        self._memory = memory
        self._opened = AsyncExitStack()

    def __call__(self, kind: type[OpenAI] = OpenAI, **settings: Any) -> OpenAI:
        given: dict[str, Any] = {"memory": self._memory, "namespace": "ann", "session": "s1", **settings}
        server: dict[str, Any] = {"base_url": self._server.url, "api_key": "none"}
        client = self._opened.enter_context(recollect.wrap(OpenAiClient(**server), **given))
        async_client = recollect.wrap(AsyncOpenAI(**server), **given)
        self._opened.push_async_callback(async_client.close)
        options: dict[str, Any] = {"openai_client": client, "async_openai_client": async_client, "api_key": "none"}
        if kind is OpenAILike:
            return kind(model="qwen3", is_chat_model=True, is_function_calling_model=True, **options)
        return kind(model="gpt-5-mini", **options)

    async def close(self) -> None:
        await self._opened.aclose()


@pytest.fixture
async def models(server: OpenAiServer, memory: Recollect) -> AsyncIterator[Models]:
    models = Models(server, memory)
    yield models
    await models.close()


def answer(request: dict[str, Any]) -> Raw:
    """A model that first calls the tools which it is offered, and then answers."""
    if request.get("tools") and request["messages"][-1]["role"] == "user":
        return streamed_call("weather", city="Porto")
    return streamed("From ", "Porto.") if request.get("stream") else said(ANSWER)


def recorded(memory: Recollect, namespace: str = "ann") -> list[tuple[str, str]]:
    messages = [event for event in memory.events(namespace)["items"] if event["session_id"] != "old"]
    return [(event["payload"]["role"], event["payload"]["text"]) for event in messages]


def engine(llm: OpenAI, **options: Any) -> Any:
    """Return a chat engine without the default memory, which leaves a connection to a database in memory open."""
    memory: Any = ChatMemoryBuffer
    return SimpleChatEngine.from_defaults(llm=llm, memory=memory.from_defaults(llm=llm), **options)


def agent(llm: OpenAI, **options: Any) -> Any:
    return FunctionAgent(tools=[weather], llm=llm, **options)


def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}"


async def asked(llm: OpenAI, method: str) -> str:
    """Return the text of the model's answer by one of its methods."""
    given = [ChatMessage("Be brief.", role="system"), ChatMessage(QUESTION)] if "chat" in method else QUESTION
    reply: Any = getattr(llm, method)(given)
    if method.startswith("a"):
        reply = await reply
    if method.startswith("stream"):
        reply = list[Any](reply)[-1]
    elif "stream" in method:
        reply = [chunk async for chunk in reply][-1]
    return reply.message.content if "chat" in method else reply.text


METHODS = [f"{kind}{method}" for kind in ("", "stream_", "a", "astream_") for method in ("chat", "complete")]


@pytest.mark.parametrize("kind", [OpenAI, OpenAILike])
@pytest.mark.parametrize("method", METHODS)
async def test_each_method_of_the_model_gets_memories_and_is_recorded_once(
    server: OpenAiServer, memory: Recollect, models: Models, method: str, kind: type[OpenAI]
) -> None:
    assert await asked(models(kind), method) == ANSWER
    [request] = server.requests
    context, question = request["messages"][-2:]
    assert "The red sofa is from Porto." in context["content"]
    assert (context["role"], question) == ("system", {"role": "user", "content": QUESTION})
    assert recorded(memory) == [("user", QUESTION), ("assistant", ANSWER)]


@pytest.mark.parametrize("kind", [OpenAI, OpenAILike])
def test_a_chat_engine_is_recorded_turn_by_turn(
    server: OpenAiServer, memory: Recollect, models: Models, kind: type[OpenAI]
) -> None:
    chat = engine(models(kind))
    assert str(chat.chat("What of the lamp?")) == ANSWER
    assert "".join(chat.stream_chat(QUESTION).response_gen) == ANSWER
    assert [message["role"] for message in server.requests[-1]["messages"]] == ["user", "assistant", "system", "user"]
    questions = [("user", "What of the lamp?"), ("user", QUESTION)]
    assert recorded(memory) == [turn for question in questions for turn in (question, ("assistant", ANSWER))]


def test_the_system_prompt_of_an_engine_is_not_recorded(memory: Recollect, models: Models) -> None:
    """With `OpenAILike`. `OpenAI` gives a model such as gpt-5-mini the prompt as a message of the user."""
    engine(models(OpenAILike), system_prompt="Be brief.").chat(QUESTION)
    assert recorded(memory) == [("user", QUESTION), ("assistant", ANSWER)]


async def test_an_agent_with_a_tool_is_recorded_once(server: OpenAiServer, memory: Recollect, models: Models) -> None:
    assert str(await agent(models(), system_prompt="Be brief.").run(user_msg=QUESTION)) == ANSWER
    first, second = (request["messages"] for request in server.requests)
    assert "The red sofa is from Porto." in first[-2]["content"]
    # The round after the tool has the same context in the same place.
    assert second[: len(first)] == first
    assert second[-1]["content"] == "rain in Porto"
    assert recorded(memory) == [("user", QUESTION), ("assistant", ANSWER)]


async def test_users_of_one_model_are_kept_apart(server: OpenAiServer, memory: Recollect, models: Models) -> None:
    llm = models(namespace=None)
    for user in ("ann", "bob"):
        with recollect.conversation(user, session="s2"):
            await asked(llm, "astream_chat")
            engine(llm).chat(f"{user} asks: {QUESTION}")
            await agent(llm).run(user_msg=f"{user} asks the agent: {QUESTION}")
            list(engine(llm).stream_chat(f"{user} asks again: {QUESTION}").response_gen)
    for user in ("ann", "bob"):
        texts = [text for role, text in recorded(memory, user) if role == "user"]
        assert texts == [QUESTION, *(f"{user} asks{how}: {QUESTION}" for how in ("", " the agent", " again"))]
    of_bob = [request for request in server.requests if "bob asks" in str(request["messages"][-1])]
    assert of_bob
    assert "The red sofa is" not in str(of_bob)


class Failing:
    """A memory whose disk is full."""

    def append(self, *_: Any, **__: Any) -> Any:
        raise StorageError("the disk is full")

    retrieve = append_and_retrieve = append


@pytest.mark.parametrize("method", METHODS)
async def test_without_its_memory_a_model_answers(
    server: OpenAiServer, memory: Recollect, models: Models, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert await asked(models(memory=Failing()), method) == ANSWER
    assert server.requests[-1]["messages"][-1] == {"role": "user", "content": QUESTION}
    assert "recalled-memory" not in str(server.requests[-1])
    assert "goes on without its memory" in caplog.text
