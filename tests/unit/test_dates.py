"""Dates in texts: the time ranges that they name, read from when they were said."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.text.calendar_ranges import HOLIDAYS
from recollect.projections.text.date_patterns import possible_dates
from recollect.projections.text.date_reading import SURE, names_date, read_dates
from recollect.projections.text.question_times import question_times

#: A Tuesday.
_ASKED = datetime(2026, 3, 17, 12, tzinfo=UTC)


def _day(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("two years ago in May", (2024, 5, 1), (2024, 6, 1)),
        ("in May two years ago", (2024, 5, 1), (2024, 6, 1)),
        ("a couple of years ago, in spring", (2024, 3, 1), (2024, 6, 1)),
        ("in the winter two years ago", (2024, 12, 1), (2025, 3, 1)),
        ("last year in Sept.", (2025, 9, 1), (2025, 10, 1)),
        ("in December last year", (2025, 12, 1), (2026, 1, 1)),
        ("the 3rd of June two years ago", (2024, 6, 3), (2024, 6, 4)),
        ("June 3 last year", (2025, 6, 3), (2025, 6, 4)),
        ("last summer", (2025, 6, 1), (2025, 9, 1)),
        ("last winter", (2025, 12, 1), (2026, 3, 1)),
        ("in the summer of 2022", (2022, 6, 1), (2022, 9, 1)),
        ("autumn 2023", (2023, 9, 1), (2023, 12, 1)),
        ("during the summer", (2025, 6, 1), (2025, 9, 1)),
        ("in the first week of June 2023", (2023, 6, 1), (2023, 6, 8)),
        ("the third week of June 2023", (2023, 6, 15), (2023, 6, 22)),
        ("in the last week of February 2024", (2024, 2, 23), (2024, 3, 1)),
        ("at the beginning of March 2024", (2024, 3, 1), (2024, 3, 11)),
        ("at the end of February 2024", (2024, 2, 21), (2024, 3, 1)),
        ("at the start of 2023", (2023, 1, 1), (2023, 5, 1)),
        ("by the end of 2023", (2023, 9, 1), (2024, 1, 1)),
        ("over the last three weeks", (2026, 2, 24), (2026, 3, 18)),
        ("in the past 10 days", (2026, 3, 7), (2026, 3, 18)),
        ("two years ago", (2024, 1, 1), (2025, 1, 1)),
        ("in May", (2025, 5, 1), (2025, 6, 1)),
        ("last week", (2026, 3, 9), (2026, 3, 16)),
        ("on 2 May 2024", (2024, 5, 2), (2024, 5, 3)),
    ],
)
def test_a_time_is_the_range_that_it_means_and_one_expression_is_one_time(
    text: str, start: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    [times] = question_times(f"What did Ann do {text}?", _ASKED).ranges
    assert (times.start, times.end) == (_day(*start), _day(*end))


@pytest.mark.parametrize(
    "text",
    [
        "we ran for two weeks",
        "chapter 3 of March madness",
        "one may say so",
        "a summer dress",
        "in the end",
        "two years of May",
        "on the 3rd floor",
        "every Friday",
        "we did it in two weeks",
        "31 April",
        "a Christmas tree",
        "the last 999 years",
        "Guten Morgen",
    ],
)
def test_words_that_only_look_like_a_time_are_none(text: str) -> None:
    assert not names_date(text, _ASKED)


@given(
    st.lists(
        st.sampled_from(
            "the of in last first week two years ago May june 31 2 2023 9999 summer winter end next year month "
            "since before until between and 14th Friday weekend Christmas quarter decade few 90s will was".split()
        ),
        max_size=14,
    ).map(" ".join),
    st.datetimes(timezones=st.just(UTC)),
)
def test_any_words_about_time_give_ranges_that_end_after_they_begin(text: str, said_at: datetime) -> None:
    for item in read_dates(text, said_at):
        assert text[item.position : item.position + len(item.words)] == item.words
        assert 0 < sum(candidate.probability for candidate in item.candidates) <= 1.01
        for start, end, _ in item.candidates:
            assert timedelta() < end - start <= timedelta(days=36_525)
    for span in question_times(text, said_at).ranges:
        assert span.start < span.end
        # Only a range from or until the present, such as `until 2023`, is longer.
        touches_present = said_at.date() in (span.start.date(), (span.end - timedelta(days=1)).date())
        assert touches_present or span.end - span.start <= timedelta(days=45_000)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("Ida starts school in September", (2026, 9, 1)),
        ("we moved in September", (2025, 9, 1)),
        ("on 28 June we fly to Porto", (2026, 6, 28)),
        ("on 28 June we flew to Porto", (2025, 6, 28)),
        ("I have an appointment on Friday", (2026, 3, 20)),
        ("I saw him on Friday", (2026, 3, 13)),
        ("the rent is due on the 3rd", (2026, 4, 3)),
        ("they came on the 3rd", (2026, 3, 3)),
        ("at the weekend we will go out", (2026, 3, 21)),
        ("we bought tickets for 14 August", (2026, 8, 14)),
        ("the delivery was pushed back to July 15", (2026, 7, 15)),
        ("my sister is getting married June 14th", (2026, 6, 14)),
        ("the deadline moved from Thursday to Monday", (2026, 3, 19)),
        ("she postponed the dinner to Sunday", (2026, 3, 22)),
        ("my boss gave me until Friday", (2026, 3, 20)),
        # A date within two months beats any cue.
        ("I just co-hosted a session with Tom on February 27", (2026, 2, 27)),
        ("Am Samstag waren wir im Zoo", (2026, 3, 14)),
        ("Am Samstag gehen wir in den Zoo", (2026, 3, 21)),
        ("lo dejamos el sábado", (2026, 3, 14)),
        ("в понедельник экзамен", (2026, 3, 23)),
        ("domani ho il dentista", (2026, 3, 18)),
        ("amanhã viajo para o Porto", (2026, 3, 18)),
        ("3 stycznia wyjeżdżam", (2027, 1, 3)),
        ("다음 주 금요일에 서울에 가요", (2026, 3, 27)),
    ],
)
def test_a_date_without_a_year_is_read_by_its_distance_and_by_what_stands_around_it(
    text: str, start: tuple[int, int, int]
) -> None:
    assert read_dates(text, _ASKED)[0].candidates[0].start == _day(*start)


@pytest.mark.parametrize(
    "text",
    [
        "my birthday is June 3rd",
        "I was born on the 3rd of May",
        "our wedding anniversary is on May 5",
        "I swim every Friday",
    ],
)
def test_what_comes_every_year_or_every_week_has_no_sure_date(text: str) -> None:
    assert all(date.sure is None for date in read_dates(text, _ASKED))


def test_the_other_ranges_that_words_may_mean_are_given_with_their_probability() -> None:
    [date] = read_dates("they told me the results come on Monday", _ASKED)
    assert {candidate.start for candidate in date.candidates} >= {_day(2026, 3, 16), _day(2026, 3, 23)}
    assert date.sure is None or date.sure.probability >= SURE


def test_days_are_those_of_the_time_zone_of_the_message() -> None:
    zone = ZoneInfo("America/Los_Angeles")
    # 03:30 UTC of the 8th.
    [date] = read_dates("yesterday I ran 5k", datetime(2026, 3, 7, 19, 30, tzinfo=zone))
    assert date.candidates[0].start == datetime(2026, 3, 6, tzinfo=zone)
    assert date.candidates[0].end == datetime(2026, 3, 7, tzinfo=zone)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("the day before yesterday", (2026, 3, 15), (2026, 3, 16)),
        ("last night", (2026, 3, 16), (2026, 3, 17)),
        ("a few days ago", (2026, 3, 13), (2026, 3, 16)),
        ("two Fridays ago", (2026, 3, 6), (2026, 3, 7)),
        ("the week before last", (2026, 3, 2), (2026, 3, 9)),
        ("Tuesday next week", (2026, 3, 24), (2026, 3, 25)),
        ("next week on Tuesday", (2026, 3, 24), (2026, 3, 25)),
        ("a week on Friday", (2026, 3, 27), (2026, 3, 28)),
        ("Friday week", (2026, 3, 27), (2026, 3, 28)),
        ("two years ago today", (2024, 3, 17), (2024, 3, 18)),
        ("a year ago yesterday", (2025, 3, 16), (2025, 3, 17)),
        ("in a fortnight", (2026, 3, 30), (2026, 4, 6)),
        ("in 2 weeks and 3 days", (2026, 4, 3), (2026, 4, 4)),
        ("am Donnerstag in zwei Wochen", (2026, 4, 2), (2026, 4, 3)),
        ("half a year ago", (2025, 9, 1), (2025, 10, 1)),
        ("a couple of weeks ago", (2026, 2, 23), (2026, 3, 16)),
        ("in the past month", (2026, 2, 17), (2026, 3, 18)),
        ("the next three days", (2026, 3, 17), (2026, 3, 21)),
        ("later this week", (2026, 3, 16), (2026, 3, 23)),
        ("at the end of the month", (2026, 3, 21), (2026, 4, 1)),
        ("early May 2024", (2024, 5, 1), (2024, 5, 11)),
        ("mid-2024", (2024, 5, 1), (2024, 9, 1)),
        ("Q3 2025", (2025, 7, 1), (2025, 10, 1)),
        ("last quarter", (2025, 10, 1), (2026, 1, 1)),
        ("in the 90s", (1990, 1, 1), (2000, 1, 1)),
        ("from 2019 to 2021", (2019, 1, 1), (2022, 1, 1)),
        ("last Christmas", (2025, 12, 24), (2025, 12, 27)),
        ("Halloween two years ago", (2024, 10, 31), (2024, 11, 1)),
        ("New Year's Eve 2023", (2023, 12, 31), (2024, 1, 1)),
        ("last winter", (2025, 12, 1), (2026, 3, 1)),
        ("3-10 May 2025", (2025, 5, 3), (2025, 5, 11)),
        ("between May and July 2025", (2025, 5, 1), (2025, 8, 1)),
        ("Sat 14 March 2026", (2026, 3, 14), (2026, 3, 15)),
        ("14.03.2026", (2026, 3, 14), (2026, 3, 15)),
        ("25/12/2025", (2025, 12, 25), (2025, 12, 26)),
        ("vorgestern", (2026, 3, 15), (2026, 3, 16)),
        ("letzte Woche", (2026, 3, 9), (2026, 3, 16)),
        ("am 5. Mai 2025", (2025, 5, 5), (2025, 5, 6)),
        ("на прошлой неделе", (2026, 3, 9), (2026, 3, 16)),
        ("5 мая 2025", (2025, 5, 5), (2025, 5, 6)),
    ],
)
def test_an_expression_of_time_has_the_range_that_it_means_first(
    text: str, start: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    [reading] = possible_dates(text, _ASKED)
    assert reading.candidates[0] == (date(*start), date(*end))


@pytest.mark.parametrize("text", ["dentist 19th", "see you mon", "el examen es el 8 por la tarde"])
def test_a_short_form_is_no_date_by_the_words_alone(text: str) -> None:
    [reading] = possible_dates(text, _ASKED)
    assert reading.is_alone
    assert read_dates(text, _ASKED) == []


def test_a_short_form_of_one_language_does_not_hide_a_date_of_another() -> None:
    [reading] = possible_dates("A consulta ficou para o dia 12 de novembro.", _ASKED)
    assert reading.kind == "monthday"


@pytest.mark.parametrize(
    ("name", "days"),
    [("easter", {2024: (3, 29), 2025: (4, 18), 2026: (4, 3)}), ("thanksgiving", {2024: (11, 28), 2026: (11, 26)})],
)
def test_movable_holidays_begin_on_their_days(name: str, days: dict[int, tuple[int, int]]) -> None:
    assert {year: (HOLIDAYS[name](year)[0].month, HOLIDAYS[name](year)[0].day) for year in days} == days


# -- questions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("what did I do on Monday?", (2026, 3, 16), (2026, 3, 17)),
        ("and in September?", (2025, 9, 1), (2025, 10, 1)),
        ("what's on the 14th?", (2026, 4, 14), (2026, 4, 15)),
        ("what did I eat on the 14th?", (2026, 3, 14), (2026, 3, 15)),
        ("do I have anything on Sunday?", (2026, 3, 22), (2026, 3, 23)),
        ("what am I doing in May?", (2026, 5, 1), (2026, 6, 1)),
        ("what happened since February?", (2026, 2, 1), (2026, 3, 18)),
        ("what did we bake before Christmas?", (2025, 10, 25), (2025, 12, 24)),
        ("what did we do after Christmas?", (2025, 12, 27), (2026, 3, 18)),
        ("what do I have to do by Friday?", (2026, 3, 17), (2026, 3, 21)),
        ("what happened between the 3rd of May and the 10th of June?", (2025, 5, 3), (2025, 6, 11)),
        ("what did I do from Monday to Friday?", (2026, 3, 9), (2026, 3, 14)),
        ("what happened between November and February?", (2025, 11, 1), (2026, 3, 1)),
        ("what have I read recently?", (2026, 2, 15), (2026, 3, 18)),
        ("what's coming up?", (2026, 3, 17), (2026, 6, 17)),
        ("what's coming up next week?", (2026, 3, 23), (2026, 3, 30)),
        ("when's my next doctor's appointment?", (2026, 3, 17), (2026, 6, 17)),
    ],
)
def test_a_question_is_about_the_past_unless_it_asks_for_what_is_coming(
    question: str, start: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    times = question_times(question, _ASKED)
    [date] = times.ranges
    assert (date.start, date.end) == (_day(*start), _day(*end))
    assert times.upcoming == (date.end > _day(2026, 3, 18))


@pytest.mark.parametrize(
    ("question", "previous"),
    [
        ("What did we talk about last time?", True),
        ("where did we leave off?", True),
        ("what was our last conversation about?", True),
        ("When was the last time I went to the gym?", False),
        ("deploy it like last time", False),
        ("what did I say about Porto?", False),
    ],
)
def test_the_conversation_before_is_asked_for_by_its_words(question: str, previous: bool) -> None:
    assert question_times(question, _ASKED).previous_session == previous


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("I've moved the van to Sunday the 15th of February", (2026, 2, 15)),
        ("I've moved the van to Sat, 15 February", (2025, 2, 15)),
        ("we met on Monday, March 3rd", (2025, 3, 3)),
        ("and I start on Monday the 16th", (2026, 2, 16)),
        ("we had a storm on Tuesday the 16th", (2025, 12, 16)),
    ],
)
def test_the_weekday_of_a_date_tells_its_year_or_its_month(text: str, start: tuple[int, int, int]) -> None:
    [date] = read_dates(text, datetime(2026, 1, 10, tzinfo=UTC))
    assert date.candidates[0].start == datetime(*start, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("deploys are broken since monday", (2026, 1, 5)),
        ("it will not start since Friday, can you help?", (2026, 1, 9)),
        ("ich bin seit Dienstag krank", (2026, 1, 6)),
        ("deploys are frozen from Monday on", (2026, 1, 19)),
    ],
)
def test_what_lasts_since_a_day_began_at_the_last_such_day(text: str, start: tuple[int, int, int]) -> None:
    # A Monday.
    [date] = read_dates(text, datetime(2026, 1, 12, tzinfo=UTC))
    assert date.candidates[0].start == datetime(*start, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("来月15日に引っ越します", (2026, 12, 15), (2026, 12, 16)),
        ("上个月的二十号我们搬家了", (2026, 10, 20), (2026, 10, 21)),
        ("去年夏天我们去了青岛", (2025, 6, 1), (2025, 9, 1)),
        ("十年前の今日、結婚しました", (2016, 11, 18), (2016, 11, 19)),
        ("Estuve en Madrid del 20 al 28 de octubre", (2026, 10, 20), (2026, 10, 29)),
        ("En Semana Santa fuimos a Sevilla", (2026, 3, 29), (2026, 4, 6)),
        ("am 5. nächsten Monats fange ich an", (2026, 12, 5), (2026, 12, 6)),
        ("the weekend before last we hiked", (2026, 11, 7), (2026, 11, 9)),
        ("I have to finish it before March", (2027, 3, 1), (2027, 4, 1)),
        ("we met 10/23", (2026, 10, 23), (2026, 10, 24)),
    ],
)
def test_a_date_of_several_words_is_one_expression(
    text: str, start: tuple[int, int, int], end: tuple[int, int, int]
) -> None:
    [date] = read_dates(text, datetime(2026, 11, 18, 12, tzinfo=UTC))
    assert (date.candidates[0].start, date.candidates[0].end) == (_day(*start), _day(*end))


@pytest.mark.parametrize(
    "text",
    [
        "昨年末に転職しました",
        "来年の夏休みに海外へ行きたい",
        "el próximo mes el día 5 empiezo",
        "del 20 al 28 del mes pasado estuve enfermo",
        "Ende nächster Woche fliege ich",
        "last year summer was hot",
        "I read about the March 1st Movement",
        '"Yesterday I went to the park," she said',
        "„Ich komme morgen“, sagte er",
        "Anna: I saw him yesterday\nTom: he leaves tomorrow",
        "open 24/7",
        "moved us to the 18th, sunday, because of the football",
        "it is on the 28th (a Friday)",
    ],
)
def test_parts_of_dates_names_of_events_and_quotations_are_never_sure(text: str) -> None:
    assert all(date.sure is None for date in read_dates(text, datetime(2026, 11, 18, 12, tzinfo=UTC)))


def test_a_season_that_says_the_kind_of_a_thing_limits_no_search() -> None:
    assert question_times("how long ago did I put on the summer tyres?", _ASKED).scope is None


@pytest.mark.parametrize("question", ["When did I fall?", "why did the vase fall off the shelf?"])
def test_a_verb_that_is_spelled_like_a_season_is_no_time(question: str) -> None:
    times = question_times(question, _ASKED)
    assert (times.ranges, times.scope) == ((), None)


@pytest.mark.parametrize(
    ("question", "limits"),
    [
        ("Am I allowed to lift boxes this month?", False),
        ("Which room is the seminar in this week?", False),
        ("Darf ich diese Woche joggen?", False),
        ("who is coming for dinner at Christmas?", False),
        ("What did I cook this week?", True),
        ("How many miles did I run this month?", True),
        ("Where did I live in January?", True),
        ("What do I have on Thursday?", True),
    ],
)
def test_a_question_in_the_present_is_not_limited_to_what_was_said_in_a_time_that_is_not_over(
    question: str, limits: bool
) -> None:
    times = question_times(question, _ASKED)
    assert (times.scope is not None) == limits
