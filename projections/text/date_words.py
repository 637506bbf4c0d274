"""Date words: the words of `date_words.toml`, as parts of patterns, and the numbers and units that they mean."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any, TypeVar

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.folding import folded_pattern, lookup_key

_LANGUAGES: dict[str, dict[str, Any]] = tomllib.loads(
    files(__package__).joinpath("date_words.toml").read_text(encoding="utf-8")
)
_Value = TypeVar("_Value")
_DIGITS = late_pattern(r"\d+")
#: Languages without spaces between words.
UNSPACED = frozenset(("zh", "ja", "ko"))
#: Letters of a word that a star stands for.
_STARRED = r"\w{0,5}"


def _groups(words: str, start: int) -> dict[str, int]:
    """Return the numbers of words in their order; spellings of one word are separated by a bar."""
    return {
        spelling.replace("_", " "): number
        for number, spellings in enumerate(words.split(), start=start)
        for spelling in spellings.split("|")
        if spelling
    }


def _numbered(words: Mapping[Any, str]) -> dict[str, int]:
    """Return the numbers of the words of a table from numbers to words."""
    return {word: int(number) for number, spellings in words.items() for word in _groups(spellings, 0)}


def _named(words: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the words of a table from names to words."""
    return {word: name for name, spellings in words.items() for word in _groups(spellings, 0)}


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of any of `words`, the longest first, for folded text; `*` stands for the end of a word."""
    ordered = sorted((word.replace("_", " ") for word in words), key=len, reverse=True)
    return "(?:" + "|".join(folded_pattern(word).replace("*", _STARRED) for word in ordered) + ")"


class DateWords:
    """The words of a language.

    Parameters:
        language: such as `en`, a table of `date_words.toml`.
    """

    def __init__(self, language: str) -> None:
        table = _LANGUAGES[language]
        self.language = language
        self.weekdays = _groups(table["weekdays"], 0)
        self.months = _groups(table["months"], 1)
        self.numbers = _groups(table["numbers"], 1)
        self.ordinals = _groups(table.get("ordinals", ""), 1)
        self.units = _named(table["units"])
        self.days = _numbered(table.get("days", {}))
        self.parts = _numbered(table.get("third", {}))
        self.holidays = _named(table.get("holidays", {}))
        self.seasons = _named(table.get("seasons", {}))
        self.sides = _numbered(table.get("sides", {})) | _numbered(
            {side: "|".join(table.get(name, "").split()) for side, name in ((-1, "last"), (0, "this"), (1, "next"))}
        )
        self.cues: dict[str, str] = table["cues"]
        self._table = table
        # The values by the form of a word that all its spellings share.
        self._numbers = _keyed(self.numbers) | _keyed(self.ordinals)
        self._months, self._weekdays, self._days = _keyed(self.months), _keyed(self.weekdays), _keyed(self.days)
        self._units, self._holidays, self._seasons = _keyed(self.units), _keyed(self.holidays), _keyed(self.seasons)
        self._sides, self._parts = _keyed(self.sides), _keyed(self.parts)

    def words(self, key: str) -> list[str]:
        """Return the words of a key such as `on`."""
        return [*_groups("|".join(self._table.get(key, "").split()), 0)]

    def number(self, text: str) -> int:
        """Return the number that digits, a number word or an ordinal mean."""
        text = text.strip()
        digits = _DIGITS.match(text)
        if digits is not None:
            return int(digits.group())
        if (number := self._numbers.get(lookup_key(" ".join(text.split())))) is not None:
            return number
        # 二十三, 十五
        tens, _, ones = text.partition("十")
        return 10 * self._numbers.get(tens, 1) + self._numbers.get(ones, 0)

    def month(self, text: str) -> int:
        """Return the number of a month, 1 to 12, by its name or its number."""
        name = lookup_key(text)
        return self._months[name] if name in self._months else self.number(text)

    def weekday(self, text: str) -> int:
        """Return the number of a weekday, 0 for Monday."""
        return self._weekdays[lookup_key(text)]

    def unit(self, text: str) -> str:
        """Return the English unit of a word."""
        return self._units[lookup_key(text)]

    def holiday(self, text: str) -> str:
        """Return the English name of a holiday, without apostrophes."""
        return self._holidays.get(lookup_key(text)) or " ".join(text.replace("'", "").split())

    def season(self, text: str) -> str:
        """Return the English name of a season."""
        return self._seasons.get(lookup_key(text), text)

    def side(self, text: str) -> int:
        """Return -1 for `last`, 0 for `this`, 1 for `next`."""
        return _by_stem(self._sides, lookup_key(text))

    def part(self, text: str) -> int:
        """Return the third of a month that a word such as `end` means."""
        return _by_stem(self._parts, lookup_key(text))

    def offset(self, text: str) -> int:
        """Return the days from today of a word such as `yesterday`."""
        return self._days[lookup_key(text)]


def _keyed(words: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the values by the form of a word that all its spellings share."""
    return {lookup_key(word): value for word, value in words.items()}


def _by_stem(values: Mapping[str, int], word: str) -> int:
    """Return the value of a word, or of the longest stem that it begins with."""
    if word in values:
        return values[word]
    return values[max((stem for stem in values if word.startswith(stem.rstrip("*"))), key=len)]


DATE_WORDS: dict[str, DateWords] = {language: DateWords(language) for language in _LANGUAGES}
