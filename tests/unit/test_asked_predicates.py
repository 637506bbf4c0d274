"""Asked predicates: which facts answer a question, by its wording."""

from __future__ import annotations

import pytest

from recollect.api.retrieval.search.fact_answers import asks_about_other, asks_about_speaker


@pytest.mark.parametrize(
    ("question", "predicate"),
    [
        ("where do I live?", "lives in"),
        ("what's my address", "lives in"),
        ("whats my job", "works as"),
        ("what do I do for a living?", "works as"),
        ("who do I work for", "works at"),
        ("when is our wedding birthday party and my birthday", "born on"),
        ("which pets do I have?", "has pet"),
        ("what is my shoe size", "shoe size is"),
        ("how much rent do I pay", "rent is"),
        ("what's my favourite colour?", "favorite colour"),
    ],
)
def test_a_question_in_the_first_person_asks_for_facts_about_who_asks(question: str, predicate: str) -> None:
    assert asks_about_speaker(question, predicate)


@pytest.mark.parametrize(
    ("question", "predicate"),
    [
        ("what's my sister's job?", "works as"),
        ("where does my brother live", "lives in"),
        ("what did I do yesterday", "works as"),
        ("where is the shoe shop?", "shoe size is"),
        ("x" * 300 + " where do I live", "lives in"),
    ],
)
def test_a_question_about_somebody_or_something_else_does_not(question: str, predicate: str) -> None:
    assert not asks_about_speaker(question, predicate)


@pytest.mark.parametrize(
    ("question", "predicate"),
    [
        ("where does Nuno live?", "lives in"),
        ("what's Jorge's job", "works as"),
        ("how old is Mika", "age is"),
        ("when was Lena born", "born on"),
        ("which languages does Ole speak?", "speaks"),
        ("what is Ann's shoe size", "shoe size is"),
    ],
)
def test_a_question_that_names_somebody_asks_for_facts_about_them(question: str, predicate: str) -> None:
    assert asks_about_other(question, predicate)
