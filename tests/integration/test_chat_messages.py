"""Chat messages: what users of OpenAI and mem0 send is recorded as it is meant, and what is wrong is named."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import AsyncRecollect, Recollect
from recollect.api.memory.chat_messages import ChatInput, chat_events
from recollect.api.memory.memory_editing import chat_drafts
from recollect.api.settings import load_settings
from recollect.events.errors import EventIdConflict, InvalidInput

_CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "I love tea", "name": "Ann", "id": "m1"},
    {"role": "assistant", "content": "Noted.", "id": "m2"},
]


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


def payload_of(message: dict[str, Any]) -> dict[str, Any]:
    [event] = chat_events([message], session_id=None, occurred_at=None, metadata=None)
    chat_drafts([event])
    return event["payload"]


def test_messages_are_recorded_in_order_with_what_they_have_in_common(memory: Recollect) -> None:
    at = datetime(2026, 1, 5, 9, tzinfo=UTC)
    recorded = memory.add("a", _CHAT, session_id="s1", occurred_at=at, metadata={"channel": "email"})
    assert [(one.id, one.version, one.duplicate) for one in recorded] == [("m1", 1, False), ("m2", 2, False)]
    items = memory.episodes("a")["items"]
    assert [(item["role"], item["speaker"], item["text"]) for item in items] == [
        ("user", "Ann", "I love tea"),
        ("assistant", "assistant", "Noted."),
    ]
    assert {(item["session_id"], item["occurred_at"]) for item in items} == {("s1", "2026-01-05T09:00:00Z")}
    assert all(item["metadata"] == {"channel": "email"} for item in items)


def test_the_same_ids_again_are_duplicates_and_other_content_is_a_conflict(memory: Recollect) -> None:
    memory.add("a", _CHAT)
    assert all(one.duplicate for one in memory.add("a", _CHAT))
    with pytest.raises(EventIdConflict):
        memory.add("a", [_CHAT[0] | {"content": "I love cocoa"}])
    assert memory.parts.log.head("a").version == 2


@pytest.mark.parametrize("messages", ["I love tea", {"role": "user", "content": "I love tea"}])
def test_a_text_or_a_single_message_is_enough(memory: Recollect, messages: ChatInput) -> None:
    assert len(memory.add("a", messages)) == 1
    assert [item["text"] for item in memory.episodes("a")["items"]] == ["I love tea"]


def test_a_message_has_its_own_time_and_labels(memory: Recollect) -> None:
    own = _CHAT[1] | {"occurred_at": "2026-01-06T09:00:00Z", "metadata": {"mood": "calm", "channel": "chat"}}
    memory.add("a", [_CHAT[0], own], occurred_at="2026-01-05T09:00:00Z", metadata={"channel": "email", "n": 1})
    first, second = memory.episodes("a")["items"]
    assert (first["occurred_at"], first["metadata"]) == ("2026-01-05T09:00:00Z", {"channel": "email", "n": 1})
    assert second["occurred_at"] == "2026-01-06T09:00:00Z"
    assert second["metadata"] == {"channel": "chat", "n": 1, "mood": "calm"}


def test_the_forms_of_openai_are_understood() -> None:
    dumped: dict[str, Any] = {"role": "assistant", "content": "Hi", "audio": None, "annotations": []}
    assert payload_of(dumped) == {"role": "assistant", "text": "Hi"}
    assert payload_of({"role": "developer", "content": "Be brief."}) == {"role": "system", "text": "Be brief."}
    assert payload_of({"role": "tool", "tool_call_id": "c1", "content": "4"}) == {"role": "tool:c1", "text": "4"}
    assert payload_of({"role": "tool", "name": "sum", "content": "4"})["role"] == "tool:sum"
    called = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {"name": "sum"}}]}
    assert payload_of(called)["data"] == {"tool_calls": called["tool_calls"]}
    assert payload_of({"role": "assistant", "refusal": "I cannot.", "content": None})["text"] == "I cannot."


def test_parts_of_a_content_are_text_and_attachments_without_bytes() -> None:
    parts = [
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
        {"type": "text", "text": "at this"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    assert payload_of({"role": "user", "content": parts}) == {
        "role": "user",
        "text": "Look\nat this",
        "attachments": [{"media_type": "image/*", "uri": "https://x.test/a.png"}, {"media_type": "image/*"}],
    }


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([], "messages"),
        (5, "messages"),
        ([5], "messages.0"),
        ([{"content": "x"}], "messages.0.role"),
        ([{"role": "user"}], "messages.0"),
        ([{"role": "king", "content": "x"}], "messages.0.role"),
        ([_CHAT[0], {"role": "user", "content": 7}], "messages.1.content"),
        ([{"role": "user", "content": "x", "text": "y"}], "messages.0.text"),
        ([{"role": "user", "content": [{"type": "hologram"}]}], "messages.0.content.0"),
        ([{"role": "user", "content": "x", "occurred_at": "today"}], "messages.0.occurred_at"),
        ([{"role": "user", "content": "x", "metadata": {"a": "y" * 9_000}}], "messages.0.metadata"),
        ([{"role": "user", "content": "x", "metadata": {"a": [[[[[1]]]]]}}], "messages.0.metadata"),
        ([{"role": "user", "content": "x", "metadata": {"a": "\ud800"}}], "messages.0.metadata"),
    ],
)
def test_what_is_wrong_is_refused_by_name_and_nothing_is_recorded(memory: Recollect, messages: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        memory.add("a", messages)
    assert refused.value.field.startswith(field)
    assert memory.parts.log.head("a").version == 0


def test_metadata_of_five_levels_and_8_kib_is_stored_as_it_is(memory: Recollect) -> None:
    metadata = {"a": [[[[1]]]], "b": "x" * 8_000, "ключ": None, 'quoted "name"': True}
    memory.add("a", "hello", metadata=metadata)
    assert memory.episodes("a")["items"][0]["metadata"] == metadata


_VALUES = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.text(max_size=20))
_NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20)
_LABELS = st.dictionaries(_NAMES, _VALUES, max_size=20)


@given(st.text(st.characters(codec="utf-8")), _LABELS)
def test_any_text_and_any_labels_are_recorded_without_a_change(text: str, metadata: dict[str, Any]) -> None:
    [event] = chat_events(text, session_id=None, occurred_at=None, metadata=metadata)
    assert event["payload"]["text"] == text
    assert event["payload"].get("metadata", {}) == metadata
    chat_drafts([event])


async def test_the_asynchronous_memory_adds_and_edits_the_same_way(tmp_path: Path) -> None:
    settings = load_settings(data=tmp_path, embedding_model="none")
    async with AsyncRecollect(settings=settings, workers=False) as memory:
        assert [one.id for one in await memory.add("a", _CHAT, session_id="s1")] == ["m1", "m2"]
        assert (await memory.get("a", "m1")).get("text") == "I love tea"
        assert (await memory.pin("a", "m1"))["pinned"]
        assert not (await memory.unpin("a", "m1"))["pinned"]
        updated = await memory.update("a", "m1", text="I love cocoa")
        assert (await memory.forget("a", str(updated["id"])))["kind"] == "episode"
        stated = {"type": "fact.stated", "id": "f", "payload": {"subject": "Ann", "predicate": "is", "object": "here"}}
        await memory.append("a", stated)
        assert (await memory.end("a", "f"))["status"] == "ended"
        assert [item["id"] for item in (await memory.episodes("a"))["items"]] == ["m2"]
