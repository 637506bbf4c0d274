"""Asked secrets: a PIN, a code or a password is shown to a question for just that one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.api.retrieval.answer.withheld_secrets import SecretFilter
from recollect.api.retrieval.contract.result import Item
from recollect.events.intake.screening import SecretPolicies

_DATA: dict[str, Any] = orjson.loads((Path(__file__).parents[1] / "data" / "secret-queries.json").read_bytes())
_SECRETS: dict[str, str] = _DATA["secrets"]
_QUERIES: list[dict[str, Any]] = _DATA["queries"]


def shown(query: str) -> set[str]:
    """Return the secrets that a query shows."""
    secrets = SecretFilter(SecretPolicies(), query)
    return {name for name, text in _SECRETS.items() if secrets.text(text) == text}


def test_the_queries_are_half_again_as_many_that_ask_for_something_else() -> None:
    assert sum(bool(it["shown"]) for it in _QUERIES) == 60
    assert sum(not it["shown"] for it in _QUERIES) == 121


@pytest.mark.parametrize("half", [0, 1], ids=["seen while building", "held out"])
def test_each_query_shows_what_it_asks_for_and_nothing_else(half: int) -> None:
    wrong = {it["query"]: shown(it["query"]) for it in _QUERIES[half::2] if shown(it["query"]) != set(it["shown"])}
    assert wrong == {}


_FORMS = (
    "what's the {}?",
    "What is my {} again?",
    "tell me the {} please",
    "I forgot the {}",
    "{}?",
    "can you remind me of the {}?",
    "hey, do you still know the {}?",
)
_THINGS = ("door", "wifi", "garage", "alarm", "gym locker", "bike lock", "cellar", "summer house", "laptop", "parking")
_NAMES = ("code", "password", "combination")


@given(
    own=st.sampled_from(_THINGS),
    other=st.sampled_from((*_THINGS, "dress", "promo", "zip", "Python", "discount")),
    name=st.sampled_from(_NAMES),
    form=st.sampled_from(_FORMS),
    value=st.integers(1_000, 999_999),
)
def test_the_code_of_one_thing_is_shown_to_no_question_for_another(
    own: str, other: str, name: str, form: str, value: int
) -> None:
    text = f"The {own} code is {value}."
    question = SecretFilter(SecretPolicies(), form.format(f"{other} {name}"))
    assert (str(value) in question.text(text)) == (own == other)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("wie war der Türcode?", "Der Türcode ist 4711."),
        ("was ist das WLAN-Passwort", "Unser WLAN-Passwort ist blau-Falke-92."),
        ("cuál es la clave del wifi", "La clave del wifi es gato-azul-77."),
        ("quel est le code de la porte ?", "Le code de la porte est 4711."),
    ],
)
def test_it_is_asked_for_in_other_languages(query: str, text: str) -> None:
    assert SecretFilter(SecretPolicies(), query).text(text) == text
    assert SecretFilter(SecretPolicies(), "").text(text) != text


def test_of_two_codes_in_one_message_the_one_that_is_asked_for_is_shown() -> None:
    text = "The door code is 4711. The alarm code is 5590."
    assert SecretFilter(SecretPolicies(), "door code?").text(text) == (
        "The door code is 4711. The alarm code is [hidden: code]."
    )


@pytest.mark.parametrize(
    "query",
    [
        "whats my door code",
        "whats the door code for my flat",
        "door code?",
        "forgot the door code lol",
        "I'm locked out and can’t get in, what was my door code",
        "what did I say the door code was?",
        "what's the code to open the door?",
        "what is the access code that opens my flat's door",
        "what do I type at the door",
        "how do I open the door?",
        "how can I unlock the door",
    ],
)
def test_it_is_asked_for_in_the_words_of_a_chat(query: str) -> None:
    text = "my new flat number is 7b, door code 5531, dont tell anyone"
    assert SecretFilter(SecretPolicies(), query).text(text) == text


@pytest.mark.parametrize(
    "query",
    [
        "The new door code is 9999.",
        "I need to change the door code",
        "why is the door code so long?",
        "which code should I choose for the door?",
        "how do I open a door in Minecraft?",
        "what dress code is there at the door?",
        "dont forget the door code",
    ],
)
def test_it_is_not_shown_to_who_tells_or_changes_it(query: str) -> None:
    assert "4711" not in SecretFilter(SecretPolicies(), query).text("The door code is 4711.")


@pytest.mark.parametrize(
    "query",
    [
        "Which password manager is best for home?",
        "which password managers work at home",
        "What password policy do you suggest for home?",
        "Which password is best for home?",
    ],
)
def test_a_thing_that_is_named_after_a_password_is_none(query: str) -> None:
    assert "blueHorse77" not in SecretFilter(SecretPolicies(), query).text("The wifi password at home is blueHorse77.")


def test_what_asks_for_the_way_into_a_place_gets_no_code_of_a_thing_there() -> None:
    question = SecretFilter(SecretPolicies(), "how do I get into the gym?")
    assert "17-34-08" not in question.text("The combination of my gym locker is 17-34-08.")
    assert "3366" in question.text("The code for the gym is 3366.")


@pytest.mark.parametrize(
    "query", ["My gym locker, what's the combination?", "the locker won't open, what was the code again"]
)
def test_what_the_rest_of_a_message_mentions_tells_which_code_it_asks_for(query: str) -> None:
    assert shown(query) == {"locker"}


def test_a_code_in_a_sentence_of_its_own_is_that_of_the_thing_before_it() -> None:
    text = "We moved to the new flat. The code is 4711."
    assert SecretFilter(SecretPolicies(), "flat code?").text(text) == text


def test_what_follows_a_secret_after_another_name_does_not_describe_it() -> None:
    text = "the wifi password is marmot-tango-88 and the dress code for the office party is smart casual"
    assert "marmot" not in SecretFilter(SecretPolicies(), "what's the dress code for the office party?").text(text)
    assert SecretFilter(SecretPolicies(), "what's the wifi password?").text(text) == text


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("what's the safe combination?", "the combination for the safe in the cellar is 31-07-55"),
        ("how do I open the safe?", "the combination for the safe in the cellar is 31-07-55"),
        ("what's my SIM card pin?", "my SIM pin is 9034"),
        ("front door code?", "They changed the front door code, it's 1947 now"),
        ("what's the mailbox code?", "mailbox code 771"),
    ],
)
def test_the_owner_gets_the_code_in_near_words(query: str, text: str) -> None:
    assert SecretFilter(SecretPolicies(), query).text(text) == text


@pytest.mark.parametrize(
    "query", ["what's a safe combination?", "give me a safe password", "what's my debit card pin?"]
)
def test_a_safe_code_and_the_card_of_another_thing_are_not_meant(query: str) -> None:
    for text, value in (("the combination for the safe is 31-07-55", "31-07-55"), ("my SIM pin is 9034", "9034")):
        assert value not in SecretFilter(SecretPolicies(), query).text(text)


def test_a_code_of_no_named_thing_is_shown_to_a_question_for_any_code() -> None:
    text = "code changed bc somebody leaked it (vexo) its sox-9026 now"
    assert SecretFilter(SecretPolicies(), "server code pls").text(text) == text
    for query in ("who leaked it?", "bank pin?", "what's the dress code?"):
        assert "9026" not in SecretFilter(SecretPolicies(), query).text(text), query


def test_a_code_that_is_hidden_in_one_message_is_hidden_in_the_words_of_another() -> None:
    said = (
        "The door code of the flat is 2719.",
        "Anna K: Polish, pharmacy. Back door 2719.",
        "Flight KL2719, seat 12.",
    )
    items = [
        Item(
            id=str(place),
            kind="episode",
            namespace="a",
            text=text,
            score=0.0,
            matched_by=(),
            ranks={},
            source_events=(),
            occurred_at_us=0,
        )
        for place, text in enumerate(said)
    ]
    assert [it.text for it in SecretFilter(SecretPolicies(), "what does Anna study?").items(items)] == [
        "The door code of the flat is [hidden: code].",
        "Anna K: Polish, pharmacy. Back door [hidden: code].",
        "Flight KL2719, seat 12.",
    ]
    assert [it.text for it in SecretFilter(SecretPolicies(), "what is the door code?").items(items)] == [*said]
