"""Importance of messages, from the signs of content in their texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.text.importance import NEUTRAL_IMPORTANCE, importance_of


@pytest.mark.parametrize("text", ["ok", "haha nice", "thanks!", "👍", "good morning"])
def test_a_filler_is_unimportant(text: str) -> None:
    assert importance_of(text, "user") < NEUTRAL_IMPORTANCE - 1


@pytest.mark.parametrize(
    "text",
    [
        "We decided to sell the flat to Mrs. Moreau for 310,000",
        "Remember that my blood group is A negative and that Aspirin gives me hives",
        "From now on I work from home on Fridays, boss Karin agreed",
    ],
)
def test_a_decision_or_a_wish_with_names_or_numbers_is_kept(text: str) -> None:
    assert importance_of(text, "user") >= 8


def test_a_question_and_words_of_the_assistant_count_less_than_a_statement() -> None:
    statement = importance_of("the train to Nashik leaves at 6:10", "user")
    assert importance_of("does the train to Nashik leave at 6:10?", "user") < statement
    assert importance_of("the train to Nashik leaves at 6:10", "assistant") < statement


@pytest.mark.parametrize(
    "phrase",
    """
    decided|agreed|we'll go with|we will go with|settled on|signed|booked|bought|sold|hired|fired|quit|resigned|engaged
    |married|divorced|born|pregnant|died|passed away|diagnosed|allergic|promoted|accepted|canceled|cancelled|moved to
    |moved in|from now on|deadline|remember that|remember, the|don't forget|do not forget|note down|keep in mind
    |remind me|important|for the record|always|never|actually|correction|i meant|i was wrong|that's wrong|not true
    |no longer|not any more|not anymore|anymore|instead of|love|hate|proud|grateful|favourite|favorite|dream
    """.split("|"),
)
def test_every_sign_of_content_counts(phrase: str) -> None:
    assert importance_of(f"so it was {phrase.strip()} the other one", "user") > NEUTRAL_IMPORTANCE


@given(st.text(max_size=2_000), st.sampled_from(["user", "assistant", "system"]))
def test_every_text_has_an_importance_from_1_to_10(text: str, role: str) -> None:
    assert 1 <= importance_of(text, role) <= 10


@given(
    st.lists(st.sampled_from(["decided", "now", "We'll go with", "Ann", "7", "allergic", "_", "\x1c", "x"]), max_size=8)
)
def test_a_text_has_the_same_importance_with_a_letter_beyond_ascii_after_it(words: list[str]) -> None:
    text = " ".join(words) + " and some more words"
    assert importance_of(text, "user") == importance_of(f"{text} é", "user")
