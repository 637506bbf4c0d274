"""Answer type: what kind of expression answers a question, such as an amount of money, and which texts have one.

Expected answer types are a common part of question answering (Li and Roth 2002, Learning Question Classifiers).
"""

from __future__ import annotations

import re
from enum import IntFlag

from recollect.events.late_pattern import late_pattern
from recollect.projections.text.stems import content_stems
from recollect.projections.text.words import spaced_words


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
    r"(?:\d+|half an?|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|"
    r"fifty|sixty|ninety|hundred)"
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
#: Compared with texts in lower case: to ignore the case takes up to four times as long. A digit comes first, since
#: `re` looks for one of a set of characters fast.
_SIGNS = {
    AnswerType.MONEY: r"[$€£¥]\s?\d|\d(?<![\d.,\w]\d)[\d.,]*+\s?(?:[$€£¥]|(?:euros?|dollars?|bucks|pounds?|francs?|"
    r"cents?|eur|usd|gbp|chf|kr|yen|rupees|pesos?|zloty|crowns?|forints?|lei|lira|reais|rand|"
    r"a (?:month|year|week|night|hour))\b)",
    AnswerType.CLOCK: r"\d(?<!\w\d)\d?(?:[:.]\d\d| ?(?:am|pm|o'clock|h))\b|"
    r"\d(?:(?<=\bat \d)|(?<=\buntil \d)|(?<=\btill \d)|(?<=\bfrom \d))\d?\b",
    AnswerType.DIGITS: r"\d(?:[ ./-]?\d){3}",
}
#: Compared with `spaced_words`.
_WORDS = {
    AnswerType.DURATION: rf" {_NUMBER} (?:\w{{1,20}} )?(?:second|minute|min|hour|day|night|week|month|year)s?\b",
    AnswerType.AGE: rf" (?:turn(?:s|ed|ing)?|aged?|(?:is|am|are|was|s|m)(?: only| just| already| now)?) {_NUMBER}\b|"
    rf" {_NUMBER} (?:year|month|week)s? old\b| \d{{1,3}}(?:st|nd|rd|th) birthday\b",
    AnswerType.CLOCK: r" (?:noon|midnight)\b",
    AnswerType.COLOUR: r" (?:red|blue|green|yellow|orange|purple|violet|pink|brown|black|white|gr[ae]y|beige|turquoise|"
    r"silver|gold(?:en)?|cream|navy|teal|colou?red)\b",
    AnswerType.REASON: r" (?:because|cause|since|so that|due to|thanks to|therefore|otherwise|in order to|"
    r"as (?:i|we|he|she|it|they))\b",
}
_PLACE = late_pattern(
    r"\b(?:in|at|to|from|near|behind|under|on|next to|opposite|around|inside) "
    r"(?:(?:the|my|our|his|her|their|a) |(?-i:[A-ZÀ-ÖØ-Þ])|\d)",
    re.I,
)
_QUESTION_PATTERNS = {kind: late_pattern(rf"\b(?:{pattern})\b", re.I) for kind, pattern in _QUESTIONS.items()}
#: By plain numbers: a comparison of two flags takes ten times as long, and these are made for every text.
_SIGN_PATTERNS = [(int(kind), late_pattern(pattern)) for kind, pattern in _SIGNS.items()]
_WORD_PATTERNS = [(int(kind), late_pattern(pattern)) for kind, pattern in _WORDS.items()]
#: A number and up to three words after it, in `spaced_words`.
_COUNTED = late_pattern(rf" {_NUMBER} (?=((?:\w{{1,40}} ?){{1,3}}))")
#: Characters of a text that are searched for counted things.
_CHARS_MAX = 1_000


def expected_answer(question: str) -> AnswerType:
    """Return the types of answers that a question asks for; empty when its wording shows none."""
    return AnswerType(sum(kind for kind, pattern in _QUESTION_PATTERNS.items() if pattern.search(question)))


def answer_types(text: str, required: int) -> int:
    """Return the types of answers that a text has among those of `required`, as bits.

    They are stored as flags of the text: a change of them is a change of `TEXT_FLAGS_VERSION`.
    """
    if not required:
        return 0
    lowered, words = text.lower(), spaced_words(text)
    types = 0
    for patterns, compared in ((_SIGN_PATTERNS, lowered), (_WORD_PATTERNS, words)):
        for kind, pattern in patterns:
            if required & kind and pattern.search(compared) is not None:
                types |= kind
    place = required & AnswerType.PLACE.value
    return types | place if place and _PLACE.search(text) is not None else types


def counts_any(text: str, stems: frozenset[str]) -> bool:
    """Return whether a text has a number of things whose name is in `stems`: `two sugars`."""
    counted: list[str] = _COUNTED.findall(spaced_words(text[:_CHARS_MAX]))
    return not stems.isdisjoint(content_stems(" ".join(counted)))
