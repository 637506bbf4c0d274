"""Preferences: the object of `I love …` up to the end of its phrase, its exceptions, and what is a mere reaction."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

#: Objects that are no lasting preference: parts of what is spoken of, and the speaker's feelings about the moment.
_REACTION = re.compile(
    r"^(?:the\b(?! (?:outdoors|ocean|sea|beach|mountains?|rain|snow|sun|cold|heat|summer|winter|autumn|fall|spring|city|country\w*|"
    r"forest|woods|gym|theat(?:er|re)|opera|night|dark|water|desert|arts|piano|guitar|violin|drums)(?=$|[,.;!]| (?:and|or|in|at|on|by|with|of|than|too|when|because|weather|air|life)\b)"
    r"| colou?r (?!and\b|or\b|of\b)\w| (?-i:[A-ZÀ-Þ]))|"
    r"how\b|when\b|that\b|it\b|seeing\b|hearing\b|being (?:able|here|there|around|part)|having\b|knowing\b|getting to|"
    r"to (?:see|hear|know|know|think|say|ask|talk|chat|help|be able|get|learn more|discuss|make sure|start|explore|have|understand|ensure|use this|keep)\b|"
    r"my\b(?! (?:job|work|coffee|tea|steak|eggs))|our\b|his\b|her\b|their\b|its\b|some\b|any\b|all (?:the|of|those|these)|both (?:of|the)\b|each\b|every\b|"
    r"\w+'s\b|looking (?:for|into)|trying to|using (?:the|this)|talking (?:to|with)|chatting|working with the|"
    r"(?:a|an) (?:good|great|nice|bit|lot|couple|few|more\b(?! \w+ed))|more\b|what\b|no\b|colou?r\b|theme\b|idea\b|(?:\w+ ){0,3}fan$)",
    re.IGNORECASE,
)
#: `fish, but not salmon`; `dogs except poodles`.
_EXCEPTION = re.compile(r",? (?:(?:but|just|though) not|except(?: for)?|apart from) (?=\S)", re.IGNORECASE)
#: What ends a phrase: a sign, or a word that begins a clause.
_PHRASE_END = re.compile(
    r"[;:!?()]|\.(?:\s|$)|\s[-–—]+\s|,? (?:but|because|so|which|who|that|when|while|since|if|although|though|where|until|"
    r"and (?:I|we|he|she|they|it|you|my|our|then|also|am|is|are|was|have|had))\b|, (?:I|we|he|she|they|it|you|my|can|could|what|how)\b| too\b| any ?more\b",
    re.IGNORECASE,
)
#: A phrase that means nothing outside of the conversation.
_POINTING = re.compile(
    r"\b(?:you|your|it|this|that|these|those|them|here|there|something|anything|everything)\b", re.IGNORECASE
)
_CLAUSE_END = re.compile(r"[.;!?]")
#: Characters between what is liked and its exception.
_EXCEPTION_CHARS_MAX = 120
_NO_EXCEPTION = re.compile(r"^(?:really|always|too|very|so|when|if|in|at|with|for|to|because|the\b)", re.IGNORECASE)
_STRONGLY = re.compile(r"\b(?:really|absolutely|totally|so much|very|completely|always|definitely)\b", re.IGNORECASE)
#: `Contemporary is my top pick`.
_IS_MY = re.compile(r" (?:is|are) my\b")
#: `I would rather walk`, but not `I would rather have tea`.
_RATHER = re.compile(r"\brather ?$")
_THAN = re.compile(r"(?<!more)(?<!less)(?<!better) than ")
#: `I prefer no meetings` and `not to fly` would be turned round by a verb of liking.
_NEGATED = re.compile(r"(?:no|not|never|nothing|nobody|without)\b", re.IGNORECASE)
_PRONOUNS = frozenset(
    "huge big massive true great good bad nice kind private people they he she it this that these those you we".split()
)
_OPPOSITES = {"likes": "dislikes", "dislikes": "likes"}
_INTENSITY = 0.1
#: Words of the whole object; a longer one tells a story.
_WORDS_MAX = 14
#: The categories of preferences, with patterns of their words; the first match wins.
_CATEGORIES = {
    category: re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for category, words in (
        ("communication", r"answers?|repl(?:y|ies)|respon[ds]\w*|tone|explain\w*|explanations?|call me|language|english|formal|"
         r"brief|short|concise|detailed"),
        ("formatting", r"markdown|bullets?|tables?|headings?|code blocks?|emojis?|format\w*|tabs|spaces|indent\w*|json|camelcase"),
        ("tools", r"vim|emacs|vs ?code|editor|ide|terminal|python|rust|java\w*|typescript|docker|linux|windows|mac|git\w*|"
         r"sql\w*|postgres\w*"),
        ("scheduling", r"meetings?|mornings?|afternoons?|evenings?|calendar|schedul\w*|appointments?|calls?"),
        ("workflow", r"tests?|commits?|reviews?|deploy\w*|drafts?|plans?|steps?|ask|confirm|check"),
    )
}  # fmt: skip


class StatedPreference(NamedTuple):
    """What is liked, disliked or preferred."""

    value: str
    object: str
    #: From 0 to 1.
    strength: float


def stated_preferences(
    sentence: str, start: int, value: str, object: str, strength: float
) -> Iterator[StatedPreference]:
    """Yield a preference and its exception; nothing when it is a reaction to what another person said.

    Parameters:
        start: position of the clause in the sentence.
        object: the object of the pattern, whose beginning is that of the phrase.
    """
    position = sentence.find(object[:20], start)
    is_named_first = _IS_MY.match(sentence, position + len(object)) is not None
    phrase = _phrase_at(sentence, position) if position >= 0 and not is_named_first else object
    if (
        phrase is None
        or not phrase
        or phrase.casefold() in _PRONOUNS
        or _REACTION.match(phrase)
        or len(phrase.split()) > _WORDS_MAX
    ):
        return
    if value == "prefers":
        # `I would rather use Podman than Docker`.
        is_verb = _RATHER.search(sentence[start:position]) is not None
        phrase = _THAN.sub(" rather than " if is_verb else " to ", phrase, count=1)
    if _NEGATED.match(phrase):
        return
    phrase = phrase.removeprefix("both ")
    if _RATHER.search(sentence[start:position]):
        phrase = f"to {phrase}"
    if " person" in sentence[position : position + len(object) + 10] and len(object) < len(phrase):
        phrase = object
    stress = _INTENSITY if position > 0 and _STRONGLY.search(sentence[start:position]) else 0.0
    exception = _EXCEPTION.search(sentence, position, position + _EXCEPTION_CHARS_MAX)
    if exception is not None and value in _OPPOSITES and not _CLAUSE_END.search(sentence[position : exception.start()]):
        phrase = _before_exception(phrase)
        other = _phrase_at(sentence, exception.end())
        if other and not _NO_EXCEPTION.match(other):
            yield StatedPreference(_OPPOSITES[value], other, strength)
    yield StatedPreference(value, phrase, round(min(0.95, strength + stress), 3))


def _before_exception(phrase: str) -> str:
    """Return the phrase without `except …`."""
    for words in (" except", " apart from", " just not"):
        phrase = phrase.partition(words)[0]
    return phrase.rstrip(" ,")


def _phrase_at(sentence: str, position: int) -> str | None:
    """Return the phrase from a position to the end of its clause; None when it points to the conversation."""
    end = _PHRASE_END.search(sentence, position)
    phrase = sentence[position : len(sentence) if end is None else end.start()].strip(" ,")
    return None if not phrase or _POINTING.search(phrase) else phrase


def category_of(text: str) -> str:
    """Return the first category of preferences whose pattern matches `text`."""
    return next((name for name, pattern in _CATEGORIES.items() if pattern.search(text)), "other")
