"""Lines of facts, preferences and relationships, as a person would write them."""

from __future__ import annotations

import pytest

from recollect.projections.text.statement_lines import fact_line, preference_line, relationship_line


@pytest.mark.parametrize(
    ("fact", "line"),
    [
        (("Ann", "did", "adopted a greyhound for my son"), "Ann adopted a greyhound for their son"),
        (("Ann", "lives in", "Lisbon"), "Ann lives in Lisbon"),
        (("user", "age is", "30"), "user's age is 30"),
        (("user", "allergic to", "peanuts"), "user is allergic to peanuts"),
        (("Bob", "born in", "Porto"), "Bob was born in Porto"),
        (("Ann", "decided", "go to the US with us"), "Ann decided: go to the US with them"),
        (("Ann", "did", "met friends that I love, I'm sure"), "Ann met friends that they love, they're sure"),
        (("Ann", "has", "an interview at 10 AM"), "Ann has an interview at 10 AM"),
        (("Ann", "studies", "Euclid's Elements Book I"), "Ann studies Euclid's Elements Book I"),
    ],
)
def test_a_fact_is_a_sentence_about_its_subject(fact: tuple[str, str, str], line: str) -> None:
    assert fact_line(*fact) == line


@pytest.mark.parametrize(
    ("preference", "line"),
    [
        (("", "other", "green tea", "likes"), "user likes green tea"),
        (("ann", "other", "my garden", "likes"), "Ann likes their garden"),
        (("", "other", "tea", "Ann's sister dislikes"), "Ann's sister dislikes tea"),
        (("", "communication", "tone", "short"), "communication.tone: short"),
        (("", "formatting", "No emojis", "No emojis"), "formatting: No emojis"),
    ],
)
def test_a_preference_says_whose_it_is(preference: tuple[str, str, str, str], line: str) -> None:
    assert preference_line(*preference) == line


@pytest.mark.parametrize(
    ("relationship", "line"),
    [
        (("user", "colleague", "Dušan"), "user's colleague is Dušan"),
        (("Ann", "boss", "Tom"), "Ann's boss is Tom"),
        (("Ann", "owns", "Rex"), "Ann owns Rex"),
        (("Ann", "works_at", "Siemens"), "Ann works_at Siemens"),
    ],
)
def test_a_relationship_is_a_sentence(relationship: tuple[str, str, str], line: str) -> None:
    assert relationship_line(*relationship) == line
