"""What memory states of a person: topic by topic, of this person alone, and only what the request allows."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from support.events import Event, message

from recollect import Recollect
from recollect.api.retrieval.result_items import in_context
from recollect.api.settings import load_settings
from recollect.projections.text.tokens import estimate_tokens

_NAMES = ("Adler", "Birch", "Curie", "Dunn", "Engel", "Frost", "Gale", "Hahn", "Ivory", "Jansen", "Kirk", "Lund")
_QUESTION = "what do you know about me?"


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as opened:
        yield opened


def lived(name: str, home: str) -> list[Event]:
    """Return what a person says of herself, with a label."""
    texts = ["I work as a nurse.", "I am allergic to peanuts.", "I am 34 years old.", "I own a canoe."]
    events = [message(text, name=name, session_id=name) for text in (f"I live in {home}.", *texts)]
    for event in events:
        event["payload"]["metadata"] = {"of": name}
    return events


def test_a_profile_has_the_statements_of_the_person_by_topic(memory: Recollect) -> None:
    memory.append("a", [*lived("Ann", "Porto"), *lived("Anna", "Oslo")])
    memory.settle("a")
    items = memory.retrieve("a", _QUESTION, speaker="Ann").items
    lines = [item.text for item in items]
    stated = ["Ann lives in Porto", "Ann works as nurse", "Ann is allergic to peanuts", "Ann owns a canoe"]
    assert [line for line in lines if line in stated] == stated
    assert sum("34" in line for line in lines) == 1
    assert [item.kind for item in items] == ["fact"] * 5


def test_a_profile_has_the_facts_that_a_caller_stated_without_a_kind(memory: Recollect) -> None:
    things = ("hiking", "chess", "opera", "tea", "rain")
    facts = [{"subject": "user", "predicate": "loves", "object": thing} for thing in things]
    memory.append("a", [{"type": "fact.stated", "payload": fact} for fact in facts])
    assert {item.text for item in memory.retrieve("a", _QUESTION).items} == {f"user loves {thing}" for thing in things}


def test_a_profile_has_the_rules_of_its_asker_once(memory: Recollect) -> None:
    texts = [
        "I live in Porto.",
        "I work as a nurse.",
        "I am allergic to peanuts.",
        "I own a canoe.",
        "Never use emojis.",
    ]
    memory.append("a", [message(text, session_id="s") for text in texts])
    memory.settle("a")
    assert memory.retrieve("a", _QUESTION).context.count("Never use emojis") == 1


def test_a_profile_has_only_what_the_request_allows(memory: Recollect) -> None:
    memory.append("a", lived("Ann", "Porto"))
    memory.settle("a")
    assert not memory.retrieve("a", _QUESTION, speaker="Ann", metadata={"of": "Ben"}).items
    assert not memory.retrieve("a", _QUESTION, speaker="Ann", until="2000-01-01T00:00:00Z").items
    assert len(memory.retrieve("a", _QUESTION, speaker="Ann", limit=2).items) == 2


def test_a_statement_comes_with_the_sentences_that_it_needs_and_once(memory: Recollect) -> None:
    text = "my dentist thinks i grind my teeth. theyre making a splint for 340 euros. what do you think?"
    assert in_context(text, "theyre making a splint") == text.removesuffix(" what do you think?")
    assert (
        in_context("it is. theyre making a splint. one thing.", "theyre making a splint") == "theyre making a splint."
    )
    long = "x" * 150
    assert in_context(f"{long}. I am a nurse. {long}.", "I am a nurse") == "I am a nurse."
    memory.append("a", lived("Ann", "Porto"))
    memory.settle("a")
    first = memory.retrieve("a", "hello, please help me with a letter", speaker="Ann", mode="passive", session_id="new")
    lines = [line for line in first.context.splitlines() if "Porto" in line]
    assert len(lines) == 1


def test_words_that_nobody_said_are_not_shown_as_said(memory: Recollect) -> None:
    [said] = memory.append("a", message("The alarm code of the shop is 9027.", name="Ann", id="m1"))
    changed = {"subject": "Ann", "predicate": "says", "object": "the meeting is on 9027 March", "source_events": ["m1"]}
    memory.append("a", {"type": "fact.stated", "payload": changed})
    memory.settle("a")
    first = memory.retrieve("a", "hello, good morning", speaker="Ann", mode="passive", session_id="new")
    assert said.id == "m1"
    assert "alarm code of the shop is [hidden: code]" in first.context
    assert "9027" not in first.context


def test_a_session_starts_with_300_tokens_at_most(memory: Recollect) -> None:
    texts = [
        f"I have an appointment with Mrs {name} about the insurance of the house on {name} street" for name in _NAMES
    ]
    memory.append("a", [*lived("Ann", "Porto"), *(message(text, name="Ann", session_id="s") for text in texts)])
    memory.settle("a")
    first = memory.retrieve("a", "hello, good morning", speaker="Ann", mode="passive", session_id="new")
    assert "Porto" in first.context
    assert 150 < estimate_tokens(first.context) <= 300
