"""Patterned texts: makes labelled sentences from frames, so that each tense is learned with dates at all distances."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from label_files import Label, LabelledText

from recollect.projections.text.calendar_ranges import month_of
from recollect.projections.text.date_patterns import possible_dates
from recollect.projections.text.date_words import DATE_WORDS

_FRAMES = Path(__file__).parent / "frames.txt"
_SEED = 11
#: Sentences of an English frame, and of one of another language, which has fewer frames.
_SENTENCES, _SENTENCES_OTHER = 5, 6
#: Mean distance of a date without a year from its message, in days, and the longest: further ones have a year.
_DAYS_MEAN, _DAYS_MAX = 70, 290
#: Prepositions of a weekday, of a day and of a month, and the form of a day; {0} is the day, {1} the month.
_FORMS = {
    "de": ("am ", "am ", "im ", "{0}. {1}"),
    "es": ("el ", "el ", "en ", "{0} de {1}"),
    "fr": ("", "le ", "en ", "{0} {1}"),
    "it": ("", "il ", "a ", "{0} {1}"),
    "pt": ("na ", "em ", "em ", "{0} de {1}"),
    "nl": ("", "op ", "in ", "{0} {1}"),
    "ru": ("в ", "", "в ", "{0} {1}"),
    "pl": ("w ", "", "w ", "{0} {1}"),
    "zh": ("周", "", "", "{2}月{0}日"),
    "ja": ("", "", "", "{2}月{0}日"),
    "ko": ("", "", "", "{2}월 {0}일"),
}
_ENGLISH_MONTHS = "January February March April May June July August September October November December".split()
_ENGLISH_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def patterned_texts() -> Iterator[LabelledText]:
    """Yield the sentences, the same ones each time."""
    chance = random.Random(_SEED)
    for number, line in enumerate(_FRAMES.read_text(encoding="utf-8").splitlines()):
        if line.startswith("#"):
            continue
        language, time, frame = line.split(" ", 2)
        for copy in range(_SENTENCES if language == "en" else _SENTENCES_OTHER):
            said = datetime(2019, 1, 1, chance.randrange(7, 23), tzinfo=UTC) + timedelta(days=chance.randrange(3_000))
            yield _sentence(f"f{number}.{copy}", language, time, frame, said, chance)


def _sentence(id: str, language: str, time: str, frame: str, said: datetime, chance: random.Random) -> LabelledText:
    """Return a sentence of a frame with the label of its date."""
    before, slot, after = re.split(r"\{(.+)\}", frame)
    if slot[0] in "=!~":
        return _literal(id, (before, slot[1:], after), said, time if slot[0] == "~" else slot[0])
    sign = -1 if time == "past" else 1
    days = min(_DAYS_MAX, 1 + int(chance.expovariate(1 / _DAYS_MEAN)))
    day = said.date() + timedelta(days=sign * days)
    if slot in ("M", "Y"):
        first, end = month_of(day)
        words, span = _month(language, day, bare=slot == "Y", chance=chance), (first, end - timedelta(days=1))
    elif slot == "W":
        words, span = chance.choice(_ENGLISH_DAYS), (day, day)
    else:
        words, day = _day(language, day, said.date(), sign, slot, chance)
        span = (day, day)
    text = before + words + after
    if chance.random() < 0.5 and language == "en":
        text = text[:1].upper() + text[1:] + chance.choice((".", "!", ".", ""))
    what = "none" if time == "none" else "sure"
    start = len(before)
    return LabelledText(
        id, text, said, [Label(start, start + len(words), what, () if what == "none" else (span,))], False
    )


def _literal(id: str, parts: tuple[str, str, str], said: datetime, time: str) -> LabelledText:
    """Return a sentence whose words mean one of their ranges, or no date.

    Parameters:
        time: `=`: they mean the first range; `past`, `ahead`: the nearest one on this side; `!`: no date.
    """
    before, words, after = parts
    text, start, end = before + words + after, len(before), len(before) + len(words)
    spans: list[tuple[date, date]] = []
    for reading in possible_dates(text, said) if time != "!" else ():
        if reading.start < end and start < reading.end:
            first, last = reading.candidates[0]
            if time == "ahead":
                first, last = min(span for span in reading.candidates if span[0] > said.date())
            elif time == "past":
                first, last = max(span for span in reading.candidates if span[1] <= said.date())
            spans.append((first, last - timedelta(days=1)))
    return LabelledText(id, text, said, [Label(start, end, "none" if time == "!" else "sure", tuple(spans))], False)


def _month(language: str, day: date, *, bare: bool, chance: random.Random) -> str:
    """Return the words of a month."""
    if language == "en":
        name = _ENGLISH_MONTHS[day.month - 1]
        return name if bare else f"in {name if chance.random() < 0.7 else name.lower()}"
    if language in ("zh", "ja", "ko"):
        return f"{day.month}{'월' if language == 'ko' else '月'}"
    names = [name for name, number in DATE_WORDS[language].months.items() if number == day.month]
    name = names[1] if language in ("ru", "pl") else names[0]
    return name if bare else _FORMS[language][2] + (name.capitalize() if language == "de" else name)


def _day(language: str, day: date, said: date, sign: int, slot: str, chance: random.Random) -> tuple[str, date]:
    """Return the words of a day, and the day: one of the next week by its weekday, others by the date."""
    by_weekday = slot != "date" and chance.random() < 0.5
    if by_weekday:
        day = said + timedelta(days=sign * chance.choice((1, 2, 2, 3, 3, 4, 4, 5, 5, 6)))
    elif language == "en" and slot != "date" and chance.random() < 0.25:
        day = said + timedelta(days=sign * chance.randrange(2, 19))
        return f"{'on ' if slot == 'D' else ''}the {_ordinal(day.day)}", day
    if language == "en":
        words = _ENGLISH_DAYS[day.weekday()] if by_weekday else _english_date(day, chance)
        words = words if chance.random() < 0.6 else words.lower()
        return f"on {words}" if slot == "D" else words, day
    weekday_before, day_before, _, form = _FORMS[language]
    table = DATE_WORDS[language]
    if by_weekday:
        name = next(name for name, number in table.weekdays.items() if number == day.weekday())
        words = name.capitalize() if language == "de" else name
        if language in ("ja", "ko"):
            words += "曜日" if language == "ja" else "요일"
        return (weekday_before if slot == "D" or language == "zh" else "") + words, day
    month = next((name for name, number in table.months.items() if number == day.month), "")
    words = form.format(day.day, month.capitalize() if language == "de" else month, day.month)
    return (day_before if slot == "D" else "") + words, day


def _english_date(day: date, chance: random.Random) -> str:
    """Return a day and its month in one of their forms."""
    month = chance.choice(
        (_ENGLISH_MONTHS[day.month - 1], _ENGLISH_MONTHS[day.month - 1], _ENGLISH_MONTHS[day.month - 1][:3])
    )
    return chance.choice(
        (
            f"{month} {day.day}",
            f"{month} {_ordinal(day.day)}",
            f"the {_ordinal(day.day)} of {month}",
            f"{day.day} {month}",
        )
    )


def _ordinal(day: int) -> str:
    """Return a day with its ending."""
    return f"{day}{'th' if 10 < day < 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"
