"""Whole answers: the message that states what a question asks for comes first, with what was said beside it."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.events import Event, message

from recollect import Recollect
from recollect.api.settings import load_settings


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


def chat(*texts: str, session_id: str = "s1") -> list[Event]:
    """Return messages, by turns of the user and of the assistant."""
    roles = ("user", "assistant")
    return [
        message(text, id=f"{session_id}-{number}", role=roles[number % 2], session_id=session_id)
        for number, text in enumerate(texts)
    ]


def found(memory: Recollect, question: str, **options: Any) -> list[str]:
    """Return the ids of the user's messages in the answer."""
    items = memory.retrieve("a", question, **options).items
    return [item.id for item in items if item.kind == "episode" and item.speaker == "user"]


def test_the_message_that_states_the_asked_fact_comes_before_those_that_share_words(memory: Recollect) -> None:
    memory.append("a", chat("I work as a welder.", "Nice.", "for work today I need a work plan, work is hard", "Sure."))
    memory.settle("a")
    assert found(memory, "what do I do for work?")[0] == "s1-0"


def test_a_fact_about_somebody_else_does_not_count(memory: Recollect) -> None:
    memory.append("a", chat("My sister Nora works as a nurse.", "Nice.", "my work is hard work", "I see."))
    memory.settle("a")
    of_user = memory.retrieve("a", "what is my work?").items
    assert not any("fact" in item.matched_by for item in of_user)
    assert "fact" in memory.retrieve("a", "what is Nora's job?").items[0].matched_by


def test_what_no_longer_holds_is_no_answer_to_a_question_about_the_present(memory: Recollect) -> None:
    memory.append("a", chat("I live in Lyon.", "A fine city."))
    memory.append("a", chat("We have moved to Porto.", "Bravo.", session_id="s2"))
    memory.settle("a")
    assert found(memory, "where do I live?")[0] == "s2-0"


def test_what_was_said_right_after_a_message_comes_along_without_its_words(memory: Recollect) -> None:
    memory.append(
        "a",
        [
            *chat(
                "the tractor stands in the workshop again", "What is it?", "broken belt, rusty from last winter", "Oh."
            ),
            *chat("a story about whales", "Once upon a time.", session_id="s2"),
        ],
    )
    assert found(memory, "what about the tractor?") == ["s1-0", "s1-2"]
    assert found(memory, "what about the tractor?", limit=1) == ["s1-0"]


@pytest.mark.parametrize("text", ["What colour is it in the dark?", "ok", "the code of the gate is 4711 by the way"])
def test_questions_fillers_and_codes_do_not_come_along(text: str, memory: Recollect) -> None:
    memory.append("a", chat("the tractor stands in the workshop again", "I see.", text, "Fine."))
    assert found(memory, "what about the tractor?") == ["s1-0"]


def test_only_allowed_messages_come_along(memory: Recollect) -> None:
    early = {"occurred_at": "2026-01-01T10:00:00Z"}
    late = {"occurred_at": "2026-01-01T11:00:00Z"}
    said = chat("the tractor stands in the workshop again", "I see.", "broken belt, rusty from last winter")
    memory.append("a", [said[0] | early, said[1] | early, said[2] | late])
    assert found(memory, "what about the tractor?", until="2026-01-01T10:30:00Z") == ["s1-0"]


def test_what_was_asked_is_answered_by_questions_alone(memory: Recollect) -> None:
    memory.append("a", chat("my tomatoes are yellow", "Oh.", "should I water the tomatoes daily?", "Twice a week."))
    memory.settle("a")
    memory.append("a", chat("is Lisbon nice in winter?", "Mild.", "the tomatoes are red", "Bravo.", session_id="s2"))
    assert found(memory, "what did I ask you about the tomatoes?")[0] == "s1-2"
    assert set(found(memory, "which questions did I ask?")) == {"s1-2", "s2-0"}
    assert "s2-2" in found(memory, "what did I ask Nora about the tomatoes?")


def test_what_is_stated_of_a_topic_is_crowded_out_by_no_messages(tmp_path: Path) -> None:
    stated = ("is 34 metres tall", "has 168 steps", "is painted white", "flashes twice", "costs 8 pounds to visit")
    facts = [
        {"type": "fact.stated", "payload": {"subject": "Lighthouse", "predicate": verb, "object": rest}}
        for verb, _, rest in (text.partition(" ") for text in stated)
    ]
    chatter = [message(f"we talked about the Lighthouse trip again, part {number}") for number in range(25)]
    with Recollect(settings=load_settings(data=tmp_path), workers=False) as memory:
        memory.append("a", [*facts, *chatter])
        memory.embed(namespace="a")
        overview = memory.retrieve("a", "Tell me everything you know about the Lighthouse")
        height = memory.retrieve("a", "how tall is the lighthouse")
    assert [item.kind for item in overview.items].count("fact") == len(facts)
    assert height.items[0].text == "Lighthouse is 34 metres tall"
    assert all(item.kind == "fact" for item in height.items)


def test_the_session_of_a_day_is_what_was_said_on_it_and_other_sessions_are_a_topic(memory: Recollect) -> None:
    memory.append(
        "a",
        [
            {**event, "occurred_at": f"2026-02-{day}T10:00:00Z"}
            for day, event in [
                ("16", message("the webhook fails on staging", id="m1", session_id="s1")),
                ("19", message("the boiler man never came", id="m2", session_id="s2")),
                ("20", message("my session with the physio takes forty minutes", id="m3", session_id="s3")),
            ]
        ],
    )
    until = "2026-03-01T10:00:00Z"
    said = memory.retrieve("a", "what happened in the session on 19 February 2026?", until=until)
    assert [item.id for item in said.items] == ["m2"]
    assert memory.retrieve("a", "how long is my session?", until=until).items[0].id == "m3"
