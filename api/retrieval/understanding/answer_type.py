"""Answer type: what kind of expression answers a question, such as an amount of money, and which texts have one.

Expected answer types are a common part of question answering (Li and Roth 2002, Learning Question Classifiers).
"""

from __future__ import annotations

import re
from enum import IntFlag

from recollect.projections.text.stems import content_stems


class AnswerType(IntFlag):
    """The types of an answer; several may be expected, and a text may have several."""

    #: An amount of money.
    MONEY = 1
    #: A length of time.
    DURATION = 2
    AGE = 4
    #: A time of day.
    CLOCK = 8
    COLOUR = 16
    #: A number of several digits, such as a phone number or a code.
    DIGITS = 32
    PLACE = 64
    REASON = 128


_NUMBER = (
    r"(?:(?<![\d.,])\d[\d.,]*+|half an?|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|"
    r"twenty|thirty|forty|fifty|sixty|ninety|hundred)"
)
_QUESTIONS = {
    AnswerType.MONEY: r"costs?|prices?|fees?|rent|owes?|paid|pays?|salary|budget|worth|charged?|deposit|"
    r"how much (?:is|are|was|were|did|do|does|for|money|would|will)",
    AnswerType.DURATION: r"how long|how many (?:minutes|hours|days|weeks|months|years)",
    AnswerType.AGE: r"how old|age",
    AnswerType.CLOCK: r"(?:what|which) time|(?:open|close|start|begin|leave|arrive)s?(?=\W*$)",
    AnswerType.COLOUR: r"colou?rs?",
    AnswerType.DIGITS: r"number|phone|code|pin|password|combination|plate|zip|postcode",
    AnswerType.PLACE: r"where|(?:which|what) (?:place|town|city|country|street|room|shop|restaurant)",
    AnswerType.REASON: r"why|how come|what for|reason",
}
#: Compared with texts in lower case: to ignore the case takes up to four times as long.
_ANSWERS = {
    AnswerType.MONEY: r"[$€£¥]\s?\d|(?<![\d.,])\b\d[\d.,]*+\s?(?:[$€£¥]|(?:euros?|dollars?|bucks|pounds?|francs?|"
    r"cents?|eur|usd|gbp|chf|kr|yen|rupees|pesos?|zloty|crowns?|forints?|lei|lira|reais|rand|"
    r"a (?:month|year|week|night|hour))\b)",
    AnswerType.DURATION: rf"\b{_NUMBER}[ -](?:\w{{1,20}} )?(?:second|minute|min|hour|day|night|week|month|year)s?\b",
    AnswerType.AGE: r"\b(?:turn(?:s|ed|ing)?|aged?|(?:is|am|are|was|['’]s|['’]m)(?: only| just| already| now)?) "
    rf"{_NUMBER}\b|\b{_NUMBER}[ -](?:year|month|week)s?[ -]old\b|\b\d{{1,3}}(?:st|nd|rd|th) birthday\b",
    AnswerType.CLOCK: r"\b\d{1,2}[:.]\d\d\b|\b\d{1,2} ?(?:am|pm|o'clock|h)\b|\b(?:noon|midnight)\b|"
    r"\b(?:at|until|till|from) \d{1,2}\b",
    AnswerType.COLOUR: r"\b(?:red|blue|green|yellow|orange|purple|violet|pink|brown|black|white|gr[ae]y|beige|"
    r"turquoise|silver|gold(?:en)?|cream|navy|teal|colou?red)\b",
    AnswerType.DIGITS: r"\d(?:[ ./-]?\d){3}",
    AnswerType.REASON: r"\b(?:because|cause|since|so that|due to|thanks to|therefore|otherwise|in order to|"
    r"as (?:i|we|he|she|it|they))\b",
}
_PLACE = re.compile(
    r"\b(?:in|at|to|from|near|behind|under|on|next to|opposite|around|inside) "
    r"(?:(?:the|my|our|his|her|their|a) |(?-i:[A-ZÀ-ÖØ-Þ])|\d)",
    re.I,
)
_QUESTION_PATTERNS = {kind: re.compile(rf"\b(?:{pattern})\b", re.I) for kind, pattern in _QUESTIONS.items()}
#: By plain numbers: a comparison of two flags takes ten times as long, and these are made for every text.
_ANSWER_PATTERNS = [(int(kind), re.compile(pattern)) for kind, pattern in _ANSWERS.items()]
#: A number and up to three words after it, in lower case: without `re.I`, which takes three times as long.
_COUNTED = re.compile(rf"\b{_NUMBER}\s++(?=((?:[\w'-]{{1,40}}\s*+){{1,3}}))")
#: Characters of a text that are searched for counted things.
_CHARS_MAX = 1_000


def expected_answer(question: str) -> AnswerType:
    """Return the types of answers that a question asks for; empty when its wording shows none."""
    return AnswerType(sum(kind for kind, pattern in _QUESTION_PATTERNS.items() if pattern.search(question)))


def answer_types(text: str, required: int) -> int:
    """Return the types of answers that a text has among those of `required`, as bits."""
    if not required:
        return 0
    lowered = text.lower()
    types = sum(kind for kind, pattern in _ANSWER_PATTERNS if required & kind and pattern.search(lowered))
    place = required & AnswerType.PLACE.value
    return types | place if place and _PLACE.search(text) is not None else types


def counts_any(text: str, stems: frozenset[str]) -> bool:
    """Return whether a text has a number of things whose name is in `stems`: `two sugars`."""
    return any(not stems.isdisjoint(content_stems(match[1])) for match in _COUNTED.finditer(text[:_CHARS_MAX].lower()))
