"""Windows, notes and summaries by a language model: checked against what was said, extracted without it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.events import message
from support.openai_server import SILENT, OpenAiServer, Raw, openai_server

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.envelope import microseconds
from recollect.jobs.conversation.observer import observe

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
_NOW_US = microseconds(_START + timedelta(days=1))
_TALK = (
    "I am planning a trip to Norway with my sister Anna next Friday",
    "We booked a cabin near Bergen for 740 euros",
    "Anna is allergic to shellfish, so no seafood buffets please",
    "The ferry leaves at 8:15, and the car is a red Skoda",
    "I still have to renew my passport before the trip",
)
_WRONG_DAYS: dict[str, Any] = {
    "silent": SILENT,
    "broken": Raw(500, b"{}"),
    "invented": "1: Mallory owns three castles in Scotland.\n2: Bob paid 9,000 dollars.",
    "empty": " ",
    "poor": "1: Ann plans.",
}


@pytest.fixture
def server() -> Generator[OpenAiServer]:
    with openai_server() as server:
        yield server


@pytest.fixture
def open_memory(tmp_path: Path, server: OpenAiServer) -> Generator[Callable[..., Recollect]]:
    opened: list[Recollect] = []

    def open_memory(**settings: Any) -> Recollect:
        llm: dict[str, Any] = {"llm": "tiny", "llm_base_url": server.url} | settings
        memory = Recollect(settings=load_settings(data=tmp_path, embedding_model="none", **llm), workers=False)
        opened.append(memory)
        return memory

    yield open_memory
    for memory in opened:
        memory.close()


def tell(memory: Recollect, turns: int) -> None:
    memory.append(
        "a",
        [
            message(
                f"{_TALK[number % len(_TALK)]}, number {number}",
                name="Ann",
                session_id="s1",
                occurred_at=_START + timedelta(minutes=number),
            )
            for number in range(turns)
        ],
    )


def summaries(memory: Recollect) -> list[str]:
    return [episode["text"] for episode in memory.episodes("a")["items"] if episode["tier"] != "raw"]


def notes(memory: Recollect) -> list[str]:
    return [item["text"] for item in memory.list("a", "observations", filters={"status": "active"})["items"]]


def test_the_window_is_summarised_by_the_model_without_what_it_invents(
    server: OpenAiServer, open_memory: Callable[..., Recollect]
) -> None:
    server.behaviour = lambda _: (
        "Ann plans a trip to Norway with Anna on 2026-01-09.\nThey booked a cabin near Bergen for 740 euros.\n"
        "The cabin belongs to Mallory.\nAnna is allergic to 70 kinds of nuts."
    )
    memory = open_memory()
    tell(memory, 40)
    window = memory.window("a", "s1", budget_tokens=600)
    assert window.compacted
    text = "Ann plans a trip to Norway with Anna on 2026-01-09. They booked a cabin near Bergen for 740 euros."
    assert window.messages[0]["content"] == f"[Conversation summary: {text}]"
    assert memory.window("a", "s1", budget_tokens=600).messages == window.messages
    assert len(server.requests) == 1
    memory.replay("a")
    assert memory.window("a", "s1", budget_tokens=600).messages == window.messages
    assert len(server.requests) == 1


def test_a_window_waits_for_one_answer_at_most(server: OpenAiServer, open_memory: Callable[..., Recollect]) -> None:
    server.behaviour = lambda _: Raw(500, b"{}")
    memory = open_memory()
    tell(memory, 40)
    assert memory.window("a", "s1", budget_tokens=600).compacted
    assert len(server.requests) == 1


def test_notes_are_the_models_with_the_dates_of_their_lines(
    server: OpenAiServer, open_memory: Callable[..., Recollect]
) -> None:
    server.behaviour = lambda _: (
        "Notes:\n3: Anna is allergic to shellfish\n[1] Ann plans a trip to Norway\n2: Mallory pays for the cabin\n"
        "5 - Ann still has to renew her passport before the trip\n7: They booked a cabin near Bergen for 740 euros\n"
        "900: Ann plans a trip to Norway"
    )
    memory = open_memory(observe_tokens=300)
    tell(memory, 40)
    assert observe(memory.parts.job_context, "a", _NOW_US) > 0
    assert notes(memory)[:2] == [
        "[2026-01-05] Ann plans a trip to Norway",
        "[2026-01-05] Anna is allergic to shellfish",
    ]
    requests = len(server.requests)
    assert observe(memory.parts.job_context, "a", _NOW_US) == 0
    assert len(server.requests) == requests


def test_notes_are_condensed_by_the_model(server: OpenAiServer, open_memory: Callable[..., Recollect]) -> None:
    long = [f"{number}: Ann told again: {_TALK[number % len(_TALK)]}, number {number}" for number in range(1, 31)]
    short = [
        "Ann plans a trip to Norway with her sister Anna, and booked a cabin near Bergen for 740 euros",
        "Ann still has to renew her passport before the trip to Norway",
    ]
    condensed = f"2: {short[0]}\n5: {short[1]}\n4: Mallory takes the ferry"
    server.behaviour = lambda request: condensed if "condense" in str(request) else "\n".join(long)
    memory = open_memory(observe_tokens=300, reflect_tokens=400)
    tell(memory, 40)
    observe(memory.parts.job_context, "a", _NOW_US)
    assert notes(memory) == [f"[2026-01-05] {note}" for note in short]


def test_compressed_episodes_are_the_models_words(server: OpenAiServer, open_memory: Callable[..., Recollect]) -> None:
    summary = "Ann plans a trip to Norway with Anna, who is allergic to shellfish. They booked a cabin near Bergen."
    server.behaviour = lambda request: summary if "sum up" in str(request) else "none"
    memory = open_memory()
    tell(memory, 20)
    memory.compact("a", now=_START + timedelta(days=2))
    assert summaries(memory) == [summary]
    assert "Write at most" in str(server.requests[-1])


@pytest.mark.parametrize("day", sorted(_WRONG_DAYS))
def test_on_a_wrong_day_sentences_are_extracted(
    day: str, server: OpenAiServer, open_memory: Callable[..., Recollect], tmp_path: Path
) -> None:
    server.behaviour = lambda _: _WRONG_DAYS[day]
    memory = open_memory(observe_tokens=300, reflect_tokens=400, llm_timeout_seconds=0.5)
    tell(memory, 40)
    window = memory.window("a", "s1", budget_tokens=600)
    observe(memory.parts.job_context, "a", _NOW_US)
    memory.compact("a", now=_START + timedelta(days=2))
    with Recollect(
        settings=load_settings(data=tmp_path / "rules", embedding_model="none", observe_tokens=300, reflect_tokens=400),
        workers=False,
    ) as by_rules:
        tell(by_rules, 40)
        assert window.messages == by_rules.window("a", "s1", budget_tokens=600).messages
        observe(by_rules.parts.job_context, "a", _NOW_US)
        by_rules.compact("a", now=_START + timedelta(days=2))
        assert notes(memory) == notes(by_rules)
        assert summaries(memory) == summaries(by_rules)


def test_a_long_session_is_read_in_parts(server: OpenAiServer, open_memory: Callable[..., Recollect]) -> None:
    server.behaviour = lambda _: "Ann plans a trip to Norway with Anna."
    memory = open_memory()
    tell(memory, 900)
    memory.window("a", "s1", budget_tokens=8_000)
    observe(memory.parts.job_context, "a", _NOW_US)
    assert max(len(server.conversation(number)) for number in range(len(server.requests))) < 60_000
