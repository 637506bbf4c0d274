"""A fact of the patterns is whole: what is said goes on where none of its words do."""

from __future__ import annotations

import pytest

from recollect.jobs.extraction.rules import matches


@pytest.mark.parametrize(
    "sentence",
    [
        "I love to",
        "I like the sound of that",
        "I love how it shows the togetherness and power you were talking about",
        "I love going on road trips with friends and family, exploring and hiking or playing board games",
    ],
)
def test_a_match_that_ends_within_what_is_said_makes_no_fact(sentence: str) -> None:
    assert [*matches(sentence)] == []


@pytest.mark.parametrize(
    ("sentence", "object"),
    [
        ("my rent is 720, goes out on the 3rd", "720"),
        ("my rent is 4,200 with the hospital", "4,200"),
        ("my rent is 950 euros a month", "950 euros"),
        ("my rent is 1.6 lakh which is criminal", "1.6 lakh"),
        ("I love hiking with my dogs", "hiking with my dogs"),
        ("I have to stop at 23 from now on", "stop at 23 from now on"),
    ],
)
def test_an_object_has_what_belongs_to_it(sentence: str, object: str) -> None:
    assert object in [match.object for match in matches(sentence)]
