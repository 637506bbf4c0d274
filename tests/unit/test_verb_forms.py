"""Verb forms and the index of rules by first words."""

from __future__ import annotations

import pytest

from recollect.jobs.extraction.rule_index import RuleIndex, first_words
from recollect.jobs.extraction.verb_forms import third_person, verb_forms


def test_regular_and_irregular_verbs_have_their_forms() -> None:
    forms = verb_forms(["adopt", "bake", "study", "jog", "go"], ["go went gone"])
    spellings = {spelling for spelling, form in forms.items() if form.base == "go"}
    assert spellings == {"go", "goes", "went", "gone", "going"}
    assert {"adopted", "adopting", "baked", "baking", "studies", "studied", "studying", "jogged", "jogging"} <= {*forms}
    assert forms["adopted"].forms == {"past", "participle"}


def test_the_third_person_follows_the_spelling() -> None:
    assert [third_person(verb) for verb in ("teach", "study", "play", "have", "do")] == [
        "teaches",
        "studies",
        "plays",
        "has",
        "does",
    ]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("live[s] in {place}", {"live", "lives"}),
        ("(just |recently )?moved to {place}", {"just", "recently", "moved"}),
        ("(am|is) (a|an) {job}", {"am", "is"}),
        ("my name is {name}", {"my"}),
        ("{name} and I married", None),
        (r"quit(?=\W*$)", None),
    ],
)
def test_the_first_words_of_a_pattern_are_those_it_can_begin_with(pattern: str, words: set[str] | None) -> None:
    assert first_words(pattern) == words


def test_a_rule_without_first_words_is_a_candidate_everywhere() -> None:
    index = RuleIndex([(0, "live[s] in {place}"), (1, "{name} and I"), (2, "work[s] at {org}")])
    assert index.candidates_at("I live here", 2) == (0, 1)
    assert index.candidates_at("I sing here", 2) == (1,)
