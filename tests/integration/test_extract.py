"""The extraction job: each message is read once, whoever runs it, and what is read is an event."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.events import Event, message

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.envelope import microseconds
from recollect.jobs.extraction import extraction_job
from recollect.jobs.extraction.extraction_job import extract
from recollect.jobs.extraction.rule_extractor import ExtractedItem, IncomingMessage, extract_by_rules
from recollect.projections.text.prompt_fence import fence

_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
_SOON_US = microseconds(_START + timedelta(minutes=2))
_LATER_US = microseconds(_START + timedelta(days=1))


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    settings = load_settings(data=tmp_path, embedding_model="none")
    with Recollect(settings=settings, workers=False) as memory:
        yield memory


def said(text: str, *, name: str = "Ann", **fields: Any) -> Event:
    return message(text, name=name, session_id="s1", occurred_at=_START, **fields)


def facts(memory: Recollect) -> list[tuple[str, str, str]]:
    return [(one["subject"], one["object"], one["status"]) for one in memory.facts("a")["items"]]


def test_what_is_read_names_its_message_and_is_read_once(memory: Recollect) -> None:
    memory.append("a", [said("Hello!", id="m1"), said("I live in Porto.", id="m2")])
    assert extract(memory.parts.job_context, "a", _SOON_US) == 1
    (fact,) = memory.facts("a")["items"]
    assert (fact["predicate"], fact["object"], fact["source_events"]) == ("lives in", "Porto", ["m2"])
    assert extract(memory.parts.job_context, "a", _SOON_US) == 0


def test_two_at_once_append_what_one_would(memory: Recollect) -> None:
    memory.append("a", [said(f"I live in Porto, house {at}.") for at in range(400)])
    done: list[int] = []
    threads = [
        threading.Thread(target=lambda: done.append(extract(memory.parts.job_context, "a", _SOON_US))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = [event for event in memory.parts.log.read("a", after=400, limit=100) if event.type == "facts.extracted"]
    assert sum(done) == len(events) == 4
    assert memory.check("a").is_equal


def test_a_correction_finds_what_was_read_in_an_earlier_run(memory: Recollect) -> None:
    memory.append("a", said("I live in Porto."))
    extract(memory.parts.job_context, "a", _SOON_US)
    memory.append("a", said("Sorry, I meant Lisbon, not Porto."))
    extract(memory.parts.job_context, "a", _SOON_US)
    assert facts(memory) == [("Ann", "Porto", "superseded"), ("Ann", "Lisbon", "active")]
    memory.append("a", said("I live in Porto."))
    extract(memory.parts.job_context, "a", _SOON_US)
    assert [one for one in facts(memory) if one[2] == "active"] == [("Ann", "Lisbon", "active")]


def test_a_message_that_takes_too_long_is_left_out_with_a_warning_and_not_read_again(
    memory: Recollect, caplog: pytest.LogCaptureFixture
) -> None:
    memory.append("a", said("I live in Porto. " * 100, id="m1"))
    assert extract(memory.parts.job_context, "a", _SOON_US, seconds_max=0) == 1
    assert "took too long" in caplog.text
    assert "Porto" not in caplog.text
    assert facts(memory) == []
    assert extract(memory.parts.job_context, "a", _SOON_US) == 0


def test_a_stop_between_two_messages_leaves_them_to_the_next_process(memory: Recollect) -> None:
    memory.append("a", said("I live in Porto."))
    memory.parts.job_context.stop.set()
    assert extract(memory.parts.job_context, "a", _SOON_US) == 0
    memory.parts.job_context.stop.clear()
    assert extract(memory.parts.job_context, "a", _SOON_US) == 1


def test_of_a_long_message_the_beginning_and_the_end_are_read(memory: Recollect) -> None:
    filler = "The committee met and said nothing of interest. "
    text = "I live in Porto. " + filler * 500 + "I work at Siemens. " + filler * 500 + "My name is Ann Lee."
    memory.append("a", said(text))
    extract(memory.parts.job_context, "a", _LATER_US)
    assert {one[1] for one in facts(memory)} == {"Porto", "Ann Lee"}


def test_each_speaker_is_somebody_else(memory: Recollect) -> None:
    memory.append("a", [said("I live in Porto."), said("I live in Oslo.", name="Bob")])
    extract(memory.parts.job_context, "a", _SOON_US)
    assert facts(memory) == [("Ann", "Porto", "active"), ("Bob", "Oslo", "active")]


def test_tools_systems_and_assistants_tell_nothing_about_themselves(memory: Recollect) -> None:
    roles = ("system", "tool:search", "assistant")
    memory.append("a", [message("I live in Porto.", role=role, occurred_at=_START) for role in roles])
    memory.append("a", message("I live in Porto. Always answer in French.", role="assistant", name="HelperBot"))
    extract(memory.parts.job_context, "a", _LATER_US)
    assert facts(memory) == []
    assert memory.list("a", "preferences")["items"] == []


def test_the_turns_of_one_message_are_those_of_their_speakers(memory: Recollect) -> None:
    turns = [
        {"role": "user", "text": "I live in Porto."},
        {"role": "assistant", "text": "I live in Oslo."},
        {"role": "user", "name": "Bob", "text": "I live in Bergen."},
        {"role": "tool:search", "text": "I live in Rome."},
    ]
    payload = {"role": "user", "name": "Ann", "turns": turns}
    memory.append("a", {"type": "message.added", "payload": payload, "occurred_at": _START})
    extract(memory.parts.job_context, "a", _LATER_US)
    assert facts(memory) == [("Ann", "Porto", "active"), ("Bob", "Bergen", "active")]


def test_recalled_memory_that_comes_back_is_not_read_again(memory: Recollect) -> None:
    memory.append("a", said(fence(["I live in Porto."]) + "\nGood morning."))
    extract(memory.parts.job_context, "a", _LATER_US)
    assert facts(memory) == []


def test_idle_talk_does_not_fill_the_log_and_is_not_read_for_ever(memory: Recollect) -> None:
    memory.append("a", [said("Good morning.") for _ in range(99)])
    assert extract(memory.parts.job_context, "a", _LATER_US) == 0
    memory.append("a", said("Good night."))
    assert extract(memory.parts.job_context, "a", _LATER_US) == 1
    assert extract(memory.parts.job_context, "a", _LATER_US) == 0


def test_questions_and_dates_wait_until_the_conversation_is_quiet(memory: Recollect) -> None:
    memory.append("a", said("Did you see the storm yesterday?"))
    assert extract(memory.parts.job_context, "a", _SOON_US) == 0
    assert extract(memory.parts.job_context, "a", _LATER_US) == 1
    assert memory.list("a", "questions")["items"][0]["text"] == "Did you see the storm yesterday?"
    assert memory.list("a", "dates")["items"][0]["start"] == "2026-01-04T00:00:00Z"


def test_what_waits_for_further_items_is_read_once_and_recorded_with_them(
    memory: Recollect, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def reads(message: IncomingMessage, *rest: Any, **options: Any) -> Iterator[ExtractedItem]:
        read.append(message.event_id)
        return extract_by_rules(message, *rest, **options)

    monkeypatch.setattr(extraction_job, "extract_by_rules", reads)
    for id, text in (("m1", "Good morning."), ("m2", "Did you see the storm yesterday?"), ("m3", "I live in Porto.")):
        memory.append("a", said(text, id=id))
        extract(memory.parts.job_context, "a", _SOON_US)
    assert read == ["m1", "m2", "m3"]
    assert facts(memory) == [("Ann", "Porto", "active")]
    assert memory.list("a", "questions")["items"][0]["text"] == "Did you see the storm yesterday?"


@pytest.mark.parametrize("erased", [True, False])
def test_what_waits_is_not_recorded_when_its_message_is_erased_or_forgotten(memory: Recollect, erased: bool) -> None:
    memory.append("a", said("Did you see the storm yesterday?", id="m1"))
    assert extract(memory.parts.job_context, "a", _SOON_US) == 0
    if erased:
        memory.erase("a", event_ids=["m1"], reason="asked")
    else:
        memory.forget("a", "m1")
    memory.append("a", said("I live in Porto."))
    assert extract(memory.parts.job_context, "a", _LATER_US) == 1
    assert memory.list("a", "questions")["items"] == memory.list("a", "dates")["items"] == []
    assert facts(memory) == [("Ann", "Porto", "active")]


def test_nothing_that_is_said_stops_the_reading_for_good(memory: Recollect) -> None:
    huge = "a" * 5_000
    memory.append("a", [said(f"My favourite {huge} is {huge}. I like {huge}."), said("Why " + "so " * 9_000 + "?")])
    memory.append("a", [said("Yesterday. " * 20_000), said(f"My sister B{huge} is here."), said("I live in Porto.")])
    memory.append("a", said("I live in Faro.", name="N" * 200))
    memory.append("a", said("My sister works as a nurse.", name="N" * 200))
    extract(memory.parts.job_context, "a", _LATER_US)
    assert {one[1] for one in facts(memory)} == {"Porto", "Faro"}
    assert extract(memory.parts.job_context, "a", _LATER_US) == 0
