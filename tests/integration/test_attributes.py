"""Attributes of everyday life: what is said in passing is a fact, and a change is one about the thing before."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.jobs.extraction.conversation_state import Conversation
from recollect.jobs.extraction.rule_extractor import IncomingMessage, extract_by_rules
from recollect.projections.queries.knowledge_queries import PriorStatement

_SENT_AT = datetime(2026, 3, 2, 10, tzinfo=UTC)


def statements(*said: str) -> list[str]:
    """Return the facts of the user's messages, in order."""
    before: list[PriorStatement] = []
    conversation = Conversation()
    facts: list[str] = []
    for number, text in enumerate(said):
        message = IncomingMessage(f"m{number}", "s1", "user", text, _SENT_AT, is_assistant=False)
        for kind, item in extract_by_rules(message, before, conversation=conversation):
            if kind == "facts":
                facts.append(f"{item['subject']} {item['predicate']} {item['object']}")
    return facts


@pytest.mark.parametrize(
    ("said", "last"),
    [
        (["rent is 2400 a month", "from July it's 2790"], "user rent is 2790"),
        (["the rent is 900", "he wants 990 now"], "user rent is 990"),
        (["electricity is 95 a month", "they raised it to 120"], "user electricity cost is 120"),
        (["lessons are £25 each", "she charges 30 now"], "user lesson cost is 30"),
        (["we're now paying 40 a month for the gym"], "user gym cost is 40 a month"),
        (["i get 14,50 an hour", "from march i get 15,80"], "user wage is 15,80"),
        (
            ["dentist is on 5 March at 10", "the dentist moved it to 19 March"],
            "user dentist appointment is on 19 March",
        ),
        (
            ["dentist is on 5 March at 10", "dentist is ill, new date is 26 March 8:30"],
            "user dentist appointment is on 26 March 8:30",
        ),
        (["exam is on the 12th", "they moved the exam to the 14th"], "user exam is on the 14th"),
        (["my interview got moved to Thursday"], "user interview is on Thursday"),
        (["physio every wednesday at 6"], "user physio appointment is every wednesday at 6"),
        (["my teacher is called señor Berruti"], "user teacher is señor Berruti"),
        (["my flatmate is called Bex"], "user has a flatmate named Bex"),
        (["the wifi is under Mum's name"], "user wifi is under Mum's name"),
        (["I moved the insurance to Allianz"], "user insurance is with Allianz"),
        (["our office is in Cork", "we moved the office to Limerick"], "user office is in Limerick"),
        (["the car is a 2014 Polo"], "user car is a 2014 Polo"),
        (["i weigh 68 kilos"], "user weight is 68 kilos"),
    ],
)
def test_what_is_said_in_passing_is_a_fact(said: list[str], last: str) -> None:
    assert statements(*said)[-1] == last


@pytest.mark.parametrize(
    "said",
    [
        ["it's 950"],
        ["I have a dog", "from July it's 950"],
        ["rent is 900", "I love jazz", "I like tea", "I live in Bath", "I work at Siemens", "it's 30 now"],
        ["rent is 900", "it's 30 degrees"],
        ["rent is 900", "it's 10 minutes away"],
        ["they moved it to 19 March"],
        ["the meeting is at 9"],
        ["my test is today"],
        ["what if the rent is 900?"],
        ["if insurance is 312 a year I'll cancel"],
    ],
)
def test_a_value_without_a_certain_thing_is_no_fact(said: list[str]) -> None:
    values = ("950", " 30", "10 min", "19 March", "is at 9", "today", "312")
    assert not any(value in fact for fact in statements(*said) for value in values)


def test_a_cancelled_appointment_ends() -> None:
    message = IncomingMessage("m1", "s1", "user", "recital is cancelled", _SENT_AT, is_assistant=False)
    endings = [item for kind, item in extract_by_rules(message, []) if kind == "endings"]
    assert [item["predicates"] for item in endings] == [["recital is"]]


def test_leaving_a_gym_is_not_leaving_a_job() -> None:
    message = IncomingMessage("m1", "s1", "user", "we quit the gym", _SENT_AT, is_assistant=False)
    endings = [item for kind, item in extract_by_rules(message, []) if kind == "endings"]
    assert endings
    assert not any("works at" in item.get("predicates", ()) for item in endings)


@pytest.mark.parametrize(
    ("said", "habit"),
    [
        ("Ich gehe jeden Dienstag schwimmen.", "gehe jeden Dienstag schwimmen"),
        ("Nado cada mañana en la piscina.", "Nado cada mañana en la piscina"),
        ("Je vais à la piscine tous les mardis.", "vais à la piscine tous les mardis"),
        ("我每周三去游泳。", "每周三去游泳"),
        ("毎週火曜日に泳ぎに行きます。", "毎週火曜日に泳ぎに行きます"),
    ],
)
def test_a_habit_in_another_language_is_a_fact(said: str, habit: str) -> None:
    assert statements(said) == [f"user habitually {habit}"]
