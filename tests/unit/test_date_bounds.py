"""Date bounds: which dates of a text are the first or the last day of a time."""

from __future__ import annotations

import pytest

from recollect.projections.text.date_bounds import are_ends, has_both_ends, is_first_day, is_last_day


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("My sister is staying until Sunday", "until Sunday"),
        ("antibiotics till 9 March", "9 March"),
        ("I'm in Rome until the 9th", "the 9th"),
        ("Ich bin bis zum 9. März krank", "9. März"),
        ("je suis en vacances jusqu'au 9 mars", "9 mars"),
        ("estoy de baja hasta el 9 de marzo", "9 de marzo"),
    ],
)
def test_the_day_until_which_something_holds(text: str, words: str) -> None:
    assert is_last_day(text, text.find(words), words)
    assert not is_first_day(text, text.find(words), words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I've worked here since 2012", "since 2012"),
        ("vegan since March 3", "March 3"),
        ("Ich wohne seit dem 3. Mai hier", "3. Mai"),
    ],
)
def test_the_day_since_which_something_holds(text: str, words: str) -> None:
    assert is_first_day(text, text.find(words), words)
    assert not is_last_day(text, text.find(words), words)


def test_a_day_on_which_something_happens_is_neither() -> None:
    text, words = "I fly to Oslo on Friday", "Friday"
    assert not is_first_day(text, text.find(words), words)
    assert not is_last_day(text, text.find(words), words)


@pytest.mark.parametrize(
    ("text", "first", "last", "ends"),
    [
        ("from July 3 to July 17", "July 3", "July 17", True),
        ("between July 3 and July 17", "July 3", "July 17", True),
        ("July 3 – July 17", "July 3", "July 17", True),
        ("vom 3. Juli bis zum 17. Juli", "3. Juli", "17. Juli", True),
        ("from Monday until Friday", "from Monday", "until Friday", True),
        ("Tom came on July 3 and left on July 17", "July 3", "July 17", False),
        ("on July 3 and July 17 we play", "July 3", "July 17", False),
    ],
)
def test_two_dates_that_are_the_ends_of_a_time(text: str, first: str, last: str, ends: bool) -> None:
    assert are_ends(text, text.find(first), first, text.find(last), last) is ends


def test_the_words_of_a_date_may_have_both_ends() -> None:
    assert has_both_ends("from 2016 to 2020")
    assert has_both_ends("3-9 July")
    assert not has_both_ends("last month")
