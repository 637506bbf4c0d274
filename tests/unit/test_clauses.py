"""Clauses: the parts of a sentence in order, without overlaps, each in the words of the sentence."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.jobs.extraction.clauses import clauses

_PIECES = (
    "I live in Porto|my sister is a nurse|could you help me|and|but|so|because|which|who is 53|, |; |: | - |—|...|! |? "
    "|. |please|und ich|y mi|我住在|，|。|  |\n|'|\u0301"
).split("|")
_SENTENCES = st.lists(st.sampled_from(_PIECES) | st.text(max_size=6), max_size=30).map(" ".join)


@given(_SENTENCES | st.text(max_size=200))
def test_clauses_are_parts_of_the_sentence_in_order_and_do_not_overlap(sentence: str) -> None:
    parts = clauses(sentence)
    assert all(part.text and sentence[part.start : part.end] == part.text for part in parts)
    assert all(first.end <= second.start for first, second in pairwise(parts))


@given(_SENTENCES)
def test_a_clause_has_no_space_around_it(sentence: str) -> None:
    assert all(part.text == part.text.strip(" ,;:—–") for part in clauses(sentence))


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        (
            "I'm turning 45, so could you help me plan a party?",
            ["I'm turning 45", "could you help me plan a party?"],
        ),
        (
            "I have a sore knee and I run every day - what should I do?",
            ["I have a sore knee", "I run every day", "what should I do?"],
        ),
        ("We moved to Oslo, can you recommend a school?", ["We moved to Oslo", "can you recommend a school?"]),
        ("I work nights; what helps against tiredness?", ["I work nights", "what helps against tiredness?"]),
        ("Ich habe zwei Kinder, kannst du mir helfen?", ["Ich habe zwei Kinder", "kannst du mir helfen?"]),
        ("I bought bread, milk and eggs.", ["I bought bread, milk and eggs."]),
        ("Tom and Mia live in Bath.", ["Tom and Mia live in Bath."]),
    ],
)
def test_a_request_after_a_statement_is_a_clause_of_its_own(sentence: str, parts: list[str]) -> None:
    assert [part.text for part in clauses(sentence)] == parts


@pytest.mark.parametrize("sentence", ["", " ", ",", " - ", "and", "..."])
def test_a_sentence_without_words_has_no_clause_of_signs(sentence: str) -> None:
    assert all(any(char.isalnum() for char in part.text) or part.text == "..." for part in clauses(sentence))
