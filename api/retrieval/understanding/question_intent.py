"""Question intent: classifies a question by its wording: time, count, list, recall, procedure, preference."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Intent = Literal["time", "count", "list", "recall", "procedure", "preference", "small talk", "other"]

_WHEN = re.compile(
    r"\b(?:when|since when|how long ago|what (?:date|day|month|year|time)|(?:which|what) (?:day|week|month|year))\b",
    re.I,
)
_COUNT = re.compile(r"\bhow (?:many|much|often|long|old|far)\b|\b(?:number|amount|total) of\b", re.I)
_LIST = re.compile(
    r"\b(?:list|all (?:the|my|of)|which|what (?:are|were|kinds?|types?|sorts?|things|places|other)|summar\w+|order)\b",
    re.I,
)
_RECALL = re.compile(
    r"\byou (?:told|said|mention\w*|recommend\w*|suggest\w*|gave|explain\w*|describ\w*|provid\w*|propos\w*|show\w*|"
    r"list\w*|sent|wrote|asked)\b|\byour (?:advice|answer|suggestion|recommendation|last|previous|earlier)\b",
    re.I,
)
_PROCEDURE = re.compile(
    r"\bhow (?:do|can|should|would|to)\b|\b(?:steps?|procedure|instructions?|deploy|set ?up)\b", re.I
)
_PREFERENCE = re.compile(
    r"\b(?:recommend|suggest|advice|advise|should i|prefer\w*|favou?rite|ideas?|what would|options?|"
    r"help me (?:choose|pick))\b",
    re.I,
)
_REMEMBER = re.compile(
    r"\b(?:remember (?:when|that|the|how)|do you (?:remember|recall)|last time|back (?:when|in)|the other day|long ago|"
    r"earlier (?:you|we|i)|we (?:talked|spoke|discussed))\b",
    re.I,
)
_SMALL_TALK = re.compile(
    r"^\W*(?:(?:hi|hello|hey|yo|thanks?|thank you|ok(?:ay)?|great|cool|nice|sure|yes|no|bye|lol|haha+|wow|"
    r"good (?:morning|evening|night)|there|so much|a lot|very|again|then|please)\W*)+$",
    re.I,
)

#: Flags of a text, as bits, which `ranking.features` combines with the intent of the query.
QUESTION, TIME, NUMBER, PREFERENCE = 1, 2, 4, 8
_TIME_WORDS = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|last|next|ago|weeks?|weekend|months?|years?|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|summer|winter|spring|fall|"
    r"autumn|morning|recently|since|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:19|20)\d\d)\b",
    re.I,
)
_NUMBER_WORDS = re.compile(
    r"\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|once|twice|couple|several|dozen|first|second|third)\b",
    re.I,
)
_PREFERENCE_WORDS = re.compile(r"\b(?:prefer\w*|favou?rite|love|like|enjoy|hate|always|never|usually|want)\b", re.I)


@dataclass(frozen=True, slots=True)
class QuestionIntent:
    """The intents that the wording of a question matches. The names of the fields are keys of traces."""

    when: bool
    count: bool
    list: bool
    #: An earlier message of the assistant is asked for.
    recall: bool
    procedure: bool
    preference: bool
    #: A distant memory is asked for, which raises the limits of a passive retrieval.
    remember: bool
    small_talk: bool

    @property
    def intent(self) -> Intent:
        """Return the main intent: the first that applies, in the order of precedence."""
        kinds: list[tuple[bool, Intent]] = [
            (self.small_talk, "small talk"),
            (self.when, "time"),
            (self.count, "count"),
            (self.recall, "recall"),
            (self.preference, "preference"),
            (self.procedure, "procedure"),
            (self.list, "list"),
        ]
        applying: list[Intent] = [intent for applies, intent in kinds if applies]
        return applying[0] if applying else "other"


def question_intent(question: str) -> QuestionIntent:
    """Return the intents that the wording of `question` matches."""
    patterns = (_WHEN, _COUNT, _LIST, _RECALL, _PROCEDURE, _PREFERENCE, _REMEMBER, _SMALL_TALK)
    return QuestionIntent(*(pattern.search(question) is not None for pattern in patterns))


def text_flags(text: str, required: int) -> int:
    """Return the flags of a text among those of `required`, as bits."""
    # A question mark inside a long text does not make it a question.
    is_question = text.rstrip().endswith("?") or ("?" in text and len(text) < 200)
    flags = QUESTION * (is_question and required & QUESTION > 0)
    for flag, pattern in ((TIME, _TIME_WORDS), (NUMBER, _NUMBER_WORDS), (PREFERENCE, _PREFERENCE_WORDS)):
        if required & flag and pattern.search(text) is not None:
            flags |= flag
    return flags
