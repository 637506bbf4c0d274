"""Times asked for: what is of a time is found, a time without memories gives nothing, with the reason."""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from recollect import Recollect
from recollect.api.mcp.recall_tool import recall
from recollect.api.mcp.tool_arguments import RecallArguments
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.settings import load_settings

_ASKED_AT = datetime.fromisoformat("2023-10-16T09:00:00+02:00")
_REASON = "no memory of that time"
#: A chat with nothing in March and in August, which one later message is about.
_CHAT = (
    ("2023-01-10T09:00:00+01:00", "I live in Oslo and I work as a nurse at the city clinic."),
    ("2023-02-03T08:00:00+01:00", "I started learning the cello with a teacher called Jonas."),
    ("2023-02-25T10:00:00+01:00", "I finished reading Middlemarch, I read 4 books by March 1."),
    ("2023-04-04T18:00:00+02:00", "My cello recital is on May 20, I am nervous."),
    ("2023-06-02T17:00:00+02:00", "I bought a red bicycle for 300 euros."),
    ("2023-07-08T20:00:00+02:00", "I cycled to the lighthouse today and got a sunburn."),
    ("2023-07-15T23:30:00+02:00", "Went to the jazz festival with Maria tonight."),
    ("2023-09-05T08:30:00+02:00", "In August I was in Portugal for two weeks, Porto was my favourite city."),
    ("2023-10-02T19:00:00+02:00", "My tax return is due on October 31."),
    ("2023-10-14T14:00:00+02:00", "I have a dentist appointment on Tuesday."),
    ("2023-10-15T20:10:00+02:00", "I do yoga every Thursday evening."),
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Generator[Recollect]:
    folder: Path = tmp_path_factory.mktemp("times")
    settings = load_settings(data=folder, embedding_model="none")
    with Recollect(settings=settings, workers=False, clock=lambda: _ASKED_AT) as memory:
        for sent_at, text in _CHAT:
            memory.append("ann", _message(text, sent_at))
        memory.settle("ann")
        yield memory


def _message(text: str, sent_at: str) -> dict[str, Any]:
    payload = {"role": "user", "name": "Ann", "text": text}
    return {"type": "message.added", "session_id": sent_at[:10], "occurred_at": sent_at, "payload": payload}


def _texts(result: RetrieveResult) -> str:
    return "\n".join(item.text for item in result.items)


@pytest.mark.parametrize(
    "question",
    [
        "What did I do on March 20?",
        "What did I do in November 2022?",
        "What happened in December?",
        "What did we talk about on April 10?",
        "What did I tell you in the summer of 2021?",
        "What did I do last Monday?",
        "How was my December?",
        "What do I have on Wednesday?",
        "Do I have anything planned next month?",
        "What did Jonas say in December 2022?",
        "Where did I live in November 2022?",
        "Was habe ich am 20. März gemacht?",
        "Give me a summary of my December.",
        "summarize my December",
        "What was my December like?",
        "How was December for me?",
        "How was my 2021?",
        "recap of 2021",
        "What were my plans for December?",
    ],
)
def test_a_time_without_memories_gives_nothing_with_the_reason(memory: Recollect, question: str) -> None:
    result = memory.retrieve("ann", question)
    assert (_texts(result), result.context, result.reason) == ("", "", _REASON)
    assert (result.answer.action, result.answer.grounding) == ("defer", 0.0)
    assert result.as_json()["reason"] == _REASON
    assert RetrieveResult.from_json(result.as_json()).reason == _REASON


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How was my July?", "lighthouse"),
        ("How was my July?", "jazz"),
        ("What did I do in August?", "Portugal"),
        ("What happened on May 20?", "recital"),
        ("What did I do on Saturday?", "dentist"),
        ("What are my plans for tomorrow?", "dentist"),
        ("What do I have on Thursday?", "yoga"),
        ("What did I buy in June?", "bicycle"),
        ("Where did I live in July?", "Oslo"),
        ("Where did I live in August?", "Oslo"),
    ],
)
def test_what_was_said_in_a_time_tells_of_it_or_held_then_is_found(memory: Recollect, question: str, text: str) -> None:
    result = memory.retrieve("ann", question)
    assert text in _texts(result)
    assert result.reason is None


