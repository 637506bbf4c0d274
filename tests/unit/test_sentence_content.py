"""What summaries keep of a conversation: the sentences that people ask for later, without markup."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from recollect.jobs.summarising.extractive import summarise
from recollect.jobs.summarising.sentence_content import content, readable, without_code
from recollect.jobs.summarising.summarised_rows import plain_rows


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("### Next steps", ""),
        ("**Budget**:", ""),
        ("- **Mental clarity**", ""),
        ("---", ""),
        ("Dear [Your Name], thank you.", ""),
        ("Some ideas:", ""),
        ("- **Rent**: 900 euros a month", "Rent: 900 euros a month"),
        ("2. See [the form](https://example.org/form) first.", "See the form first."),
        ("> > It leaks again", "It leaks again"),
        ("We moved on 3 May.", "We moved on 3 May."),
    ],
)
def test_a_sentence_is_cleaned_of_markup(sentence: str, text: str) -> None:
    assert readable(sentence) == text


def test_blocks_of_code_are_left_out() -> None:
    assert without_code("Run it:\n```python\nprint(1)\n```\nThen stop.") == "Run it:\n\n\nThen stop."
    assert without_code("Run it: ```print(1)") == "Run it: \n"


@pytest.mark.parametrize(
    ("kept", "dropped"),
    [
        ("The advance was 75,000, paid today.", "That sounds like a nice day for all of you."),
        ("We decided to take the offer of Ferreira.", "The weather was nice and warm around here all day."),
        ("My boss is called Ines and starts on Monday.", "What does your boss do all day long over there?"),
        ("My shoe size is 44.", "return size(44);"),
        ("I am allergic to nuts.", "Thanks, have a nice evening with your family!"),
        ("My locker is 58.", "Let me know if I can help you with your locker 58."),
    ],
)
def test_numbers_names_and_decisions_weigh_more_than_chatter(kept: str, dropped: str) -> None:
    assert content(kept) > content(dropped)


def test_what_the_user_said_is_kept_before_the_words_of_an_assistant() -> None:
    texts = ["my landlord raised the rent to 940 from May", "Rents rose by 4 % in May, says the bureau of statistics."]
    turns = [
        replace(row, role=role, speaker=role)
        for row, role in zip(plain_rows(texts), ("user", "assistant"), strict=True)
    ]
    assert summarise(turns, [None, None], 16) == "user: my landlord raised the rent to 940 from May"


def test_a_summary_says_nothing_twice_and_ends_each_sentence() -> None:
    turns = plain_rows(["we sold the boat for 900", "ok", "we sold the boat for 900", "Clara bought it"])
    assert summarise(turns, [None] * 4, 60) == "we sold the boat for 900. Clara bought it"


def test_a_death_is_kept_and_what_is_said_in_passing_is_not() -> None:
    said = ["bad news. grandpa died on thursday", "oh Tadeo", "a stroke", "hugs", "will do", "see ya!"]
    assert summarise(plain_rows(said), [None] * len(said), 40) == "grandpa died on thursday"
