"""Role play and pronouns over several messages: a play makes no facts, and `he` is a person only when it is certain."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.catalogue.knowledge_events import SAYS

_START = datetime(2026, 3, 2, 10, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Iterable[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as opened:
        yield opened


def facts(memory: Recollect, *batches: list[str], session: str = "s1") -> set[str]:
    """Return the facts of messages, `Name: text` or the user's; each batch is extracted on its own."""
    number = 0
    for batch in batches:
        events: list[dict[str, object]] = []
        for line in batch:
            name, _, text = line.partition(": ") if ": " in line else ("", "", line)
            number += 1
            payload = {"role": "user", "text": text} | ({"name": name} if name else {})
            at = (_START + timedelta(minutes=number)).isoformat()
            events.append({"type": "message.added", "session_id": session, "occurred_at": at, "payload": payload})
        memory.append("n", events)
        memory.settle("n")
    items = memory.list("n", "facts", limit=500)["items"]
    return {f"{item['subject']} {item['predicate']} {item['object']}" for item in items if item["predicate"] != SAYS}


def test_a_role_play_makes_no_facts_until_it_is_ended(memory: Recollect) -> None:
    stated = facts(
        memory,
        ["pretend you are a vampire"],
        ["I live in a castle in Wallachia", "I hate garlic and I'm 300 years old"],
        ["ok game over. I live in Bath"],
        ["I'm 31 years old"],
    )
    assert stated == {"user lives in Bath", "user age is 31"}


def test_a_role_play_ends_with_its_session(memory: Recollect) -> None:
    facts(memory, ["let's pretend I'm a captain", "I live in Atlantis"])
    assert facts(memory, ["I live in Bath"], session="s2") == {"user lives in Bath"}


def test_the_client_of_an_expert_speaks_as_himself(memory: Recollect) -> None:
    assert facts(memory, ["act as my career coach", "I work at Siemens"]) == {"user works at Siemens"}


def test_a_pronoun_is_no_person_of_the_conversation(memory: Recollect) -> None:
    stated = facts(memory, ["my ex lives in Leeds"], ["I'm seeing someone new, she lives in York"])
    assert not any("York" in fact for fact in stated)
    stated = facts(memory, ["Tom: hello", "Ann: my brother is here"], ["Ann: he's a mechanic"])
    assert not any("works as mechanic" in fact for fact in stated)


@pytest.mark.parametrize("end", ["stop", "ok back to normal", "Okay, stop.", "That's enough!", "end of the game"])
@pytest.mark.parametrize(
    "begin",
    [
        "Let's role-play.",
        "You are a waiter and I'm a sailor.",
        "I'll be the patient and you be the doctor.",
        "Let's write a story together.",
        "Pretend you are my landlord.",
    ],
)
def test_what_marks_the_end_of_a_play_ends_it(begin: str, end: str, memory: Recollect) -> None:
    messages = [begin, "I live in Lagos.", "I am a plumber.", end, "I live in Porto."]
    assert facts(memory, messages) == {"user lives in Porto"}


def test_who_ends_a_play_or_speaks_of_one_goes_on_as_himself(memory: Recollect) -> None:
    stated = facts(
        memory,
        ["lets roleplay. you're a barkeep, im a dwarf"],
        ["I live under the mountain"],
        ["ok stop the roleplay. I live in Bath"],
        ["We go roleplaying with friends. I work at Siemens"],
    )
    assert stated == {"user lives in Bath", "user works at Siemens"}
