"""Foreign dates: the patterns of dates in German, Spanish, French, Chinese and Japanese, with their meanings.

The patterns are compared with folded text: without case and accents. German has further patterns in `date_ranges`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from recollect.projections.text.calendar_ranges import (
    Range,
    Tense,
    date_of,
    days,
    month_of,
    of_nearest_year,
    week_of,
    year_of,
)
from recollect.projections.text.date_meanings import Meaning, Reading, simple, unit_range
from recollect.projections.text.folding import fold, folded_pattern
from recollect.projections.text.sentence_language import Language


class _DateWords(NamedTuple):
    """The words of a language that dates are made of, each with its number."""

    weekdays: dict[str, int]
    months: dict[str, int]
    counts: dict[str, int]
    units: dict[str, str]
    #: Words such as `last` (-1), `this` (0) and `next` (1).
    sides: dict[str, int]


def _numbered(words: str, start: int = 1) -> dict[str, int]:
    """Return the numbers of words in their order; spellings of one number are separated by a bar."""
    return {
        fold(word): number
        for number, spellings in enumerate(words.split(), start=start)
        for word in spellings.split("|")
    }


_HAN_NUMBERS = _numbered("一 二|两 三 四 五 六 七 八 九 十 十一 十二") | {"几": 3, "数": 3, "半": 1}
_WORDS: dict[Language, _DateWords] = {
    "de": _DateWords(
        _numbered("montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag", 0),
        _numbered("januar februar märz|maerz april mai juni juli august september oktober november dezember"),
        _numbered("einem|einer|einen|eine|ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf")
        | {"ein paar": 3, "paar": 3, "einigen": 3},
        {"tag": "day", "woche": "week", "monat": "month", "jahr": "year"},
        {"letzt": -1, "vergangen": -1, "vorig": -1, "dies": 0, "nachst": 1, "naechst": 1, "kommend": 1},
    ),
    "es": _DateWords(
        _numbered("lunes martes miércoles jueves viernes sábado domingo", 0),
        _numbered("enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre"),
        _numbered("un|una dos tres cuatro cinco seis siete ocho nueve diez once doce")
        | {"unos": 3, "unas": 3, "un par de": 2, "unos pocos": 3},
        {"dia": "day", "semana": "week", "mes": "month", "ano": "year", "fin": "weekend", "finde": "weekend"},
        {"pasad": -1, "ultim": -1, "est": 0, "proxim": 1, "que viene": 1, "que entra": 1, "siguiente": 1},
    ),
    "fr": _DateWords(
        _numbered("lundi mardi mercredi jeudi vendredi samedi dimanche", 0),
        _numbered("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
        _numbered("un|une deux trois quatre cinq six sept huit neuf dix onze douze")
        | {"quelques": 3, "une dizaine de": 10},
        {
            "jour": "day",
            "semaine": "week",
            "mois": "month",
            "an": "year",
            "week-end": "weekend",
            "weekend": "weekend",
            "week end": "weekend",
        },
        {
            "dernier": -1,
            "derniere": -1,
            "passe": -1,
            "passee": -1,
            "ce": 0,
            "prochain": 1,
            "prochaine": 1,
            "qui vient": 1,
        },
    ),
    "zh": _DateWords(
        {sign: number for number, sign in enumerate("一二三四五六日")} | {"天": 6},
        _HAN_NUMBERS | {"正": 1},
        _HAN_NUMBERS,
        {
            "天": "day",
            "日": "day",
            "周": "week",
            "星期": "week",
            "礼拜": "week",
            "月": "month",
            "年": "year",
            "周末": "weekend",
        },
        {"上上": -2, "上": -1, "去": -1, "这": 0, "本": 0, "今": 0, "下下": 2, "下": 1, "明": 1, "前": -2, "后": 2},
    ),
    "ja": _DateWords(
        {sign: number for number, sign in enumerate("月火水木金土日")},
        _HAN_NUMBERS,
        _HAN_NUMBERS,
        {
            "日": "day",
            "週": "week",
            "週間": "week",
            "ヶ月": "month",
            "か月": "month",
            "カ月": "month",
            "ヵ月": "month",
            "月": "month",
            "年": "year",
            "週末": "weekend",
        },
        {"先々": -2, "先": -1, "昨": -1, "去": -1, "今": 0, "この": 0, "来": 1, "再来": 2, "さ来": 2, "一昨": -2},
    ),
}


def _any(words: dict[str, int] | dict[str, str]) -> str:
    """Return a pattern of any of `words`, longest first."""
    return "(?:" + "|".join(sorted(words, key=len, reverse=True)) + ")"


def _count(language: Language, text: str) -> int:
    """Return the number that digits or number words mean."""
    text = text.strip()
    if text.isdecimal():
        return int(text)
    counts = _WORDS[language].counts
    if text in counts:
        return counts[text]
    # 二十三, 十五
    tens, _, ones = text.partition("十")
    return 10 * counts.get(tens, 1) + (counts.get(ones, 0) if ones else 0)


def _shift(language: Language, side: str | None) -> int | None:
    """Return -1 for `last`, 0 for `this`, 1 for `next`; None without such a word."""
    if not side:
        return None
    sides = _WORDS[language].sides
    return next((sides[word] for word in sorted(sides, key=len, reverse=True) if side.startswith(word)), None)


def _unit(language: Language, word: str) -> str:
    """Return the English unit of a word."""
    units = _WORDS[language].units
    return next(units[begin] for begin in sorted(units, key=len, reverse=True) if word.startswith(begin))


def _weekday_meaning(language: Language, *, of_week: bool) -> Meaning:
    """Return the meaning of a weekday.

    Parameters:
        of_week: whether `last Tuesday` is the Tuesday of last week, as in Chinese and Japanese.
    """

    def meaning(match: re.Match[str], reading: Reading) -> Range:
        today, wanted = reading.today, _WORDS[language].weekdays[match["weekday"]]
        groups = match.groupdict()
        shift = _shift(language, groups.get("side") or groups.get("after"))
        if shift is not None and of_week:
            return days(week_of(today, shift)[0] + timedelta(days=wanted))
        ahead = (wanted - today.weekday()) % 7
        if shift == 0:
            return days(today + timedelta(days=ahead))
        tense = reading.tense()
        if shift == -1 or (shift is None and tense == "past"):
            return days(today + timedelta(days=ahead - 7))
        if shift == 1 or tense == "future":
            return days(today + timedelta(days=ahead or 7))
        return days(today + timedelta(days=ahead if ahead <= 3 else ahead - 7))

    return meaning


def _side_unit(language: Language) -> Meaning:
    """Return the meaning of `last week`, `next month`, `this year` …"""

    def meaning(match: re.Match[str], reading: Reading) -> Range | None:
        groups = match.groupdict()
        shift = _shift(language, groups.get("side") or groups.get("after"))
        return None if shift is None else unit_range(_unit(language, match["unit"]), reading.today, shift)

    return meaning


def _away(language: Language, sign: int) -> Meaning:
    """Return the meaning of `two weeks ago` (sign -1) or `in two weeks` (sign 1): a week, as long as its unit."""

    def meaning(match: re.Match[str], reading: Reading) -> Range:
        return unit_range(_unit(language, match["unit"]), reading.today, sign * _count(language, match["count"]))

    return meaning


def _day_and_month(language: Language) -> Meaning:
    """Return the meaning of a day of a month, with or without its year."""

    def meaning(match: re.Match[str], reading: Reading) -> Range | None:
        month = _month(language, match["month"])
        day = _count(language, match["day"])
        if match["year"]:
            return days(datetime(int(match["year"]), month, day, tzinfo=UTC))
        return of_nearest_year(
            lambda year: None if (date := date_of(year, month, day)) is None else days(date),
            reading.today,
            reading.tense(),
        )

    return meaning


def _month_meaning(language: Language) -> Meaning:
    """Return the meaning of a month, with or without its year."""

    def meaning(match: re.Match[str], reading: Reading) -> Range | None:
        month = _month(language, match["month"])
        if match["year"]:
            return month_of(datetime(int(match["year"]), month, 1, tzinfo=UTC))
        return of_nearest_year(
            lambda year: month_of(datetime(year, month, 1, tzinfo=UTC)), reading.today, reading.tense()
        )

    return meaning


def _month(language: Language, word: str) -> int:
    """Return the number of a month by its name or its number."""
    return _WORDS[language].months[word] if word in _WORDS[language].months else _count(language, word)


def _year(match: re.Match[str], _: Reading) -> Range:
    """Return the range of a year."""
    return year_of(int(match["year"]))


_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>[0-3]?\d)"
_HAN_DAY = r"(?P<day>[0-3]?\d|[一二三四五六七八九十]{1,3})"
_HAN_MONTH = r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_HAN_COUNT = r"(?P<count>\d{1,3}|[一二两三四五六七八九十几数]{1,3})"


class _Placeholders(NamedTuple):
    """The patterns of the words that dates of a language with spaces are made of."""

    number: str
    weekday: str
    month: str


def _placeholders(language: Language) -> _Placeholders:
    """Return the patterns of the words of a language."""
    words = _WORDS[language]
    return _Placeholders(
        number=rf"(?P<count>\d{{1,3}}|{_any(words.counts)})",
        weekday=f"(?P<weekday>{_any(words.weekdays)})",
        month=f"(?P<month>{_any(words.months)})",
    )


def _german() -> list[tuple[str, Meaning]]:
    count, weekday, month = _placeholders("de")
    side = r"(?P<side>letzt|vergangen|vorig|dies|nächst|kommend)e[nrsm]?"
    unit = r"(?P<unit>tag|woche|monat|jahr)(?:en|e|n)?"
    return [
        (rf"(?:am |seit |bis |ab )?{side} {weekday}", _weekday_meaning("de", of_week=False)),
        (rf"vor {count} {unit}", _away("de", -1)),
        (rf"in {count} {unit}", _away("de", 1)),
        (rf"(?:im |seit |bis )?{month}(?: {_YEAR})", _month_meaning("de")),
        (rf"(?:im jahr |in |seit |bis ){_YEAR}", _year),
        ("letzte nacht", simple(-1)),
    ]


def _spanish() -> list[tuple[str, Meaning]]:
    count, weekday, month = _placeholders("es")
    unit = "(?P<unit>dia|semana|mes|ano|fin de semana|finde)(?:s|es)?"
    after = r"(?P<after>pasad[oa]|que viene|que entra|próxim[oa]|siguiente)"
    side = r"(?P<side>últim[oa]|próxim[oa]|pasad[oa]|est[ea])"
    return [
        ("anteayer|antes de ayer|antier", simple(-2)),
        ("pasado mañana", simple(2)),
        ("ayer(?: por la (?:mañana|tarde|noche))?|anoche", simple(-1)),
        ("esta (?:mañana|tarde|noche)|hoy", simple(0)),
        (rf"(?:el |la )?{unit} {after}", _side_unit("es")),
        (rf"(?:el |la )?{side} {unit}", _side_unit("es")),
        (rf"(?:el )?{weekday} {after}", _weekday_meaning("es", of_week=False)),
        (rf"(?:el )?{side} {weekday}", _weekday_meaning("es", of_week=False)),
        (rf"hace {count} {unit}", _away("es", -1)),
        (rf"(?:en|dentro de) {count} {unit}", _away("es", 1)),
        (rf"(?:el )?(?:día )?{_DAY} de {month}(?: (?:de|del) {_YEAR})?", _day_and_month("es")),
        (
            rf"(?:en|desde|hasta|antes de|de|a finales de|a principios de|mes de) {month}(?: (?:de|del) {_YEAR})?",
            _month_meaning("es"),
        ),
        (rf"(?:en|desde|hasta|del|año) {_YEAR}", _year),
        (rf"(?<!cada )(?:el |este ){weekday}", _weekday_meaning("es", of_week=False)),
        ("(?<!la )(?<!esta )(?<!cada )(?<!por )mañana", simple(1)),
    ]


def _french() -> list[tuple[str, Meaning]]:
    count, weekday, month = _placeholders("fr")
    unit = "(?P<unit>jour|semaine|mois|année|an|week-end|weekend|week end)s?"
    after = r"(?P<after>dernière?|passée?|prochaine?|qui vient)"
    side = r"(?P<side>cet?te|cet|ce)"
    return [
        ("avant-hier|avant hier", simple(-2)),
        ("après-demain|après demain", simple(2)),
        ("hier(?: soir| matin| après-midi)?", simple(-1)),
        ("demain(?: soir| matin| après-midi)?", simple(1)),
        ("aujourd'hui|ce soir|ce matin|cet après-midi|cette nuit", simple(0)),
        (rf"(?:la |le |l')?{unit} {after}", _side_unit("fr")),
        (rf"{side} {unit}", _side_unit("fr")),
        (rf"(?:le )?{weekday} {after}", _weekday_meaning("fr", of_week=False)),
        (rf"il y a {count} {unit}", _away("fr", -1)),
        (rf"(?:dans|d'ici) {count} {unit}", _away("fr", 1)),
        (rf"(?:le )?{_DAY}(?:er)? {month}(?: {_YEAR})?", _day_and_month("fr")),
        (
            rf"(?:en|depuis|jusqu'en|avant|fin|début|mi|courant|mois de|mois d')[ -]?{month}(?: {_YEAR})?",
            _month_meaning("fr"),
        ),
        (rf"(?:en|depuis|jusqu'en|année) {_YEAR}", _year),
        (rf"(?<!chaque )(?:le |ce ){weekday}", _weekday_meaning("fr", of_week=False)),
    ]


def _chinese() -> list[tuple[str, Meaning]]:
    side = "(?P<side>上上|下下|上|下|这|本)(?:个|一个)?"
    return [
        ("大后天", simple(3)),
        ("大前天", simple(-3)),
        ("前天|前晚", simple(-2)),
        ("(?<!今)(?<!以)(?<!然)(?<!之)后天", simple(2)),
        ("昨天|昨晚|昨日|昨夜", simple(-1)),
        ("明天|明早|明晚|明日", simple(1)),
        ("今天|今晚|今早|今日|今夜", simple(0)),
        (rf"(?:(?P<year>(?:19|20)\d\d)年)?{_HAN_MONTH}月{_HAN_DAY}[日号]?(?![个月年])", _day_and_month("zh")),
        (rf"{side}(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", _weekday_meaning("zh", of_week=True)),
        (rf"{side}(?P<unit>周末|周|星期|礼拜|月)", _side_unit("zh")),
        ("(?P<side>去|今|明|前|后)(?P<unit>年)", _side_unit("zh")),
        (rf"{_HAN_COUNT}个?(?P<unit>天|日|周|星期|礼拜|月|年)(?:以|之)?前", _away("zh", -1)),
        (rf"{_HAN_COUNT}个?(?P<unit>天|日|周|星期|礼拜|月|年)(?:以|之)?后", _away("zh", 1)),
        (rf"(?:(?P<year>(?:19|20)\d\d)年){_HAN_MONTH}月(?:份)?", _month_meaning("zh")),
        (rf"(?<![个\d一二三四五六七八九十]){_HAN_MONTH}月(?:份)?(?!球|光|饼|亮|子)(?P<year>)", _month_meaning("zh")),
        (r"(?P<year>(?:19|20)\d\d)年", _year),
        (r"(?<!每)(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", _weekday_meaning("zh", of_week=False)),
    ]


def _japanese() -> list[tuple[str, Meaning]]:
    side = "(?P<side>先々|先|今|来|再来|さ来)"
    return [
        ("一昨日|おととい", simple(-2)),
        ("明後日|あさって", simple(2)),
        ("昨日|昨夜|昨晩|きのう|ゆうべ", simple(-1)),
        ("明日|あした|明朝|明晩", simple(1)),
        ("今日|今夜|今晩|今朝|きょう", simple(0)),
        (rf"(?:(?P<year>(?:19|20)\d\d)年)?{_HAN_MONTH}月{_HAN_DAY}日", _day_and_month("ja")),
        (rf"{side}週の?(?P<weekday>[月火水木金土日])曜日?", _weekday_meaning("ja", of_week=True)),
        ("(?P<side>先々|先|今|来|再来|さ来)(?P<unit>週末|週|月)", _side_unit("ja")),
        ("(?P<side>一昨|昨|去|今|来|再来)(?P<unit>年)", _side_unit("ja")),
        (rf"{_HAN_COUNT}(?P<unit>日|週間|ヶ月|か月|カ月|ヵ月|年)前", _away("ja", -1)),
        (rf"{_HAN_COUNT}(?P<unit>日|週間|ヶ月|か月|カ月|ヵ月|年)後", _away("ja", 1)),
        (rf"(?:(?P<year>(?:19|20)\d\d)年){_HAN_MONTH}月", _month_meaning("ja")),
        (rf"(?<![\d一二三四五六七八九十]){_HAN_MONTH}月(?!曜)(?P<year>)", _month_meaning("ja")),
        (r"(?P<year>(?:19|20)\d\d)年", _year),
        (r"(?<!毎週)(?P<weekday>[月火水木金土日])曜日?", _weekday_meaning("ja", of_week=False)),
    ]


def _compiled(table: list[tuple[str, Meaning]], *, is_spaced: bool) -> tuple[tuple[re.Pattern[str], Meaning], ...]:
    """Return the compiled patterns of a language."""
    around = (r"\b(?:", r")(?!\w)") if is_spaced else ("(?:", ")")
    return tuple((re.compile(folded_pattern(pattern).join(around)), meaning) for pattern, meaning in table)


#: The patterns of each language with their meanings. The first one that matches a part of the text wins.
FOREIGN_DATES: dict[Language, tuple[tuple[re.Pattern[str], Meaning], ...]] = {
    "de": _compiled(_german(), is_spaced=True),
    "es": _compiled(_spanish(), is_spaced=True),
    "fr": _compiled(_french(), is_spaced=True),
    "zh": _compiled(_chinese(), is_spaced=False),
    "ja": _compiled(_japanese(), is_spaced=False),
}

#: Signs of the past and of the future around a date, in folded text.
_PAST: dict[Language, str] = {
    "de": r"\b(?:war|waren|hatte|hatten|wurde|gewesen|ge\w{2,20}(?:t|en)|\w{2,12}ge\w{2,20}(?:t|en)|bekommen|besucht|bestanden)\b",
    "es": r"\b(?:he|hemos|ha|han|fui|fue|fuimos|hice|hizo|tuve|tuvo|estuve|estuvo|era|habia|\w{2,20}(?:aste|aron|iste|ieron|aba|abamos))\b",
    "fr": r"\b(?:j'ai|on a|nous avons|tu as|il a|elle a|suis alle\w?|etais|etait|avait|avais)\b",
    "zh": "了|过|曾",
    "ja": "た(?![いく])|だった|でした",
}
_FUTURE: dict[Language, str] = {
    "de": r"\b(?:werde|werden|wird|wirst|muss|mussen|muessen|soll|will|wollen|termin\w*|geplant|vor|steht|stehen|mache|bald|plane|freue)\b",
    "es": r"\b(?:voy|vamos|va|van|tengo|tenemos|debo|hay que|proxim\w|cita|planes|sera|ire|iremos)\b",
    "fr": r"\b(?:vais|allons|va|vont|dois|devons|faut|rendez-vous|rdv|prevue?s?|serai|sera|irai)\b",
    "zh": "要|会|将|打算|计划|安排|准备",
    "ja": "予定|つもり|行きます|行く|なきゃ|ないと|ある|あります|出ます",
}
_TENSES: dict[Language, tuple[re.Pattern[str], re.Pattern[str]]] = {
    language: (re.compile(past), re.compile(_FUTURE[language])) for language, past in _PAST.items()
}
#: Characters before and after a date that are read for its tense.
_TENSE_CHARS = 80


def foreign_tense(language: Language, folded: str, start: int, end: int) -> Tense:
    """Return the tense of the words around a date; None without a sign, and with signs of both."""
    around = f"{folded[max(0, start - _TENSE_CHARS) : start]}\n{folded[end : end + _TENSE_CHARS]}"
    past, future = (pattern.search(around) is not None for pattern in _TENSES[language])
    return None if past == future else "past" if past else "future"
