"""Profile questions: what asks for all that is known of the asker, however it is typed."""

from __future__ import annotations

import pytest

from recollect.api.retrieval.understanding.profile_questions import asks_for_profile


@pytest.mark.parametrize(
    "question",
    [
        "What do you know about me?",
        "what do u know abt me",
        "tell me everything you've got on me",
        "New phone, new start. What do you still remember about me?",
        "was weißt du über mich",
        "¿qué sabes de mí?",
        "dimmi cosa ricordi di me",
    ],
)
def test_a_question_for_all_that_is_known_of_the_asker_is_recognised(question: str) -> None:
    assert asks_for_profile(question)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "what do you know about my sister?",
        "What did I tell you about my knee?",
        "who are you",
        "tell me about yourself",
        "how old am I",
        "Forget what I said about the rent",
        "let me tell you about me",
        "what do you know about me " + "and " * 60,
    ],
)
def test_other_questions_ask_for_no_profile(question: str) -> None:
    assert not asks_for_profile(question)
