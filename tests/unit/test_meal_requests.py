"""Meal requests: which questions ask for something to eat."""

from __future__ import annotations

import pytest

from recollect.api.retrieval.understanding.meal_requests import asks_for_meal


@pytest.mark.parametrize(
    "question",
    [
        "suggest a dinner for tonight",
        "give me a recipe for pancakes",
        "what should I cook",
        "where can we go for lunch",
        "book us a restaurant",
        "ideas for tom's birthday cake",
        "what's for dinner",
        "Was soll ich heute kochen?",
        "Schlag mir ein Rezept vor",
        "Wo kann man hier gut essen?",
        "¿Qué cocino hoy para la cena?",
        "Propose-moi une recette facile",
    ],
)
def test_a_request_for_something_to_eat_is_a_meal_request(question: str) -> None:
    assert asks_for_meal(question)


@pytest.mark.parametrize(
    "question",
    [
        "where did we have dinner on Friday",
        "what did you recommend for dinner",
        "who invented sushi",
        "just had dinner with Sam",
        "we ate at the new restaurant",
        "suggest a film for tonight",
        "what is the capital of France",
        "Wo haben wir gestern gegessen?",
        "write a python function",
    ],
)
def test_a_question_about_a_past_meal_or_about_something_else_is_none(question: str) -> None:
    assert not asks_for_meal(question)
