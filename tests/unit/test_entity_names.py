from __future__ import annotations

import pytest

from recollect.jobs.extraction.entity_names import named_entities
from recollect.projections.text.sentence_language import language_of


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("My sister Anna lives in Porto", [("Anna", "person"), ("Porto", "location")]),
        ("I work at Siemens and my boss is called Tom", [("Siemens", "organization"), ("Tom", "person")]),
        ("My cats are Luna and Oliver", [("Luna", "animal"), ("Oliver", "animal")]),
        ("I met Dr. Garcia at Memorial Hospital", [("Garcia", "person"), ("Memorial Hospital", "organization")]),
        ('We watched "Becoming Nicole" last night', [("Becoming Nicole", "work")]),
        ("Going to the Pride Parade on Saturday", [("Pride Parade", "event")]),
        ("I want to push it to GitHub", [("GitHub", "tool")]),
        ("We moved from Sweden four years ago", [("Sweden", "location")]),
        ("Thanks so much, Caroline", [("Caroline", "person")]),
        ("Charlotte said hi", [("Charlotte", "person")]),
        ("I moved to Charlotte in May", [("Charlotte", "location")]),
        ("Lake Tahoe is cold", [("Lake Tahoe", "location")]),
    ],
)
def test_a_name_has_the_type_that_its_words_and_its_context_say(text: str, entities: list[tuple[str, str]]) -> None:
    assert [(entity.name, entity.type) for entity in named_entities(text)] == entities


@pytest.mark.parametrize(
    "text",
    [
        "Cooking is fun",
        "Thankfully, my son is fine",
        "Losing a pet is tough",
        "See you on Monday in March",
        "Mr and Mrs are titles",
        "### Key Features",
        "Focus on Key Information:",
        "Spanish is hard and I am Italian",
        "Will you come",
        "const Map = new Map({})",
    ],
)
def test_openers_headings_titles_days_and_code_are_no_names(text: str) -> None:
    assert list(named_entities(text)) == []


def test_a_word_of_the_language_is_a_name_when_its_context_says_so() -> None:
    assert [entity.name for entity in named_entities("Poor Rex barks, and my dog Biscuit sleeps")] == ["Rex", "Biscuit"]
    assert list(named_entities("I ate a Biscuit")) == []


def test_an_exclamation_is_no_part_of_a_name() -> None:
    assert [entity.name for entity in named_entities("Woah Joanna, that is great")] == ["Joanna"]


def test_german_nouns_are_no_names() -> None:
    text = "Gestern habe ich im Park mit meinem Hund Katharina getroffen"
    assert [entity.name for entity in named_entities(text, language="de")] == ["Katharina"]


def test_a_name_may_be_that_of_the_pet_in_the_sentence_before() -> None:
    entities = list(named_entities("Her name is Coco", before="I got a puppy two weeks ago"))
    assert [(entity.name, entity.type) for entity in entities] == [("Coco", "animal")]


@pytest.mark.parametrize(
    "text",
    [
        "EUR 300 for the room",
        "Hola, buenos días",
        "Day by day it gets better",
        "It was in March or April",
        "I speak German and Dutch",
        "Bom dia e Obrigado",
        "Am Dienstag habe ich einen Termin beim Arzt",
    ],
)
def test_currencies_greetings_months_and_languages_are_no_names(text: str) -> None:
    assert list(named_entities(text, language=language_of(text) or "")) == []


def test_a_name_typed_without_capitals_is_shown_with_them() -> None:
    entities = list(named_entities("my sister anna lives in porto"))
    assert [(entity.name, entity.type) for entity in entities] == [("Anna", "person"), ("Porto", "location")]