#: A chat with times that are longer than those asked for.
_TIMES = (
    ("2023-02-01T09:00:00+01:00", "I lived in Ghent from 2016 to 2020."),
    ("2023-02-02T09:00:00+01:00", "I've worked at Siemens since 2012."),
    ("2023-02-03T09:00:00+01:00", "I drove a green Golf until 2021."),
    ("2023-02-04T09:00:00+01:00", "We were in Japan from December 20 to January 10."),
    ("2023-02-05T09:00:00+01:00", "This year I read 4 books, the last was Circe."),
    ("2023-08-05T09:00:00+02:00", "I was on vacation in Crete from July 3 to July 17."),
    ("2023-09-05T09:00:00+02:00", "Last month we were camping in Norway."),
    ("2023-09-06T09:00:00+02:00", "Tom came on June 2 and left on June 9."),
)


@pytest.fixture(scope="module")
def times(tmp_path_factory: pytest.TempPathFactory) -> Generator[Recollect]:
    with Recollect(tmp_path_factory.mktemp("longer"), workers=False, clock=lambda: _ASKED_AT) as memory:
        # What no rule reads is read by the model.
        memory.parts.vectors.embedder.start()
        assert memory.parts.vectors.embedder.wait_ready(300)
        for sent_at, text in _TIMES:
            memory.append("ann", _message(text, sent_at))
        memory.settle("ann")
        yield memory


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where did I live in 2018?", "Ghent"),
        ("Where did I work in 2014?", "Siemens"),
        ("Which car did I drive in 2015?", "Golf"),
        ("Where was I on January 1?", "Japan"),
        ("Where was I on July 10?", "Crete"),
        ("What did I do on August 20?", "Norway"),
    ],
)
def test_a_time_is_told_of_by_a_longer_one_around_it(times: Recollect, question: str, text: str) -> None:
    result = times.retrieve("ann", question)
    assert text in _texts(result)
    assert result.reason is None


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where did I live in 2014?", "Ghent"),
        ("Where did I work in 2010?", "Siemens"),
        ("Which car did I drive in 2022?", "Golf"),
    ],
)
def test_a_time_outside_of_a_stated_one_is_not_told_of_by_it(times: Recollect, question: str, text: str) -> None:
    assert text not in _texts(times.retrieve("ann", question))


@pytest.mark.parametrize(
    "question", ["What did I do on July 20?", "What did I do on April 20?", "What did I do on June 5?"]
)
def test_a_day_outside_of_all_stated_times_has_no_memory(times: Recollect, question: str) -> None:
    result = times.retrieve("ann", question)
    assert (_texts(result), result.reason) == ("", _REASON)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How many books by March 1?", "Middlemarch"),
        ("Which tasks are due on October 31?", "tax"),
        ("What is the deadline of December 5 for the tax return?", "tax"),
        ("What did I buy before the bicycle on April 10 2023 and in June?", "bicycle"),
        ("Tell me about my March cello lessons", "cello"),
        ("What instrument do I play since March?", "cello"),
        ("Which teacher of March 2023 taught me the cello?", "Jonas"),
    ],
)
def test_a_date_that_belongs_to_a_thing_filters_nothing(memory: Recollect, question: str, text: str) -> None:
    result = memory.retrieve("ann", question)
    assert text in _texts(result)
    assert result.reason is None


def test_a_question_about_a_month_gets_nothing_of_other_months(memory: Recollect) -> None:
    result = memory.retrieve("ann", "How was my July?")
    messages = [item for item in result.items if item.kind == "episode"]
    assert {item.as_json()["occurred_at"][:7] for item in messages} == {"2023-07"}


def test_how_a_month_was_includes_what_began_before_and_still_held(memory: Recollect) -> None:
    facts = [item for item in memory.retrieve("ann", "How was my July?").items if item.kind == "fact"]
    assert 0 < len(facts) <= 3
    assert all(item.occurred_at_us < 1_688_169_600_000_000 for item in facts), "said before July"
    assert not [item for item in memory.retrieve("ann", "What did I do in July?").items if "Oslo" in item.text]


