"""Withheld names: who is excluded by the words of a message, and what only sounds like it."""

from __future__ import annotations

import pytest

from recollect.projections.text.withheld_names import EVERYBODY, withheld_names

_EXCLUDED = {
    "I'm planning a party for Saturday, don't tell Ben!": ("Ben",),
    "dont tell Ben but I broke the lamp": ("Ben",),
    "We're moving out in June. Please do not tell Mrs Doyle yet.": ("Mrs Doyle",),
    "I quit, and please don't mention this to Kofi.": ("Kofi",),
    "I failed the exam... not a word to Mum": ("Mum",),
    "Keep this from Lea, I bought her the tickets": ("Lea",),
    "it's a ring. Ben must not know": ("Ben",),
    "I got the job. This stays between us": (EVERYBODY,),
    "I got the flat. This stays between us two!": (EVERYBODY,),
    "this is just between you and me: I'm pregnant": (EVERYBODY,),
    "I'm seeing a therapist, don't tell anyone": (EVERYBODY,),
    "let's keep this between us, the offer is 62k": (EVERYBODY,),
    "Please don't tell Ben or Kofi about the offer": ("Ben", "Kofi"),
    "Never tell Ben that I said so": ("Ben",),
    "ok i book the Blue Room. dont tell mia": ("?mia",),
    "KEEP THIS a Secret From Lea": ("Lea",),
    "I moved out. Keep it away from Ben": ("Ben",),
    "DON’T YOU EVER tell Ben": ("Ben",),
    "NEVER ſay this to Ben": ("Ben",),
    "Ben maynt fınd out": ("Ben",),
    "i failed it btw. don't tell mum or Kofi yet": ("?mum", "Kofi"),
}
_NOT_EXCLUDED = (
    "I don't tell Ben everything",
    "why don't you tell Ben?",
    "don't tell him",
    "Don't let it get cold",
    "Anna told me not to tell Ben about school when we were kids, funny",
    "he didn't tell Ben the truth",
    "don't tell Ben's dog a joke, he barks",
    "I can't tell Ben and Bill apart",
    "there is a table between us and the window",
    "the difference between us and you and me is small",
    "keep it in the fridge",
    "If you don't tell Ben, he will be sad",
    "You never tell Ben the time",
    "Don't forget to tell Ben about the bus",
    "It says 'do not show to children'",
    "I do not mention Kofi in the report",
)


@pytest.mark.parametrize(("text", "names"), _EXCLUDED.items())
def test_a_request_to_keep_something_from_a_person_names_the_person(text: str, names: tuple[str, ...]) -> None:
    assert tuple(withheld_names(text)) == names


@pytest.mark.parametrize("text", _NOT_EXCLUDED)
def test_what_only_sounds_like_it_excludes_no_person(text: str) -> None:
    assert tuple(withheld_names(text)) == ()
