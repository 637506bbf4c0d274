"""Answer types: what kind of expression a question asks for, and which texts have one."""

from __future__ import annotations

import pytest

from recollect.projections.text.answer_type import AnswerType, answer_types, counts_any, expected_answer
from recollect.projections.text.stems import content_stems

_ALL = sum(AnswerType)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what did the plumber charge?", AnswerType.MONEY),
        ("how much is my rent", AnswerType.MONEY),
        ("how long does the train take", AnswerType.DURATION),
        ("how old is Mika", AnswerType.AGE),
        ("when does the shop open?", AnswerType.CLOCK),
        ("which colour did we take", AnswerType.COLOUR),
        ("what's the wifi password", AnswerType.DIGITS),
        ("where did I put the passport", AnswerType.PLACE),
        ("why was the flight late", AnswerType.REASON),
        ("who taught her to swim", AnswerType(0)),
    ],
)
def test_the_wording_of_a_question_tells_the_type_of_its_answer(question: str, expected: AnswerType) -> None:
    assert expected_answer(question) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("112 euros, ouch", AnswerType.MONEY),
        ("it was $ 40", AnswerType.MONEY),
        ("two hours and a bit", AnswerType.DURATION),
        ("she's already nine", AnswerType.AGE),
        ("he turned 12", AnswerType.AGE),
        ("from half past, 9:30 sharp", AnswerType.CLOCK),
        ("we took the dark green ones", AnswerType.COLOUR),
        ("0664 55 50", AnswerType.DIGITS),
        ("it lies behind the stove", AnswerType.PLACE),
        ("we stayed because it rained", AnswerType.REASON),
        ("three goats", AnswerType(0)),
    ],
)
def test_a_text_has_the_types_of_its_expressions(text: str, expected: AnswerType) -> None:
    assert answer_types(text, _ALL) == expected


@pytest.mark.parametrize(
    ("question", "text", "counts"),
    [
        ("how many sugars does she take", "tea with two sugars please", True),
        ("how many sugars does she take", "two mornings a week", False),
        ("how many chickens do you have", "we have 11 little brown hens, no, chickens", False),
        ("how many eggs", "about 30 fresh eggs", True),
    ],
)
def test_a_number_counts_when_it_stands_before_what_is_asked(question: str, text: str, counts: bool) -> None:
    assert counts_any(text, content_stems(question)) is counts
