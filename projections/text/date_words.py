"""Date words: the words that dates are made of, as parts of patterns, and the numbers that they mean."""

from __future__ import annotations

from recollect.projections.text.calendar_ranges import HOLIDAYS, SEASONS

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FOREIGN_WEEKDAYS = {
    "montag": 0,
    "dienstag": 1,
    "mittwoch": 2,
    "donnerstag": 3,
    "freitag": 4,
    "samstag": 5,
    "sonnabend": 5,
    "sonntag": 6,
    "понедельник": 0,
    "вторник": 1,
    "среду": 2,
    "четверг": 3,
    "пятницу": 4,
    "субботу": 5,
    "воскресенье": 6,
}
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
#: The number of a month by the first three letters of its English, German or Russian name.
_MONTH_NUMBERS = {name[:3]: number for number, name in enumerate(_MONTHS, start=1)} | {
    "mär": 3,
    "mai": 5,
    "okt": 10,
    "dez": 12,
    "янв": 1,
    "фев": 2,
    "мар": 3,
    "апр": 4,
    "мая": 5,
    "мае": 5,
    "май": 5,
    "июн": 6,
    "июл": 7,
    "авг": 8,
    "сен": 9,
    "окт": 10,
    "ноя": 11,
    "дек": 12,
}
#: Ordinals of weeks and quarters, from the first.
ORDINALS = ("first", "second", "third", "fourth")
_NUMBERS = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty".split(),
        start=1,
    )
} | {
    "a": 1,
    "an": 1,
    "a couple of": 2,
    "couple of": 2,
    "a couple": 2,
    "a few": 3,
    "few": 3,
    "several": 4,
}
#: Counts that mean a unit more or less, too.
VAGUE_COUNTS = frozenset(("a few", "few", "several"))
#: The units that German and Russian words mean, by their first letters.
_UNIT_WORDS = {"wochenende": "weekend", "woche": "week", "monat": "month", "jahr": "year"} | {
    "недел": "week",
    "месяц": "month",
    "год": "year",
    "выходн": "weekend",
}
_SIDES = {"this": 0, "diese": 0, "эт": 0, "next": 1, "coming": 1, "nächste": 1, "kommende": 1, "следующ": 1}

# -- parts of patterns, each with the group that it is named by -------------------------------------------------------

COUNT = r"(?P<count>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
WEEKDAY = "(?P<weekday>" + "|".join(_WEEKDAYS) + ")"
FOREIGN_WEEKDAY = "(?P<weekday>" + "|".join(_FOREIGN_WEEKDAYS) + ")"
#: The weekday before a date, which tells its year, or its month, where the date does not.
SHORT_WEEKDAY = r"(?:(?P<before>mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? )?"
_MONTH_NAMES = "|".join([*_MONTHS, "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sept?", "oct", "nov", "dec"])
MONTH = rf"(?P<month>{_MONTH_NAMES})\.?"
FIRST_MONTH = rf"(?P<first>{_MONTH_NAMES})\.?"
FOREIGN_MONTH = (
    r"(?P<month>januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember|"
    r"январ[яе]|феврал[яе]|март[ае]|апрел[яе]|мая|мае|июн[яе]|июл[яе]|август[ае]|сентябр[яе]|октябр[яе]|ноябр[яе]|"
    r"декабр[яе])"
)
SEASON = "(?P<season>" + "|".join(SEASONS) + ")"
HOLIDAY = (
    "(?P<holiday>"
    + "|".join(name.replace("years", "year['’]?s").replace("tines", "tine['’]?s") for name in HOLIDAYS)
    + ")"
)
DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
YEAR = r"(?P<year>(?:19|20)\d\d)"
UNIT = r"(?P<unit>minute|hour|day|night|week|weekend|fortnight|month|quarter|year|decade)s?"
AGO = rf"(?:{COUNT} years? ago|(?P<shift>last|this|next) year)"
PART = rf"(?P<part>{'|'.join(ORDINALS)}|last)"
SIDE = r"(?P<side>last|past|previous|this|next|coming)"
WHAT = r"(?P<what>week|weekend|month|quarter|year|decade)"
GERMAN_SIDE_WHAT = r"(?P<side>letzte|vergangene|nächste|kommende|diese)[nrsm]? (?P<what>wochenende|woche|monat|jahr)"
RUSSIAN_SIDE_WHAT = r"(?P<side>прошл|следующ|эт)\w{1,3} (?P<what>недел[еюи]|месяце?|году?|выходны[ех])"


def count_of(text: str) -> int:
    """Return the number that digits or a number word mean."""
    number = " ".join(text.lower().split())
    return int(number) if number.isdecimal() else _NUMBERS[number]


def month_number(name: str) -> int:
    """Return the number, 1 to 12, of a month's name or abbreviation."""
    return _MONTH_NUMBERS[name.lower()[:3]]


def weekday_number_of_prefix(prefix: str) -> int:
    """Return the number of the weekday that begins with the first three letters of `prefix`, 0 for Monday."""
    return next(number for number, name in enumerate(_WEEKDAYS) if name.startswith(prefix[:3].lower()))


def weekday_number(name: str) -> int:
    """Return the number of a weekday, 0 for Monday."""
    name = name.lower()
    return _WEEKDAYS.index(name) if name in _WEEKDAYS else _FOREIGN_WEEKDAYS[name]


def shift_of(side: str) -> int:
    """Return 0 for `this`, 1 for `next` and `coming`, -1 for other words."""
    return _SIDES.get(side.lower(), -1)


def unit_of(word: str) -> str:
    """Return the English unit of a word of any language."""
    word = word.lower()
    return next((unit for beginning, unit in _UNIT_WORDS.items() if word.startswith(beginning)), word)
