"""After compaction a retrieval returns the messages that summaries stand for, exactly as they were said."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.events import Event, message

from recollect import Recollect
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.settings import load_settings
from recollect.events.validation import drafts

#: The first day of the conversations, and the time of the questions.
_START = datetime(2026, 1, 5, 9, tzinfo=UTC)
_NOW = _START + timedelta(days=60)
#: Three sessions, a week apart: the user's messages with answers between them.
_SESSIONS: tuple[tuple[str, ...], ...] = (
    (
        "The boiler shows F28, the technician wants the serial number, it is 21174500100.",
        "Is the gas tap open?",
        "Yes it is. He comes on Thursday, his name is Mirko.",
        "I hope that it is warm again by then.",
    ),
    (
        "We have two offers for the roof: Ferreira wants 18,400 and Norte 16,950.",
        "What is included in each?",
        "Ferreira includes the scaffold, so we go with Ferreira.",
        "A good decision.",
    ),
    (
        "Our dog Rex ate a whole loaf of bread.",
        "Did he look sorry?",
        "Not at all. The vet says that he may have 300 grams of food a day.",
        "Poor Rex.",
    ),
)


def turn_events() -> list[Event]:
    return [
        message(
            text,
            id=f"m{session}{number}",
            session_id=f"s{session}",
            role="assistant" if number % 2 else "user",
            occurred_at=_START + timedelta(days=7 * session, minutes=number),
        )
        for session, texts in enumerate(_SESSIONS)
        for number, text in enumerate(texts)
    ]


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        memory.append("a", turn_events())
        memory.settle("a", now=_START + timedelta(days=15))
        yield memory


def compacted(memory: Recollect) -> Recollect:
    for days in (2, 10, 30):
        memory.compact("a", now=_START + timedelta(days=days))
    tiers = memory.tiers("a")
    assert (tiers["raw"].episodes, tiers["distilled"].episodes) == (0, 3)
    return memory


def ask(memory: Recollect, query: str, **options: Any) -> RetrieveResult:
    return memory.retrieve("a", query, until=_NOW, gate=False, **options)


@pytest.mark.parametrize(
    ("query", "id"),
    [
        ("What is the serial number of the boiler?", "m00"),
        ("Who includes the scaffold?", "m12"),
        ("How many grams of food may Rex have?", "m22"),
    ],
)
def test_the_message_with_the_answer_comes_first_as_it_was_said(memory: Recollect, query: str, id: str) -> None:
    text = {event["id"]: event["payload"]["text"] for event in turn_events()}[id]
    first = ask(compacted(memory), query).items[0]
    assert (first.id, first.text, first.source_events) == (id, text, (id,))
    assert first.tier == "distilled"
    assert first.summary_id in {row["id"] for row in memory.episodes("a")["items"]}


def test_the_context_is_the_same_as_before_compaction(memory: Recollect) -> None:
    queries = ["the serial number", "which offer for the roof?", "What did Rex eat?", "When does Mirko come?"]
    before = [ask(memory, query) for query in queries]
    compacted(memory)
    after = [ask(memory, query) for query in queries]
    assert [result.context for result in after] == [result.context for result in before]
    assert [[item.id for item in result.items] for result in after] == [
        [item.id for item in result.items] for result in before
    ]


def test_turns_that_were_read_once_are_ranked_as_at_first_until_they_are_erased(memory: Recollect) -> None:
    compacted(memory)
    query = "What is the serial number of the boiler?"
    first, again = ask(memory, query), ask(memory, query)
    assert [(item.id, item.text, item.score) for item in again.items] == [
        (item.id, item.text, item.score) for item in first.items
    ]
    assert again.context == first.context

    memory.erase("a", event_ids=["m00"])
    after = ask(memory, query)
    assert "m00" not in {item.id for item in after.items}
    assert "21174500100" in first.context
    assert "21174500100" not in after.context


def test_a_summary_beside_its_sources_is_not_an_item(memory: Recollect) -> None:
    memory.compact("a", now=_START + timedelta(days=3))
    assert memory.tiers("a")["compressed"].episodes == 1
    assert {item.tier for item in ask(memory, "the serial number of the boiler").items} == {"raw"}


def test_a_message_that_was_invalidated_after_its_summary_is_not_read_back(memory: Recollect) -> None:
    compacted(memory)
    memory.append("a", {"type": "memory.invalidated", "payload": {"memory_id": "m00"}})
    result = ask(memory, "serial number of the boiler", expand=True)
    assert "m00" not in {item.id for item in result.items}
    assert "21174500100" not in result.context
    assert "m00" not in {source.id for item in result.items for source in item.sources}


def test_the_times_of_a_request_are_those_of_the_messages(memory: Recollect) -> None:
    compacted(memory)
    since = _START + timedelta(minutes=1, seconds=30)
    ids = {item.id for item in ask(memory, "boiler serial number technician Mirko Thursday", since=since).items}
    assert "m02" in ids
    assert not {"m00", "m01"} & ids
    within = {item.id for item in ask(memory, "Rex Ferreira Mirko", session_id="s1").items}
    assert within
    assert all(id.startswith("m1") for id in within)


def test_the_messages_come_from_the_archive_too(memory: Recollect) -> None:
    compacted(memory)
    log = memory.parts.log
    assert log.archive is not None
    log.archive.seal(log, "a", min_events=1)
    assert log.prune("a") > len(turn_events())
    assert ask(memory, "serial number of the boiler").items[0].id == "m00"


def test_a_memory_of_the_past_shows_what_its_summaries_stand_for(memory: Recollect) -> None:
    compacted(memory)
    version = memory.retrieve("a", "x").version
    memory.append("a", message("The serial number of the new boiler is 7.", id="new", occurred_at=_NOW))
    first = ask(memory, "serial number of the boiler", as_of=version).items[0]
    assert (first.id, first.tier) == ("m00", "distilled")


def test_a_summary_whose_sources_are_unknown_is_an_item_itself(memory: Recollect) -> None:
    payload = {"text": "They talked about a lighthouse.", "source_events": ["elsewhere"]}
    summary = {"type": "episodes.compressed", "session_id": "s9", "occurred_at": _START, "payload": payload}
    # A log from another system may hold a summary without its messages.
    memory.parts.log.append("a", drafts([summary]))
    assert ask(memory, "the lighthouse").items[0].text == "They talked about a lighthouse."


def test_a_fact_says_when_it_was_said_though_its_message_has_expired(memory: Recollect) -> None:
    memory.append("a", message("I work as a nurse.", session_id="s2", occurred_at=_START + timedelta(days=14, hours=1)))
    memory.settle("a")
    [before] = ask(memory, "nurse", kinds=["fact"]).items
    [after] = ask(compacted(memory), "nurse", kinds=["fact"]).items
    assert before.stated_at_us == after.stated_at_us
    assert after.stated_at_us is not None
