"""Unspaced date patterns: the patterns of dates in Chinese, Japanese and Korean, and the figures of all languages."""

from __future__ import annotations

from recollect.projections.text import date_meanings as meanings
from recollect.projections.text.date_meanings import Meaning
from recollect.projections.text.date_words import DateWords, any_of

#: What the dates of a pattern are, such as `weekday`; the pattern; and what it means.
Row = tuple[str, str, Meaning]

YEAR = r"(?P<year>(?:19|20)\d\d)"
#: Days and months with a stroke, one of the two over 12; `24/7` is not a date.
STROKED = (
    r"(?<![\d/.])(?!24/7)(?P<day>1[3-9]|2\d|3[01])/(?P<number>0?[1-9]|1[0-2])(?![/.:%]?\d)",
    r"(?<![\d/.])(?P<number>0?[1-9]|1[0-2])/(?P<day>1[3-9]|2\d|3[01])(?![/.:%]?\d)",
)

_HAN_DAY = r"(?P<day>[0-3]?\d|[一二三四五六七八九十]{1,3})"
_HAN_MONTH = r"(?P<month>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])"
_HAN_YEARS = r"(?P<years>\d{1,2}|[一二两三四五六七八九十]{1,3})年(?:以|之)?前"
_HAN_COUNT = r"(?P<count>\d{1,3}|[一二两三四五六七八九十几数]{1,3})"


def unspaced_rows(words: DateWords) -> list[Row]:
    """Return the patterns of Chinese, Japanese or Korean."""
    offset = rf"(?P<offset>{any_of(words.days)})"
    season, part = f"(?P<season>{any_of(words.seasons)})(?![休节節])", f"(?P<part>{any_of(words.parts)})"
    han_month = rf"(?<![\d一二三四五六七八九十]){_HAN_MONTH}"
    if words.language == "zh":
        side, unit = "(?P<side>上上|下下|上|下|这|本)(?:个|一个)?", "(?P<unit>天|日|周|星期|礼拜|月|年)"
        of_year = rf"{YEAR}年|(?:(?P<yearside>去年|今年|明年|前年|后年)|{_HAN_YEARS})的?"
        return [
            ("day.exact", rf"{_HAN_COUNT}个?{unit}(?:以|之)?前的?{offset}", meanings.day_away(-1)),
            ("day", f"(?<![今以然之]){offset}", meanings.offset),
            ("holiday", f"(?:{of_year})?(?P<holiday>{any_of(words.holidays)})", meanings.holiday),
            ("season", f"(?:{of_year}){season}", meanings.season),
            ("monthday", rf"(?:{of_year})?{_HAN_MONTH}月{_HAN_DAY}[日号]?(?![个月年])", meanings.day_and_month),
            ("month.part", rf"(?:{of_year})?{han_month}月{part}", meanings.part_of(meanings.month)),
            ("month", rf"(?:{of_year}){_HAN_MONTH}月(?:份)?", meanings.month),
            ("numeric", STROKED[1], meanings.numeric),
            ("day.of.month", rf"{side}(?P<unit>月)的?{_HAN_DAY}[日号]", meanings.day_of_month),
            ("unit.part", rf"(?<![\d一二三四五六七八九十个])(?:{side})?(?P<unit>月){part}", meanings.part_of_unit),
            ("week.day", rf"{side}(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", meanings.weekday_of_week),
            ("unit", rf"{side}(?P<unit>周末|周|星期|礼拜|月)", meanings.side_unit),
            ("unit", "(?P<side>去|今|明|前|后)(?P<unit>年)", meanings.side_unit),
            ("ago", rf"{_HAN_COUNT}个?{unit}(?:以|之)?前", meanings.away(-1)),
            ("ahead", rf"{_HAN_COUNT}个?{unit}(?:以|之)?后", meanings.away(1)),
            ("month", rf"(?<![个\d一二三四五六七八九十]){_HAN_MONTH}月(?:份)?(?!球|光|饼|亮|子)", meanings.month),
            ("year", rf"{YEAR}年", meanings.year),
            ("weekday", r"(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])", meanings.weekday),
            ("weekend", "(?P<unit>周末)", meanings.weekend),
        ]
    if words.language == "ja":
        side, unit = "(?P<side>先々|先|今|来|再来|さ来)", "(?P<unit>日|週間|ヶ月|か月|カ月|ヵ月|年)"
        of_year = rf"{YEAR}年の?|(?:(?P<yearside>一昨年|去年|昨年|今年|来年|再来年)|{_HAN_YEARS})の?"
        return [
            ("day.exact", rf"{_HAN_COUNT}{unit}前の?{offset}", meanings.day_away(-1)),
            ("day", offset, meanings.offset),
            ("holiday", f"(?:{of_year})?(?P<holiday>{any_of(words.holidays)})", meanings.holiday),
            ("season", f"(?:{of_year}){season}", meanings.season),
            ("monthday", rf"(?:{of_year})?{_HAN_MONTH}月{_HAN_DAY}日", meanings.day_and_month),
            ("month.part", rf"(?:{of_year})?{han_month}月の?{part}", meanings.part_of(meanings.month)),
            ("month", rf"(?:{of_year}){_HAN_MONTH}月", meanings.month),
            ("numeric", STROKED[1], meanings.numeric),
            ("day.of.month", rf"{side}(?P<unit>月)の?{_HAN_DAY}日", meanings.day_of_month),
            ("unit.part", rf"(?<![\d一二三四五六七八九十ヶか])(?:{side})?(?P<unit>月)の?{part}", meanings.part_of_unit),
            ("weekend", "(?<![先今来])(?P<unit>週末)", meanings.weekend),
            ("week.day", rf"{side}週の?(?P<weekday>[月火水木金土日])曜日?", meanings.weekday_of_week),
            ("unit", rf"{side}(?P<unit>週末|週|月)", meanings.side_unit),
            ("unit", "(?P<side>一昨|昨|去|今|来|再来)(?P<unit>年)", meanings.side_unit),
            ("ago", rf"{_HAN_COUNT}{unit}前", meanings.away(-1)),
            ("ahead", rf"{_HAN_COUNT}{unit}後", meanings.away(1)),
            ("month", rf"(?<![\d一二三四五六七八九十]){_HAN_MONTH}月(?!曜)", meanings.month),
            ("year", rf"{YEAR}年", meanings.year),
            ("weekday", r"(?P<weekday>[月火水木金土日])曜日?", meanings.weekday),
        ]
    side, count = "(?P<side>지난|이번|다음) ?", r"(?P<count>\d{1,3}|한|두|세|네) ?"
    return [
        ("day", offset, meanings.offset),
        ("monthday", rf"(?:{YEAR}년 ?)?(?P<month>1[0-2]|0?[1-9])월 ?(?P<day>[0-3]?\d)일", meanings.day_and_month),
        ("week.day", rf"{side}주 ?(?P<weekday>[월화수목금토일])요일", meanings.weekday_of_week),
        ("weekday", rf"{side}(?P<weekday>[월화수목금토일])요일", meanings.side_weekday),
        ("unit", rf"{side}(?P<unit>주말|주|달)", meanings.side_unit),
        ("ago", rf"{count}(?P<unit>일|주|달|개월|년) ?전", meanings.away(-1)),
        ("ahead", rf"{count}(?P<unit>일|주|달|개월|년) ?(?:후|뒤)", meanings.away(1)),
        ("month", rf"(?:{YEAR}년 ?)?(?P<month>1[0-2]|0?[1-9])월", meanings.month),
        ("weekday", "(?P<weekday>[월화수목금토일])요일", meanings.weekday),
    ]
