"""Dietary facts: what people do not eat belongs to the answer of each request for a meal."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from support.events import message

from recollect import Recollect
from recollect.api.settings import load_settings

Tell = Callable[..., None]


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


@pytest.fixture
def tell(memory: Recollect) -> Tell:
    """Append messages of a user, and extract their facts."""

    def tell(*texts: str) -> None:
        memory.append("a", [message(text) for text in texts])
        memory.settle("a")

    return tell


def test_a_request_for_a_recipe_brings_what_the_people_do_not_eat(memory: Recollect, tell: Tell) -> None:
    tell("my son Tom is allergic to peanuts", "Rita avoids dairy", "my sister lives in Oslo")
    result = memory.retrieve("a", "give me a recipe for pancakes")
    assert {item.text for item in result.items} == {"Tom is allergic to peanuts", "Rita avoids dairy"}


def test_a_passive_turn_about_dinner_brings_it_in_the_middle_of_a_session(memory: Recollect, tell: Tell) -> None:
    tell("I'm coeliac", "hi again, just got home")
    memory.append("a", message("back home", session_id="s"))
    result = memory.retrieve("a", "suggest a dinner for tonight", mode="passive", session_id="s")
    # The fact is left out beside the message that it was made of.
    assert {"user's diet is coeliac", "I'm coeliac"} & {item.text for item in result.items}


def test_it_comes_first_among_many_messages_about_food(memory: Recollect, tell: Tell) -> None:
    tell("Tom can't have nuts", *(f"we had soup number {number} for dinner" for number in range(30)))
    result = memory.retrieve("a", "what should we cook for dinner", limit=3)
    assert result.items[0].text == "Tom cannot eat nuts"


def test_other_questions_do_not_bring_it(memory: Recollect, tell: Tell) -> None:
    tell("my son Tom is allergic to peanuts")
    assert memory.retrieve("a", "who invented sushi").items == ()


def test_what_has_ended_stays_away(memory: Recollect, tell: Tell) -> None:
    tell("I'm vegetarian")
    tell("I'm not vegetarian any more")
    assert memory.retrieve("a", "give me a recipe for pancakes").items == ()


@pytest.mark.parametrize(
    ("text", "predicate", "object"),
    [
        ("we keep kosher", "diet is", "kosher"),
        ("Omar only eats halal", "diet is", "halal"),
        ("Lena is intolerant to gluten", "intolerant to", "gluten"),
        ("my mum can't tolerate onions", "cannot eat", "onions"),
        ("my boyfriend can't take ibuprofen", "cannot take", "ibuprofen"),
    ],
)
def test_what_a_person_does_not_eat_is_read_from_the_message(
    memory: Recollect, tell: Tell, text: str, predicate: str, object: str
) -> None:
    tell(text)
    facts = [(fact["predicate"], fact["object"]) for fact in memory.list("a", "facts")["items"]]
    assert [fact for fact in facts if fact[0] != "says"] == [(predicate, object)]


@pytest.mark.parametrize("text", ["I can't have kids", "we can't have the party at home", "we avoid the highway"])
def test_what_is_no_food_is_not_read_as_one(memory: Recollect, tell: Tell, text: str) -> None:
    tell(text)
    # What is worth keeping is kept in words, not as what a person does not eat.
    assert {fact["predicate"] for fact in memory.list("a", "facts")["items"]} <= {"says"}
