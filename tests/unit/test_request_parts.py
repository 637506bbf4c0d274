"""Request parts: what of a sentence goes, what stays, and what only explains it."""

from __future__ import annotations

import pytest

from recollect.jobs.forgetting.forget_requests import ASKS_BY_WORDS_MIN, asks_by_words, forget_requests
from recollect.jobs.forgetting.request_parts import request_parts, things_apart


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Forget my new address but keep my phone number.", "Forget my new address"),
        ("Keep my address but forget my phone number.", "forget my phone number."),
        ("Forget my shoe size, not the blood type.", "Forget my shoe size"),
        ("Forget everything about work except my boss's name.", "Forget everything about work"),
        ("Forget the alarm code please, we changed it.", "Forget the alarm code please"),
        ("Please forget Dom, he and Celine split up.", "Please forget Dom"),
        ("Forget my salary and my address.", "Forget my salary and my address."),
    ],
)
def test_only_the_part_that_asks_names_what_goes(text: str, asked: str) -> None:
    assert request_parts(text, lambda part: asks_by_words(part) >= ASKS_BY_WORDS_MIN).asking == [asked]


def test_a_sentence_without_a_part_that_asks_stays_whole() -> None:
    text = "The knee is fine, so the old injury can go."
    assert request_parts(text, lambda _: False) == ([text], False)


def test_what_stays_is_no_second_reading_of_a_request() -> None:
    [request] = forget_requests("Forget my new address but keep my phone number.", "Ann")
    assert not any("phone" in text for text in request.around)
    [request] = forget_requests("Forget the alarm code please, we changed it.", "Ann")
    assert request.around == ("Forget the alarm code please, we changed it.",)


def test_each_of_several_things_is_a_request() -> None:
    assert things_apart("Forget the caravan and my tea") == ["Forget the caravan", "forget my tea"]
    assert things_apart("Forget my age, my job and my debts") == ["Forget my age", "forget my job", "forget my debts"]
    assert things_apart("Forget Rome, we fly to Oslo") == []


def test_a_long_list_is_read_to_its_third_thing() -> None:
    assert len(things_apart("forget " + " and ".join(f"thing {number}" for number in range(60)))) == 3
