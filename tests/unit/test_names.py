from __future__ import annotations

import pytest

from recollect.projections.text.names import mentioned_names, names_by_key


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("I met Ann Lee in Lisbon.", ["Ann Lee", "Lisbon"]),
        ("Hey Caroline! How are you?", ["Caroline"]),
        ("Great news from the University of Porto today", ["University of Porto"]),
        ("The weather is nice. Really nice.", []),
        ("Cooking is fun. Running too.", []),
        ("My sister's name is Zoë, she lives near Øresund", ["Zoë", "Øresund"]),
        ("We took Ann's car and Bob’s bike", ["Ann", "Bob"]),
        ("See you on Monday in March", []),
        ("I'm going. I've been there. I'll call", []),
        ("my iPhone and eBay", []),
        ("мы видели Анну в Москве", ["Анну", "Москве"]),
        ("", []),
        ("东京很大", []),
    ],
)
def test_names_are_runs_of_capitalised_words(text: str, names: list[str]) -> None:
    assert mentioned_names(text) == names


def test_one_word_at_the_start_of_a_sentence_is_a_name_when_it_is_known() -> None:
    assert mentioned_names("Biscuit sleeps. Walking helps.") == []
    assert [*names_by_key("Biscuit sleeps. Walking helps.", {"biscuit"}).values()] == ["Biscuit"]


def test_a_word_that_opens_a_sentence_is_no_part_of_a_known_name() -> None:
    assert [*names_by_key("Little Rex barks.", {"rex"}).values()] == ["Rex"]
    assert [*names_by_key("Ann Lee barks.", {"rex"}).values()] == ["Ann Lee"]


def test_a_name_counts_once() -> None:
    assert mentioned_names("with Ann, near Ann, like ANN") == ["Ann"]