def test_a_year_long_after_the_memory_is_no_reason_for_silence(tmp_path: Path) -> None:
    settings = load_settings(data=tmp_path, embedding_model="none")
    years_later = datetime.fromisoformat("2026-10-16T09:00:00+02:00")
    with Recollect(settings=settings, workers=False, clock=lambda: years_later) as memory:
        memory.append("ann", _message("I bought a red bicycle for 300 euros.", "2023-06-02T17:00:00+02:00"))
        result = memory.retrieve("ann", "Which bicycle did I buy in June?")
        assert "bicycle" in _texts(result), "June of 2026 has nothing, but June of 2023 may be meant"
        assert memory.retrieve("ann", "Which bicycle did I buy in June 2025?").reason == _REASON


def test_without_the_gate_a_time_filters_nothing(memory: Recollect) -> None:
    assert memory.retrieve("ann", "What did I do on March 20?", gate=False).items


def test_in_passive_mode_standing_preferences_still_come(tmp_path: Path) -> None:
    settings = load_settings(data=tmp_path, embedding_model="none")
    with Recollect(settings=settings, workers=False, clock=lambda: _ASKED_AT) as memory:
        for sent_at, text in _CHAT:
            memory.append("ann", _message(text, sent_at))
        rule = {"category": "communication", "key": "language", "value": "answer in English", "strength": 1.0}
        memory.append("ann", {"type": "preference.stated", "payload": rule})
        session: dict[str, Any] = {"mode": "passive", "session_id": "now"}
        asked = memory.retrieve("ann", "What did I do on March 20?", **session)
        assert "answer in English" in asked.context
        assert "Portugal" not in "\n".join(item.text for item in asked.items if "session" not in item.ranks)
        assert asked.reason == _REASON
        told = memory.retrieve("ann", "I will paint the bicycle on March 20.", **session)
        assert told.reason is None, "a message that asks nothing is not limited to its date"


def test_the_tool_of_models_says_the_reason(memory: Recollect) -> None:
    class Session:
        speaker = None

        def retrieve(self, request: Any) -> Any:
            return memory.retrieve("ann", request.query).as_json()

    answer = recall(Session(), RecallArguments(query="What did I do on March 20?"))  # pyright: ignore[reportArgumentType]
    assert answer.text.startswith(f"The memory has nothing about this: {_REASON}.")
    assert (answer.data or {})["reason"] == _REASON


@pytest.mark.parametrize("sent_on", ["2023-10-04", "2023-10-10"])
@pytest.mark.parametrize("question", ["What did I buy last week?", "What happened last week?", "Wie war letzte Woche?"])
def test_last_week_on_a_sunday_may_be_the_week_before_or_the_last_seven_days(
    tmp_path: Path, question: str, sent_on: str
) -> None:
    asked_at = datetime.fromisoformat("2023-10-15T09:00:00+02:00")
    settings = load_settings(data=tmp_path, embedding_model="none")
    with Recollect(settings=settings, workers=False, clock=lambda: asked_at) as memory:
        memory.append("ann", _message("I bought a red canoe.", f"{sent_on}T10:00:00+02:00"))
        memory.append("ann", _message("I bought a lamp.", "2023-08-02T10:00:00+02:00"))
        memory.settle("ann")
        assert "canoe" in _texts(memory.retrieve("ann", question))


@pytest.mark.parametrize(
    "known",
    [
        {"type": "document.added", "payload": {"document_id": "d", "title": "Trips", "text": "- Japan, April 2027"}},
        {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "note", "object": "Japan in April 2027"}},
    ],
)
def test_a_document_or_a_note_that_names_the_time_asked_for_answers(tmp_path: Path, known: dict[str, Any]) -> None:
    settings = load_settings(data=tmp_path, embedding_model="none")
    with Recollect(settings=settings, workers=False, clock=lambda: _ASKED_AT) as memory:
        memory.append("ann", [_message("I bought a red canoe.", "2023-10-10T10:00:00+02:00"), known])
        memory.settle("ann")
        assert "Japan" in _texts(memory.retrieve("ann", "Where am I going in April 2027?"))
        assert not memory.retrieve("ann", "Where am I going in May 2027?").items
