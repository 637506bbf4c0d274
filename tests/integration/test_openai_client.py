"""`wrap`: an OpenAI client that remembers, with the real client and a server on loopback."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from openai import AsyncOpenAI, InternalServerError, OpenAI
from support.openai_server import (
    OpenAiServer,
    Raw,
    openai_server,
    responded,
    responded_in_chunks,
    said,
    streamed,
)

import recollect
from recollect import AsyncClient, AsyncRecollect, Client, Recollect
from recollect.api.integrations.limited_calls import LimitedCalls
from recollect.api.integrations.openai_client import close_memories
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput, StorageError

Messages = Sequence[Mapping[str, Any]]


@pytest.fixture(scope="module")
def server() -> Generator[OpenAiServer]:
    with openai_server() as server:
        yield server


@pytest.fixture
def memory(tmp_path: Path, server: OpenAiServer) -> Generator[Recollect]:
    server.requests.clear()
    server.headers.clear()
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        memory.append("ann", {"type": "message.added", "session_id": "old", "payload": SOFA})
        yield memory
        while _OPENED:
            _OPENED.pop().close()


SOFA = {"role": "user", "text": "The red sofa is from Porto."}
QUESTION = "Where is the red sofa from?"
RULES = {"role": "system", "content": "You are a bot."}


def client(server: OpenAiServer, memory: Any, **settings: Any) -> OpenAI:
    plain = OpenAI(base_url=server.url, api_key="none", max_retries=1)
    given: dict[str, Any] = {"namespace": "ann", "session": "s1", **settings}
    _OPENED.append(wrapped := recollect.wrap(plain, memory=memory, **given))
    return wrapped


#: The clients of a test, which the end of its memory closes.
_OPENED: list[OpenAI] = []


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def ask(openai: OpenAI, *messages: Mapping[str, Any], **options: Any) -> str | None:
    given: Any = messages
    completion = cast(Any, openai.chat.completions.create(model="tiny", messages=given, **options))
    return completion.choices[0].message.content


def recorded(memory: Recollect, namespace: str = "ann") -> list[tuple[str, str, str | None]]:
    """Return what was said after the sofa."""
    return [
        (event["payload"]["role"], event["payload"]["text"], event["session_id"])
        for event in memory.events(namespace)["items"]
        if event["type"] == "message.added" and event["session_id"] != "old"
    ]


def test_a_request_gets_memories_and_what_was_said_is_recorded(server: OpenAiServer, memory: Recollect) -> None:
    server.behaviour = lambda _: said("From Porto.")
    assert ask(client(server, memory), RULES, user(QUESTION)) == "From Porto."
    rules, context, question = server.requests[-1]["messages"]
    assert (rules, question) == (RULES, user(QUESTION))
    assert context["role"] == "system"
    assert "The red sofa is from Porto." in context["content"]
    assert recorded(memory) == [("user", QUESTION, "s1"), ("assistant", "From Porto.", "s1")]


def test_only_what_is_new_in_a_conversation_is_recorded(server: OpenAiServer, memory: Recollect) -> None:
    openai = client(server, memory, user_name="Ann", assistant_name="Bot")
    examples = [user("What is 1 + 1?"), {"role": "assistant", "content": "2"}]
    history: list[Mapping[str, Any]] = [RULES, *examples]
    for number in range(3):
        server.behaviour = lambda _, number=number: said(f"Answer {number}")
        history.append(user("Go on"))
        history.append({"role": "assistant", "content": ask(openai, *history)})
    said_so_far = [turn for number in range(3) for turn in (("user", "Go on"), ("assistant", f"Answer {number}"))]
    assert [(role, text) for role, text, _ in recorded(memory)] == said_so_far
    # A bot that was restarted, and sends the last turns alone.
    server.behaviour = lambda _: said("Answer 3")
    ask(client(server, memory), *history[-2:], user("Go on"))
    assert [text for _, text, _ in recorded(memory)][6:] == ["Go on", "Answer 3"]


def test_a_request_that_is_sent_again_is_recorded_once(server: OpenAiServer, memory: Recollect) -> None:
    answers = iter([Raw(500, b"{}"), said("Hello!"), Raw(500, b"{}"), Raw(500, b"{}"), said("Hello again!")])
    server.behaviour = lambda _: next(answers)
    openai = client(server, memory)
    ask(openai, user("My name is Ann"))
    assert recorded(memory) == [("user", "My name is Ann", "s1"), ("assistant", "Hello!", "s1")]
    assert server.requests[0] == server.requests[1]
    # The bot tries again itself, in another process.
    history = [user("My name is Ann"), {"role": "assistant", "content": "Hello!"}, user("Hi")]
    with pytest.raises(InternalServerError):
        ask(openai, *history)
    ask(client(server, memory), *history)
    assert [text for _, text, _ in recorded(memory)] == ["My name is Ann", "Hello!", "Hi", "Hello again!"]


def test_a_reply_that_was_cut_is_asked_for_again_and_recorded_once(server: OpenAiServer, memory: Recollect) -> None:
    whole = said("Hello!")
    answers = iter([Raw(200, whole.body, cut=True), whole])
    server.behaviour = lambda _: next(answers)
    ask(client(server, memory), user("Hi"))
    assert [text for _, text, _ in recorded(memory)] == ["Hi", "Hello!"]


def test_a_bot_that_sends_no_history_may_be_told_the_same_twice(server: OpenAiServer, memory: Recollect) -> None:
    server.behaviour = lambda _: said("Noted.")
    openai = client(server, memory)
    for text in ("I had a green coffee", "I had a green coffee", "What colour was the coffee?"):
        ask(openai, RULES, user(text))
    texts = [text for _, text, _ in recorded(memory)]
    assert texts.count("I had a green coffee") == 2
    # What the request does not hold is recalled, though it is of the running conversation.
    assert "green coffee" in server.requests[-1]["messages"][1]["content"]


def test_a_streamed_reply_is_recorded_when_it_ends_or_is_stopped(server: OpenAiServer, memory: Recollect) -> None:
    server.behaviour = lambda _: streamed("From ", "Porto, ", "of course.")
    openai = client(server, memory)
    chunks = openai.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "Hi"}], stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "From Porto, of course."
    assert recorded(memory)[1:] == [("assistant", "From Porto, of course.", "s1")]
    with openai.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "Ho"}], stream=True) as it:
        next(it)
    assert [role for role, _, _ in recorded(memory)] == ["user", "assistant", "user", "assistant"]


def test_calls_of_tools_pass_through_and_have_the_context_of_their_turn(
    server: OpenAiServer, memory: Recollect
) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    openai = client(server, memory)
    server.behaviour = lambda _: {}
    ask(openai, RULES, user(QUESTION), tools=tools)
    server.behaviour = lambda _: said("From Porto, where it rains.")
    answer = {"role": "tool", "tool_call_id": "c1", "content": "rain"}
    ask(openai, RULES, user(QUESTION), {"role": "assistant", "tool_calls": [call]}, answer, tools=tools)
    first, second = server.requests
    assert second["messages"][:3] == first["messages"]
    assert second["messages"][-1] == answer
    assert first["tools"] == second["tools"] == tools
    assert [text for _, text, _ in recorded(memory)] == [QUESTION, "From Porto, where it rains."]
    # The bot drops its last reply, and keeps the result of the tool.
    ask(openai, RULES, user(QUESTION), {"role": "assistant", "tool_calls": [call]}, answer, user("And the lamp?"))
    assert [text for _, text, _ in recorded(memory)][2:] == ["And the lamp?", "From Porto, where it rains."]


def test_what_comes_before_the_last_message_is_left_to_the_prompt_cache(
    server: OpenAiServer, memory: Recollect
) -> None:
    server.behaviour = lambda _: said("From Porto.")
    history = [RULES, user("Hi"), {"role": "assistant", "content": "Hello!"}, user(QUESTION)]
    ask(client(server, memory), *history)
    assert server.requests[-1]["messages"][:3] == history[:3]
    ask(client(server, memory, placement="system"), *history)
    rules, *others = server.requests[-1]["messages"]
    assert rules["content"].startswith("You are a bot.\n\n<recalled-memory-")
    assert others == history[1:]


def test_a_reply_that_the_bot_begins_leaves_the_message_new(server: OpenAiServer, memory: Recollect) -> None:
    server.behaviour = lambda _: said("Sure: it is from Porto.")
    begun = {"role": "assistant", "content": "Sure:"}
    ask(client(server, memory), user("Hi"), {"role": "assistant", "content": "Hello!"}, user(QUESTION), begun)
    assert [text for _, text, _ in recorded(memory)] == [QUESTION, "Sure: it is from Porto."]
    assert [message["role"] for message in server.requests[-1]["messages"]][2:] == ["system", "user", "assistant"]


def test_a_context_that_the_bot_sends_back_is_not_what_the_user_said(server: OpenAiServer, memory: Recollect) -> None:
    server.behaviour = lambda _: said("Hm.")
    openai = client(server, memory)
    ask(openai, user(QUESTION))
    context = server.requests[-1]["messages"][0]["content"]
    ask(openai, {"role": "assistant", "content": "Hm."}, user(f"{context}\nIs that so?"))
    assert recorded(memory)[2] == ("user", "Is that so?", "s1")


def test_responses_are_given_memories_and_recorded(server: OpenAiServer, memory: Recollect) -> None:
    openai = client(server, memory)
    server.behaviour = lambda _: responded("From Porto.")
    assert openai.responses.create(model="tiny", input=QUESTION, instructions="Be brief.").output_text == "From Porto."
    # A server that keeps the conversation keeps no instructions, so that contexts do not pile up there.
    assert server.requests[-1]["input"] == QUESTION
    assert server.requests[-1]["instructions"].startswith("Be brief.\n\n<recalled-memory-")
    server.behaviour = lambda _: responded_in_chunks("Por", "to!")
    history: Any = [user(QUESTION), {"role": "assistant", "content": "From Porto."}, user("The red sofa, from where?")]
    events = openai.responses.create(model="tiny", input=history, stream=True)
    assert [event.delta for event in events if event.type == "response.output_text.delta"] == ["Por", "to!"]
    items: Any = server.requests[-1]["input"]
    assert [item["role"] for item in items] == ["user", "assistant", "system", "user"]
    for _ in openai.responses.create(model="tiny", input="And the lamp?", previous_response_id="r1", stream=True):
        pass
    texts = [text for _, text, _ in recorded(memory)]
    assert texts[:4] == [QUESTION, "From Porto.", "The red sofa, from where?", "Porto!"]
    assert texts[4:] == ["And the lamp?", "Porto!"]


class Failing:
    """A memory whose disk is full."""

    def append(self, *_: Any, **__: Any) -> Any:
        raise StorageError("the disk is full")

    retrieve = append_and_retrieve = append


def test_without_its_memory_a_request_is_as_the_bot_wrote_it(
    server: OpenAiServer, memory: Recollect, caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviour = lambda _: said("Hello!")
    for openai in (client(server, Failing()), client(server, memory, namespace=None)):
        assert ask(openai, RULES, user("my secret plan")) == "Hello!"
        assert server.requests[-1]["messages"] == [RULES, user("my secret plan")]
    assert caplog.text.count("goes on without its memory") == 3
    assert "my secret plan" not in caplog.text


@pytest.fixture
def hanging() -> Generator[str]:
    """The address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_memory_that_hangs_delays_a_request_by_its_time_limit_alone(
    server: OpenAiServer, memory: Recollect, hanging: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviour = lambda _: said("Hello!")
    with Client(hanging, timeout_seconds=600) as remote:
        assert ask(client(server, remote, timeout_seconds=0.05), user(QUESTION)) == "Hello!"
    assert server.requests[-1]["messages"] == [user(QUESTION)]
    late = [line for line in caplog.messages if line.endswith("the memory did not answer within 0.05 seconds")]
    # The retrieval, and the record of the reply.
    assert len(late) == 2
    with pytest.raises(InvalidInput, match="timeout_seconds"):
        client(server, memory, timeout_seconds=0)


async def test_an_asynchronous_memory_that_hangs_delays_a_request_no_longer(
    server: OpenAiServer, hanging: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviour = lambda _: said("Hello!")
    async with AsyncClient(hanging, timeout_seconds=600) as remote:
        plain = AsyncOpenAI(base_url=server.url, api_key="none")
        async with recollect.wrap(plain, namespace="ann", memory=remote, timeout_seconds=0.05) as openai:
            reply = await openai.chat.completions.create(model="tiny", messages=[{"role": "user", "content": QUESTION}])
    assert reply.choices[0].message.content == "Hello!"
    assert "did not answer within 0.05 seconds" in caplog.text


def test_a_server_that_refuses_the_context_gets_the_request_without_it(server: OpenAiServer, memory: Recollect) -> None:
    def strict(request: dict[str, Any]) -> Raw:
        roles = [message["role"] for message in request["messages"]]
        return Raw(400, b'{"error": {"message": "roles"}}') if "system" in roles else said("Hello!")

    server.behaviour = strict
    assert ask(client(server, memory), user(QUESTION)) == "Hello!"
    assert recorded(memory) == [("user", QUESTION, "s1"), ("assistant", "Hello!", "s1")]


def test_a_server_of_many_users_names_the_memory_of_each_request(server: OpenAiServer, memory: Recollect) -> None:
    server.behaviour = lambda _: said("Hello!")
    openai = client(server, memory, namespace=None)
    ask(openai, user(QUESTION), extra_headers={"X-Recollect-Namespace": "ann", "X-Recollect-Session": "s7"})
    assert "from Porto" in server.requests[-1]["messages"][0]["content"]
    assert not [name for name in server.headers[-1] if name.startswith("x-recollect")]
    with recollect.conversation("bob", session="s8"):
        ask(openai, user(QUESTION))
    assert server.requests[-1]["messages"] == [user(QUESTION)]
    assert recorded(memory) == [("user", QUESTION, "s7"), ("assistant", "Hello!", "s7")]
    assert recorded(memory, "bob") == [("user", QUESTION, "s8"), ("assistant", "Hello!", "s8")]


@pytest.mark.parametrize("is_async_memory", [True, False])
async def test_the_async_client_remembers_too(server: OpenAiServer, memory: Recollect, is_async_memory: bool) -> None:
    plain = AsyncOpenAI(base_url=server.url, api_key="none")
    chosen = AsyncRecollect.over(memory) if is_async_memory else memory
    async with recollect.wrap(plain, memory=chosen, namespace="ann", session="s1") as openai:
        server.behaviour = lambda _: said("From Porto.")
        await openai.chat.completions.create(model="tiny", messages=[{"role": "user", "content": QUESTION}])
        assert "from Porto" in server.requests[-1]["messages"][0]["content"]
        server.behaviour = lambda _: streamed("You ", "are ", "welcome.")
        thanks: Any = [user(QUESTION), {"role": "assistant", "content": "From Porto."}, user("Thanks a lot")]
        stream = await openai.chat.completions.create(model="tiny", messages=thanks, stream=True)
        assert len([chunk async for chunk in stream]) == 5
    assert [text for _, text, _ in recorded(memory)] == [QUESTION, "From Porto.", "Thanks a lot", "You are welcome."]


async def test_tasks_of_several_users_have_a_memory_each(server: OpenAiServer, memory: Recollect) -> None:
    server.behaviour = lambda request: said(f"Hello {request['messages'][-1]['content']}")
    openai = recollect.wrap(AsyncOpenAI(base_url=server.url, api_key="none"), memory=memory)

    async def greet(name: str) -> None:
        with recollect.conversation(name):
            await openai.chat.completions.create(model="tiny", messages=[{"role": "user", "content": f"I am {name}"}])

    await asyncio.gather(*(greet(f"user-{number}") for number in range(8)))
    for number in range(8):
        texts = [text for _, text, _ in recorded(memory, f"user-{number}")]
        assert texts == [f"I am user-{number}", f"Hello I am user-{number}"]
    await openai.close()


def test_the_proxies_headers_and_hooks_of_the_given_client_stay(server: OpenAiServer, memory: Recollect) -> None:
    urls: list[str] = []

    def hook(request: httpx.Request) -> None:
        urls.append(str(request.url))

    server.behaviour = lambda _: said("From Porto.")
    # What the client of OpenAI used before its version 3.
    legacy: Any = httpx.Client(event_hooks={"request": [hook]}, headers={"x-team": "blue"})
    plain = OpenAI(base_url=server.url, api_key="none", http_client=legacy)
    openai = recollect.wrap(plain, memory=memory, namespace="ann", session="s1")
    ask(openai, user(QUESTION))
    assert urls == [f"{server.url}/chat/completions"]
    assert server.headers[-1]["x-team"] == "blue"
    assert "from Porto" in json.dumps(server.requests[-1])
    # Wrapping again replaces the settings, and records nothing twice.
    with recollect.wrap(openai, memory=memory, namespace="bob", session="s1") as again:
        ask(again, user("Hi"))
    assert legacy.is_closed
    assert [text for _, text, _ in recorded(memory)] == [QUESTION, "From Porto."]
    assert [text for _, text, _ in recorded(memory, "bob")] == ["Hi", "From Porto."]


def test_what_is_no_client_of_openai_is_refused(memory: Recollect) -> None:
    with pytest.raises(InvalidInput, match="OpenAI or AsyncOpenAI"):
        recollect.wrap(object(), memory=memory)


def test_a_wrong_option_is_refused_when_the_client_is_wrapped(server: OpenAiServer, memory: Recollect) -> None:
    for wrong, message in (
        ({"namespac": "ann"}, "namespac: there is no such option; did you mean namespace?"),
        ({"usr_name": "Ann"}, "usr_name: there is no such option; did you mean user_name?"),
        ({"user_id": "ann"}, "user_id: there is no such option; did you mean namespace?"),
        ({"top_k": 3}, "top_k: there is no such field; did you mean limit?"),
        ({"query": "x"}, "query: there is no such option"),
        ({"limit": 0}, "limit: "),
        ({"placement": "top"}, "placement: give one of before_last_message, system"),
        ({"session": 7}, "session: give text, such as str(chat_id), not int"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            client(server, memory, **wrong)


def test_an_unknown_user_or_the_number_of_a_chat_is_refused_where_the_conversation_begins() -> None:
    for namespace, session, message in (
        (None, "s1", "str(user_id), not NoneType"),
        ("ann", 7, "str(chat_id), not int"),
    ):
        wrong: Any = namespace, session
        with pytest.raises(InvalidInput, match=re.escape(message)), recollect.conversation(*wrong):
            pass


def test_an_address_is_not_a_folder() -> None:
    with pytest.raises(InvalidInput, match=r"data: give a folder; a server is reached by recollect\.Client"):
        Recollect("http://127.0.0.1:8787")


def test_the_first_call_of_a_memory_that_was_just_opened_may_take_longer() -> None:
    calls = LimitedCalls(0.05, first_seconds=5)
    assert calls.run(lambda: time.sleep(0.2)) is None
    with pytest.raises(TimeoutError, match="within 0.05 seconds"):
        calls.run(lambda: time.sleep(1))


def test_the_folder_of_the_settings_is_the_default(
    server: OpenAiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDING_MODEL", "none")
    server.behaviour = lambda _: said("Hello!")
    ask(client(server, tmp_path / "data"), user("I love tea"))
    ask(client(server, str(tmp_path / "data"), session="s2"), user("What do I love?"))
    close_memories()
    assert "I love tea" in server.requests[-1]["messages"][0]["content"]
