"""Preferences: the object of `I love …` up to the end of its phrase, and its exceptions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from recollect.events.late_pattern import late_pattern
from recollect.jobs.extraction.rules import RuleMatch

#: `fish, but not salmon`; `dogs except poodles`.
_EXCEPTION = late_pattern(r",? (?:(?:but|just|though) not|except(?: for)?|apart from) (?=\S)", re.IGNORECASE)
#: What ends a phrase: a sign, or a word that begins a clause.
_PHRASE_END = late_pattern(
    r"[;:!?()]|\.(?:\s|$)|\s[-–—]+\s|,? (?:but|because|so|which|who|that|when|while|since|if|although|though|where|until|"
    r"and (?:I|we|he|she|they|it|you|my|our|then|also|am|is|are|was|have|had))\b|, (?:I|we|he|she|they|it|you|my|can|could|what|how)\b| too\b| any ?more\b",
    re.IGNORECASE,
)
#: A phrase that means nothing outside of the conversation. Of the 19 preferences that the patterns read in 120 chats, five
#: were of a `him` or `her`, and none of them was worth keeping.
_POINTING = late_pattern(
    r"\b(?:you|your|it|him|her|this|that|these|those|them|here|there|something|anything|everything)\b", re.IGNORECASE
)
_CLAUSE_END = late_pattern(r"[.;!?]")
#: Characters between what is liked and its exception.
_EXCEPTION_CHARS_MAX = 120
_NO_EXCEPTION = late_pattern(r"^(?:really|always|too|very|so|when|if|in|at|with|for|to|because|the\b)", re.IGNORECASE)
#: `I would rather walk`, but not `I would rather have tea`.
_RATHER = late_pattern(r"\brather ?$")
_THAN = late_pattern(r"(?<!more)(?<!less)(?<!better) than ")
_OPPOSITES = {"likes": "dislikes", "dislikes": "likes"}
#: Words of the whole object; a longer one is a story.
_WORDS_MAX = 14
#: The categories of preferences, with patterns of their words; the first match wins.
_CATEGORIES = {
    category: late_pattern(rf"\b(?:{words})\b", re.IGNORECASE)
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


def stated_preferences(sentence: str, match: RuleMatch) -> Iterator[tuple[str, str]]:
    """Yield the value and the object of a preference, and those of its exception; nothing without a lasting object."""
    position = sentence.find(match.object[:20], match.start)
    value, phrase = match.predicate, match.object
    if match.rule.object != "{thing}" or position < 0:
        yield value, phrase
        return
    phrase = _phrase_at(sentence, position)
    if phrase is None or len(phrase.split()) > _WORDS_MAX:
        return
    # `I would rather use Podman than Docker`.
    is_verb = _RATHER.search(sentence[match.start : position]) is not None
    if value == "prefers":
        phrase = _THAN.sub(" rather than " if is_verb else " to ", phrase, count=1)
    exception = _EXCEPTION.search(sentence, position, position + _EXCEPTION_CHARS_MAX)
    if exception is not None and value in _OPPOSITES and not _CLAUSE_END.search(sentence[position : exception.start()]):
        phrase = _before_exception(phrase)
        other = _phrase_at(sentence, exception.end())
        if other and not _NO_EXCEPTION.match(other):
            yield _OPPOSITES[value], other
    yield value, f"to {phrase}" if is_verb else phrase


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
