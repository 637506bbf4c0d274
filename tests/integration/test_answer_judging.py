"""What an agent answered: recorded with its citations, checked against them, and erased with them."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.events import message

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.errors import NotFound

POLICY = "Flights are booked in second class. Trips over 500 euros need approval by Dana."
NEWS = "Travel: some booked first class flights last year."


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        documents = (("policy", POLICY, "governs"), ("news", NEWS, "mentions"))
        for name, text, relation in documents:
            relations = [{"type": relation, "target": "Travel"}]
            payload = {"document_id": name, "title": name, "text": text, "relations": relations}
            memory.append("kb", {"type": "document.added", "id": f"event-{name}", "payload": payload})
        memory.append("kb", message("I booked the flight to Vienna for 320 euros.", id="m1", name="Ann"))
        yield memory


def failed(memory: Recollect, text: str, *cited: str) -> dict[str, str]:
    """Return the reasons of the checks that an answer has not passed."""
    checks: list[dict[str, Any]] = memory.record_answer("kb", text, cited)["checks"]
    return {check["check"]: check["reason"] for check in checks if not check["passed"]}


def test_an_answer_that_follows_from_what_it_cites_passes(memory: Recollect) -> None:
    assert failed(memory, "Flights are booked in second class.", "policy#0") == {}
    assert failed(memory, "Your flight to Vienna cost 320 euros; over 500 euros Dana approves.", "m1", "policy#0") == {}


@pytest.mark.parametrize(
    ("text", "cited", "check", "reason"),
    [
        ("Second class.", (), "cites", "it cites no memory"),
        ("First class flights were booked.", ("news#0",), "governed", "does not cite what governs the topic: policy"),
        ("Trips over 900 euros need approval by Dana.", ("policy#0",), "grounded", "do not say: Trips over 900 euros"),
        ("Ask Peter for the approval.", ("policy#0",), "grounded", "do not say: Ask Peter"),
    ],
)
def test_an_answer_that_does_not_is_told_why(
    memory: Recollect, text: str, cited: tuple[str, ...], check: str, reason: str
) -> None:
    assert reason in failed(memory, text, *cited)[check]


def test_a_retrieval_names_what_governs_the_topic_of_its_items(memory: Recollect) -> None:
    question = "Who booked first class flights last year?"
    assert memory.retrieve("kb", question, kinds=["document"], limit=1).answer.governing == ("policy",)
    relations = [{"type": "governs", "target": "travel"}, {"type": "supersedes", "target": "policy"}]
    new = {"document_id": "policy-2", "title": "policy", "text": "Trains only.", "relations": relations}
    memory.append("kb", {"type": "document.added", "payload": new})
    result = memory.retrieve("kb", question, kinds=["document"], limit=1)
    assert [item.id for item in result.items] == ["news#0"]
    assert result.answer.governing == ("policy-2",)
    assert failed(memory, "First class flights were booked.", "news#0")["governed"].endswith(": policy-2")
    assert failed(memory, "Trains only.", "policy-2") == {}


def test_an_answer_from_what_no_longer_holds_is_not_current(memory: Recollect) -> None:
    stated = {"subject": "Ann", "predicate": "lives in", "object": "Porto"}
    [fact] = memory.append("kb", {"type": "fact.stated", "payload": stated})
    memory.end("kb", fact.id)
    new = {
        "document_id": "policy-2",
        "title": "policy",
        "text": "x",
        "relations": [{"type": "supersedes", "target": "policy"}],
    }
    memory.append("kb", {"type": "document.added", "payload": new})
    reasons = failed(memory, "Ann lives in Porto.", fact.id, "policy#0")
    assert reasons["current"] == f"no longer holds: {fact.id}, policy"
    plan = {"subject": "Ann", "predicate": "is in", "object": "Rome", "valid_until": "2020-01-01T00:00:00Z"}
    [over] = memory.append("kb", {"type": "fact.stated", "payload": plan})
    assert "no longer holds" in failed(memory, "Ann is in Rome.", over.id)["current"]
    with pytest.raises(NotFound, match="cited"):
        memory.record_answer("kb", "Yes.", ["none"])


@pytest.mark.parametrize("erased", ["m1", "event-policy"])
def test_an_answer_is_erased_with_what_it_cited(memory: Recollect, erased: str) -> None:
    memory.record_answer("kb", "The flight to Vienna cost 320 euros.", ["m1", "policy#0"], trace_id="t1")
    [answer] = [event for event in memory.events("kb")["items"] if event["type"] == "answer.given"]
    assert answer["payload"]["source_events"] == ["m1", "event-policy"]
    memory.erase("kb", event_ids=[erased])
    assert not [event for event in memory.events("kb")["items"] if event["type"] == "answer.given"]
