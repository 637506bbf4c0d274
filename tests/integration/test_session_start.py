"""The first turn of a session, with the default model: what it gets depends on whether memory helps with it."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from support.events import message

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.projections.embeddings.embedder import SentenceEmbedder

_SAID = (
    "my name is Priya and I work at the Botanic Gardens",
    "we're moving to Leith in june, second floor, no lift",
    "the seed catalogue has to be at the printer by friday",
    "my brother Arun broke his wrist on saturday, he's off work",
    "lunch was a sad sandwich",
    "the heating in the greenhouse failed again last night",
    "I finally ordered the new orchid labels, 400 of them",
    "my neighbour plays the trombone at seven in the morning",
    "the tram was full of people with skis",
    "Arun is painting my kitchen green while he waits",
)
_RULE = "please always answer me in metric units"


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory, embedder: SentenceEmbedder) -> Path:
    """The folder of a memory that has read what was said."""
    assert embedder.state == "ready"
    folder = tmp_path_factory.mktemp("settled")
    with Recollect(settings=load_settings(data=folder), workers=False) as memory:
        memory.append("a", [message(text, name="Priya", session_id="old") for text in (*_SAID, _RULE)])
        memory.settle("a")
    return folder


@pytest.fixture
def memory(settled: Path, tmp_path: Path) -> Generator[Recollect]:
    """A memory in a copy of `settled`."""
    with Recollect(settings=load_settings(data=shutil.copytree(settled, tmp_path / "data")), workers=False) as memory:
        yield memory


def first(memory: Recollect, text: str) -> list[str]:
    result = memory.retrieve("a", text, speaker="Priya", mode="passive", session_id="new")
    assert result.degraded == ()
    return [item.text for item in result.items]


@pytest.mark.parametrize(
    "text", ["thank you, that helped me a lot", "that will be all, sleep well", "you made my day, good night"]
)
def test_a_farewell_gets_the_standing_instructions_alone(memory: Recollect, text: str) -> None:
    assert first(memory, text) == [_RULE]


def test_a_greeting_gets_who_the_user_is_and_what_is_planned(memory: Recollect) -> None:
    texts = first(memory, "good morning!")
    assert texts[0] == _RULE
    assert any("Botanic Gardens" in text for text in texts)
    assert any("Leith" in text for text in texts)


def test_a_matter_gets_what_belongs_to_it_and_not_the_rest(memory: Recollect) -> None:
    texts = first(memory, "help me write a card to Arun, he can't use his hand")
    assert _RULE in texts
    assert any("broke his wrist" in text for text in texts)
    assert not [text for text in texts if "trombone" in text or "sandwich" in text or "tram" in text]


def test_what_begins_on_a_future_day_is_no_fact_of_today(memory: Recollect) -> None:
    memory.append("rent", message("my rent is 1450", name="Priya", occurred_at="2026-11-20T10:00:00Z"))
    memory.settle("rent")
    later = message("rent goes up to 1520 from january", name="Priya", occurred_at="2026-11-25T10:00:00Z")
    memory.append("rent", later)
    memory.settle("rent")
    facts = {(item["predicate"], item["object"]): item["status"] for item in memory.list("rent", "facts")["items"]}
    assert not [key for key in facts if key[0] != "says" and "1520" in key[1]]
    assert facts["says", "rent goes up to 1520 from january"] == "active"
    [old] = [status for key, status in facts.items() if "1450" in key[1]]
    assert old == "active"
