"""A life of 200 statements over three years with 40 changes: the state of every fact after each change.

The statements are sentences, so extraction, endings, the timeline of facts and the projection take part. They arrive in
order first; then the same life arrives in another order, and the state is the same.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import Struct
from support.events import Event

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.catalogue.knowledge_events import SAYS

_START = datetime(2023, 1, 2, 9, tzinfo=UTC)
_STATEMENTS = 200

State = dict[str, str | None]


class Change(Struct, frozen=True, kw_only=True):
    """A sentence that changes what holds."""

    text: str
    #: The facts after it, by predicate or by predicate and object; None: it no longer holds.
    now: State


def _to(predicate: str, text: str, object: str) -> Change:
    return Change(text=text, now={predicate: object})


def _over(predicate: str, text: str) -> Change:
    return Change(text=text, now={predicate: None})


_CHANGES = [
    _to("lives in", "I live in Lyon.", "Lyon"),
    _to("works at", "I work at Siemens.", "Siemens"),
    _to("works as", "I work as a welder.", "welder"),
    _to("diet is", "I am vegetarian.", "vegetarian"),
    _to("dating", "I am dating Radu.", "Radu"),
    _to("phone is", "My phone number is 0664 5550182.", "0664 5550182"),
    _to("rent is", "My rent is 640 euros.", "640 euros"),
    _to("favourite colour is", "My favourite colour is blue.", "blue"),
    _to("owns a red bike", "I own a red bike.", "a red bike"),
    _to("has pet dog named Rex", "I have a dog named Rex.", "dog named Rex"),
    _to("plays tennis", "I play tennis.", "tennis"),
    _to("age is", "I am 30 years old.", "30"),
    _to("lives in", "I just moved to Nantes.", "Nantes"),
    _to("rent is", "My landlord raised the rent to 690 euros.", "690 euros"),
    _to("phone is", "I got a new phone number, it's 0677 5559430.", "0677 5559430"),
    Change(text="I quit my job, handed in my notice today.", now={"works at": None, "works as": None}),
    _to("works at", "I started working at Bosch.", "Bosch"),
    _to("works as", "I am now a teacher.", "teacher"),
    _over("diet is", "I'm not vegetarian anymore."),
    _over("dating", "Radu and I split up."),
    _to("favourite colour is", "My favourite color is green.", "green"),
    _over("owns a red bike", "My bike was stolen."),
    _to("age is", "I just turned 31.", "31"),
    _to("owns a black Vespa", "I bought a black Vespa.", "a black Vespa"),
    _over("plays tennis", "I don't play tennis any more."),
    _to("plays chess", "I play chess.", "chess"),
    _to("dating", "I am seeing Joaquín.", "Joaquín"),
    _to("has children", "I have two kids.", "two kids"),
    _over("has pet dog named Rex", "My dog Rex died last night."),
    _to("lives in", "We have moved to Porto.", "Porto"),
    _to("rent is", "Our rent is 800 euros.", "800 euros"),
    _to("diet is", "I have become vegan.", "vegan"),
    _over("owns a black Vespa", "I sold the Vespa."),
    _to("has children", "I have three kids.", "three kids"),
    _to("works at", "I work for Renault.", "Renault"),
    Change(text="I just got married to Joaquín.", now={"married to": "Joaquín", "dating": None}),
    _to("age is", "I turned 32.", "32"),
    _to("lives in", "I live in Lyon.", "Lyon"),
    _over("phone is", "Forget my phone number."),
    Change(text="I got laid off last week.", now={"works at": None, "works as": None}),
]
#: Sentences that change nothing: small talk, what still holds, what is asked, imagined, or told of others.
_TALK = [
    "The weather is lovely today.",
    "Should I quit my job?",
    "I would move to Rome if I could.",
    "My brother Karl lives in Bergen.",
    "What could I cook tonight?",
    "He said I sold the house.",
    "Thanks, that helps a lot!",
    "Anna broke up with Tom.",
    "The train was late again.",
    "I wish I had a boat.",
]
#: What a person says again and again; only what holds at the time is drawn.
_CONFIRMATIONS = {
    ("lives in", "Lyon"): "I live in Lyon.",
    ("lives in", "Nantes"): "I still live in Nantes.",
    ("works at", "Siemens"): "I work at Siemens.",
    ("favourite colour is", "green"): "My favourite colour is green.",
    ("plays chess", "chess"): "I play chess.",
    ("diet is", "vegan"): "I am vegan.",
}


class Said(Struct, frozen=True, kw_only=True):
    """A statement of the life, and what holds after it."""

    event: Event
    state: State
    changes: bool


def life() -> Iterator[Said]:
    """Yield the statements of three years: 40 changes, and 160 others drawn with a fixed seed."""
    draw = random.Random(14)
    places = sorted(draw.sample(range(_STATEMENTS), len(_CHANGES)))
    changes = dict(zip(places, _CHANGES, strict=True))
    state: State = {}
    for number in range(_STATEMENTS):
        change = changes.get(number)
        if change is not None:
            state = state | change.now
            text = change.text
        else:
            held = [text for key, text in _CONFIRMATIONS.items() if state.get(key[0]) == key[1]]
            text = draw.choice([*_TALK, *held])
        at = _START + timedelta(days=5.45 * number)
        payload = {"role": "user", "name": "Ann", "text": text}
        event = {"type": "message.added", "id": f"m{number}", "session_id": f"s{number}", "occurred_at": at.isoformat()}
        yield Said(event=event | {"payload": payload}, state=dict(state), changes=change is not None)


def facts_of_ann(memory: Recollect, namespace: str) -> State:
    """Return the active facts about Ann, by predicate, or by predicate and object where several can hold."""
    state: State = {}
    for fact in memory.facts(namespace, limit=1_000)["items"]:
        # `has a landlord` is implied by `my landlord`.
        is_stated = fact["subject"] == "Ann" and fact["status"] == "active" and fact["predicate"] not in ("has", SAYS)
        if is_stated and fact["type"] == "fact":
            several = fact["predicate"] in ("owns", "plays", "has pet")
            state[f"{fact['predicate']} {fact['object']}" if several else fact["predicate"]] = fact["object"]
    return state


def holding(state: State) -> State:
    """Return what holds, with one spelling of each predicate."""
    return {key: value for key, value in state.items() if value is not None}


def same_spelling(state: State) -> State:
    """Return a state with British spelling."""
    return {key.replace("favorite", "favourite").replace("color", "colour"): value for key, value in state.items()}


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


def test_every_fact_is_right_after_each_change(memory: Recollect) -> None:
    said = list(life())
    assert sum(one.changes for one in said) == 40
    unread: list[Event] = []
    for one in said:
        unread.append(one.event)
        if one.changes:
            memory.append("ann", unread)
            memory.settle("ann", now="2026-06-01T00:00:00Z")
            unread = []
            assert same_spelling(facts_of_ann(memory, "ann")) == holding(one.state), one.event["payload"]["text"]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_arrival_changes_nothing(seed: int, memory: Recollect) -> None:
    said = list(life())
    events = [one.event for one in said]
    random.Random(seed).shuffle(events)
    # A request to forget is about what has arrived.
    events.sort(key=lambda event: event["payload"]["text"].startswith("Forget"))
    for start in range(0, len(events), 40):
        memory.append("ann", events[start : start + 40])
        memory.settle("ann", now="2026-06-01T00:00:00Z")
    assert same_spelling(facts_of_ann(memory, "ann")) == holding(said[-1].state)
    assert memory.check("ann").is_equal


def test_the_history_of_the_home_has_every_home_in_turn(memory: Recollect) -> None:
    memory.append("ann", [one.event for one in life()])
    memory.settle("ann", now="2026-06-01T00:00:00Z")
    home = next(
        fact
        for fact in memory.facts("ann", limit=1_000)["items"]
        if fact["predicate"] == "lives in" and fact["subject"] == "Ann"
    )
    homes = memory.fact_history("ann", home["id"])["items"]
    assert [(fact["object"], fact["status"]) for fact in homes] == [
        ("Lyon", "superseded"),
        ("Nantes", "superseded"),
        ("Porto", "superseded"),
        ("Lyon", "active"),
    ]
    assert [fact["valid_until"] for fact in homes[:-1]] == [fact["valid_from"] for fact in homes[1:]]
