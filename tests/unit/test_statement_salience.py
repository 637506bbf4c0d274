"""The statements of a message: incomplete ones are joined to those before them, and passing ones are left out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recollect.jobs.extraction.rule_extractor import IncomingMessage, extract_by_rules
from recollect.jobs.extraction.spoken_sentences import sentences
from recollect.jobs.extraction.statement_reader import read_clauses
from recollect.jobs.extraction.statement_salience import SentencePlace, salience
from recollect.jobs.extraction.statements import SALIENCE_MIN, Statement, of_message, read_sentences


def statements_of(text: str) -> list[list[Statement]]:
    """Return the statements of a message by the sentence in which each ends, by words alone."""
    said = [sentence.said for sentence in sentences(text)]
    return of_message(said, read_sentences(said, to_assistant=True, embed=None))


def texts_of(text: str) -> list[str]:
    return [statement.text for ending in statements_of(text) for statement in ending]


def facts_of(text: str) -> list[dict[str, Any]]:
    message = IncomingMessage("e1", "s1", "Ann", text, datetime(2026, 5, 1, tzinfo=UTC), is_assistant=False)
    return [item.item for item in extract_by_rules(message, []) if item.kind == "facts"]


def test_what_needs_the_words_before_it_is_one_statement_with_them() -> None:
    assert texts_of("dads got a flat now. in bilston. 2 bedrooms, from jan 3") == [
        "dads got a flat now. in bilston. 2 bedrooms, from jan 3"
    ]


def test_statements_that_stand_alone_stay_apart() -> None:
    assert texts_of("I work as a welder in Gdansk. My sister Ola has lived in Toronto since 2014") == [
        "I work as a welder in Gdansk",
        "My sister Ola has lived in Toronto since 2014",
    ]


def test_thanks_are_joined_to_nothing() -> None:
    assert not any(
        "Thank" in text for text in texts_of("Thank you! dads got a flat now. in bilston. 2 bedrooms, from jan 3")
    )


def test_what_is_of_the_moment_is_no_statement() -> None:
    assert texts_of("I have half a pumpkin and no energy") == []


def test_a_joined_statement_belongs_to_the_sentence_in_which_it_ends() -> None:
    assert [len(ending) for ending in statements_of("dads got a flat now. in bilston. 2 bedrooms, from jan 3")] == [
        0,
        0,
        1,
    ]


def test_the_evidence_of_a_joined_statement_is_its_place_in_the_message() -> None:
    text = "hi! dads got a flat now. in bilston. 2 bedrooms, from jan 3"
    [fact] = facts_of(text)
    [place] = fact["evidence"]
    assert (
        text[place["start"] : place["end"]]
        == fact["object"]
        == "dads got a flat now. in bilston. 2 bedrooms, from jan 3"
    )


@given(st.text(max_size=300))
def test_each_statement_is_worth_keeping_and_made_of_words_of_the_message(text: str) -> None:
    said = [sentence.said for sentence in sentences(text)]
    for ending in statements_of(text):
        for statement in ending:
            assert SALIENCE_MIN <= statement.probability <= 1
            assert statement.text in " ".join(said)


@given(st.text(min_size=1, max_size=200), st.integers(0, 20), st.booleans())
def test_the_probabilities_of_the_salience_add_up_to_one(text: str, number: int, is_first: bool) -> None:
    if read := read_clauses(text, to_assistant=True):
        found = salience(read, SentencePlace(text, number, number + 1, begins=is_first, ends=True))
        assert abs(sum(found) - 1) < 1e-6
