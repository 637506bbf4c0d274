"""The index of rules by the words that they can begin with."""

from __future__ import annotations

import pytest

from recollect.jobs.extraction.rule_index import RuleIndex, first_words


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
