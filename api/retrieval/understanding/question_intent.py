"""Question intent: classifies a question by its wording: time, count, list, recall, overview, procedure, preference.

It also recognises what is not asked of a memory: small talk, and tasks such as a translation or a calculation.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from recollect.api.retrieval.understanding.fillers import is_filler
from recollect.api.retrieval.understanding.first_person import is_first_person
from recollect.api.retrieval.understanding.foreign_questions import ForeignIntent, foreign_intent
from recollect.api.retrieval.understanding.meal_requests import asks_for_meal
from recollect.events.late_pattern import late_pattern
from recollect.projections.text.answer_type import AnswerType, expected_answer

Intent = Literal[
    "time", "count", "list", "recall", "overview", "procedure", "preference", "small talk", "task", "other"
]

_WHEN = late_pattern(
    r"\b(?:when|since when|how long ago|what (?:date|day|month|year|time)|(?:which|what) (?:day|week|month|year))\b",
    re.I,
)
_COUNT = late_pattern(r"\bhow (?:many|much|often|long|old|far)\b|\b(?:number|amount|total) of\b", re.I)
#: The answer has several parts: a list, a number of things, a plural such as "which cities has he visited?".
_SEVERAL = late_pattern(
    r"\b(?:how (?:many|often)|(?:number|total) of|list|all (?:the|my|our|of)|"
    r"(?:what|which) (?:are|were|kinds?|types?|sorts?|things|places|other)|"
    r"(?:what|which) (?:\w{1,20} ){0,2}\w{2,20}[^s\W]s (?:has|have|had|do|does|did|are|were|am|is|was|can|could|should|"
    r"will|would))\b",
    re.I,
)
#: The answer is a person or a name.
_NAME = late_pattern(r"\b(?:who|whom|whose|who's|names?|named|called)\b", re.I)
_CALLED = late_pattern(r"\b(?:names?|named|called)\b", re.I)
#: The answer has a number, besides those of `_COUNT`.
_FIGURE = late_pattern(
    r"\b(?:costs?|prices?|fees?|rent|owe|owes|paid|pay|size|temperature|code|pin|password|number|phone|weighs?|height|"
    r"age|distance|percent|score|budget|salary|what floor|which floor|degrees)\b|"
    r"\bhow (?:wide|tall|high|heavy|big|deep|fast)\b",
    re.I,
)
#: The present state is asked for, so that of several statements the newest counts.
_PRESENT = late_pattern(
    r"\b(?:is|are|am|do|does|has|have|can|will|currently|now|still)\b|\b(?:what|who|where|when|how)['’]?s\b", re.I
)
_PAST = late_pattern(
    r"\b(?:was|were|did|had|used to|before|previous\w*|former\w*|first|originally|back then|ago|in the past|old|"
    r"earlier|last (?:week|month|year|time|summer|winter|spring|autumn))\b",
    re.I,
)
_LIST = late_pattern(
    r"\b(?:list|all (?:the|my|of)|which|what (?:are|were|kinds?|types?|sorts?|things|places|other)|summar\w+|order)\b",
    re.I,
)
#: Words of the assistant are the answer.
_RECALL = late_pattern(
    r"\byou (?:told|said|mentioned|recommended|suggested|gave|explained|described|provided|proposed|showed|listed|sent|"
    r"wrote|asked|advised)\b|\byour (?:advice|answer|suggestion|recommendation|last|previous|earlier)\b|"
    r"\b(?:did|had|have) you (?:just |already |ever )?(?:tell|told|say|said|mention(?:ed)?|recommend(?:ed)?|"
    r"suggest(?:ed)?|give|given|explain(?:ed)?|describe[d]?|propose[d]?|show(?:n|ed)?|list(?:ed)?|wr[io]te|written|"
    r"advise[d]?)\b",
    re.I,
)
#: What the user said to the assistant, which `_RECALL` would match.
_TOLD_BY_USER = late_pattern(r"\b(?:i|we) (?:told|asked|gave|sent|showed|mentioned to|said to) you\b", re.I)
#: A question of the user is asked for; "what did I ask Anna?" and "what did I ask you to do?" ask for no question.
_OWN_QUESTION = late_pattern(
    r"\b(?:did|have|had) (?:i|we) (?:just |already |ever |last )?ask(?:ed)?(?: you)?"
    r"(?:\W*$| (?:about|regarding|on|in|last|yesterday|today|this|before|earlier|recently|so)\b)|"
    r"\bquestions? (?:that )?(?:did |have |had )?(?:i|we) (?:ask|asked|had|have)\b|"
    r"\b(?:was|were|is|are) (?:my|our) (?:last |previous |first |earlier |open |other )?questions?\b",
    re.I,
)
#: Everything about a person or a topic is asked for.
_OVERVIEW = late_pattern(
    r"\b(?:what (?:do|did|can|have) (?:you|i|we) (?:\w+ )?(?:remember|know|recall|tell you|told you|have|got|learn\w*|"
    r"say|said|decided?|discuss|discussed|plan|planned) (?:about|on|of|for|with)|everything (?:about|you know|i told)|"
    r"tell me (?:all|everything|more|what you know)? ?about|who(?: is|'s|’s| was| are)|summar\w+|sum up|recap|overview|"
    r"list (?:all|every|of|my|our|the)|all (?:the|my|our|of) \w+|what (?:are|were) (?:all )?(?:my|our|the) \w+s\b)",
    re.I,
)
_PROCEDURE = late_pattern(
    r"\bhow (?:do|can|should|would|to)\b|\b(?:steps?|procedure|instructions?|deploy|set ?up)\b", re.I
)
_PREFERENCE = late_pattern(
    r"\b(?:recommend|suggest|advice|advise|should i|prefer\w*|favou?rite|ideas?|what would|options?|"
    r"help me (?:choose|pick))\b",
    re.I,
)
#: Requests to remember; not "I can still remember the smell", nor "remember that …", which asks to store something.
_REMEMBER = late_pattern(
    r"\b(?:do|can|could|did|don'?t|will) you (?:still |also |even )?(?:remember|recall)\b|"
    r"(?:^|[.!?,\n]\s?)(?:and |so |but |hey |hi )?(?:remember|recall) "
    r"(?:when|how|the time|that time|what|who|where|our)\b|"
    r"\bremind me (?:of|what|who|when|where|which|how|why)\b|\blast time (?:we|i|you)\b|\bback when (?:we|i|you)\b|"
    r"\b(?:as|like|what|when|did|have|had) (?:we|i) (?:already |ever )?"
    r"(?:talk|talked|spoke|speak|discuss|discussed|told|tell)\b",
    re.I,
)
#: A task that needs no memory of the user: it begins with what to do.
_TASK = late_pattern(
    r"^\W*+(?:please |can you |could you |would you |now |ok,? )*+"
    r"(?:(?:translate|spell|define|calculate|compute|convert|solve|rephrase|rewrite|proofread|paraphrase|implement|debug)\b|"
    r"tell (?:me|us) (?:a|another|an) (?:\w+ )?(?:joke|story|riddle|poem|fact)|explain (?:how|what|why|the)\b|"
    r"(?:write|compose|draft|generate|create|give) (?:me |us )?(?:a|an|some|the|\d+) |"
    r"what(?:'s|’s| is) (?:the )?(?:\d|square root|meaning of|definition of|plural of|synonym)|"
    r"how (?:do|would) (?:you|i) (?:spell|say|write|pronounce) )",
    re.I,
)
#: A reference to something that was said or done before.
_SHARED_PAST = late_pattern(
    r"\b(?:again|last time|the other day|back then|earlier|before)\W*$|\b(?:last time|remember)\b", re.I
)
_POSSESSIVE = late_pattern(r"\b(?:my|our)\b", re.I)
#: A question about the world in the first person, such as "how do I reverse a list", and quoted words.
_IMPERSONAL = late_pattern(r"\bhow (?:do|does|can|could|should|would|to) (?:i|we|one|you)\b|\"[^\"]{1,80}\"", re.I)


class QuestionIntent(Struct, frozen=True):
    """The intents that the wording of a question matches. The names of the fields are keys of traces."""

    when: bool
    count: bool
    #: The answer has a number, though none is counted: a price, a size, a code.
    figure: bool
    #: The types of the answer, as far as the wording shows them.
    answer: AnswerType
    #: The answer is a name.
    name: bool
    #: The answer is what a person or a thing is called.
    called: bool
    #: The present state is asked for.
    present: bool
    #: The state before the present one is asked for.
    past: bool
    list: bool
    #: An earlier message of the assistant is asked for.
    recall: bool
    #: An earlier question of the user is asked for.
    own_question: bool
    #: All that memory has about a person or a topic is asked for.
    overview: bool
    procedure: bool
    preference: bool
    #: A distant memory is asked for, which raises the limits of a passive retrieval.
    remember: bool
    #: Greetings, thanks and assent alone.
    small_talk: bool
    #: Something that is done without a memory, such as a translation.
    task: bool
    #: Something to eat is asked for: what people do not eat belongs to the answer.
    meal: bool
    #: The question refers to the speaker, or to what was said before.
    personal: bool

    @property
    def intent(self) -> Intent:
        """Return the main intent: the first that applies, in the order of precedence."""
        kinds: list[tuple[bool, Intent]] = [
            (self.small_talk, "small talk"),
            (self.task, "task"),
            (self.when, "time"),
            (self.count, "count"),
            (self.recall, "recall"),
            (self.overview, "overview"),
            (self.preference, "preference"),
            (self.procedure, "procedure"),
            (self.list, "list"),
        ]
        applying: list[Intent] = [intent for applies, intent in kinds if applies]
        return applying[0] if applying else "other"


def question_intent(question: str) -> QuestionIntent:
    """Return the intents that the wording of `question` matches."""

    def matches(pattern: re.Pattern[str]) -> bool:
        return pattern.search(question) is not None

    foreign = foreign_intent(question) or ForeignIntent()
    return QuestionIntent(
        when=foreign.when or matches(_WHEN),
        count=foreign.count or matches(_COUNT),
        figure=matches(_FIGURE),
        answer=expected_answer(question),
        name=foreign.name or matches(_NAME),
        called=matches(_CALLED),
        present=matches(_PRESENT) and not matches(_PAST),
        past=matches(_PAST),
        list=matches(_LIST),
        recall=foreign.recall or (matches(_RECALL) and not matches(_TOLD_BY_USER)),
        own_question=matches(_OWN_QUESTION),
        overview=foreign.overview or matches(_OVERVIEW),
        procedure=matches(_PROCEDURE),
        preference=foreign.preference or matches(_PREFERENCE),
        remember=foreign.remember or matches(_REMEMBER),
        small_talk=is_filler(question),
        task=foreign.task or (matches(_TASK) and not matches(_SHARED_PAST) and not matches(_POSSESSIVE)),
        meal=asks_for_meal(question),
        personal=_is_personal(question),
    )


def asks_for_several(question: str) -> bool:
    """Return whether a question asks for a list, for a number of things, or for all about a person or a topic."""
    return _SEVERAL.search(question) is not None or _OVERVIEW.search(question) is not None


def _is_personal(question: str) -> bool:
    """Return whether a question refers to the speaker, or to what was said before."""
    return is_first_person(_IMPERSONAL.sub(" ", question)) or _SHARED_PAST.search(question) is not None


#: A capitalised word after another word. The capital comes first: `re` looks for one of a set of characters fast.
_CAPITALISED = late_pattern(r"[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω](?<=[\w,;:'’\"(] .)[\w-]++")
#: Characters of a text that are searched for names.
_NAME_CHARS_MAX = 1_000
#: Capitalised words that are not names.
_NO_NAMES = frozenset(("i", "i'm", "i've", "i'll", "i'd"))


def capitalised_words(text: str) -> set[str]:
    """Return the capitalised words inside the sentences of `text`, case-folded: mostly names."""
    return {word.casefold() for word in _CAPITALISED.findall(text[:_NAME_CHARS_MAX])} - _NO_NAMES


def has_other_name(text: str, words: Collection[str]) -> bool:
    """Return whether `capitalised_words` has a word that is not among case-folded `words`; the first one decides."""
    names = (match.group().casefold() for match in _CAPITALISED.finditer(text[:_NAME_CHARS_MAX]))
    return any(name not in words and name not in _NO_NAMES for name in names)
