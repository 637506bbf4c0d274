"""Statement modality: finds hypotheses, reports and doubts in sentences."""

from __future__ import annotations

import re
from functools import lru_cache

from recollect.events.late_pattern import late_pattern

#: Words after which a sentence states no fact: `if I lived in`, `I wish I had`, `she asked whether I`.
_NON_FACTUAL = late_pattern(
    r"\b(?:if|unless|whether|wish|imagine|imagining|suppose|supposing|pretend|pretending|hypothetically|would|could|might|"
    r"dreamed|dreamt|in theory|as if|what if|not true that|never said|lyrics|my character|the character|protagonist|"
    r"in (?:the|my|a|this|that|our) (?:\w{1,20} )?(?:novel|story|movie|film|game|book|dream|play|scene|campaign)|"
    r"(?:say|says|said|writes|wrote|asks|asked|replied|answered|told me)(?=:)|he said|she said|they said|you said|says that|claims|joke|jokes|for example|e\.g|for instance)\b",
    re.IGNORECASE,
)
#: What others say, think or heard, and what the speaker said to others: it may be true or not.
_REPORTED = late_pattern(
    r"\b(?<!\bI )(?<!\bwe )(?:says|said|tells|told|thinks|thought|believes|believed|claims|claimed|insists|insisted|swears|swore|hears|heard|writes|wrote|"
    r"texts|texted|posts|posted|jokes|joked|assumes|assumed|reckons|suspects|suspected|announced|mentions|mentioned|repeated|convinced|pretends|pretended|"
    r"accuses|accused|(?:keeps?|kept|is|are|was|were|go(?:es)? around|been) (?:saying|telling|claiming|spreading|joking|insisting|convinced))\b|"
    r"\b(?:they|people|folks|everyone|everybody|others|some|kids|parents|friends|colleagues|neighbou?rs|doctors) (?:\w{2,12} )?(?:say|think|believe|claim|tell|assume)\b|"
    r"\b(?:according to|allegedly|supposedly|rumou?rs?|gossip|word is|it is said|story goes|myth|lie|lies|lied|lying|pretended|as a joke|for fun|as a test)\b|"
    r"(?<!\b[Aa]s )\bI (?:have |had |just |once |always |even |almost )?(?:said|told (?!you\b)|tell (?!you\b)|texted|wrote|heard|thought|pretended|dreamed|claimed)\b(?! you\b)",
    re.IGNORECASE,
)
#: The same after the words: `I am a plumber, says the sign`.
_REPORTED_AFTER = late_pattern(
    r",\s{1,2}(?:is what\s)?(?:[\w'-]{1,20}\s){0,4}(?:says|said|claims|claimed|thinks|thought|writes|wrote|told me|tells me|replied|answered)"
    r"(?:\s[\w'-]{1,20}){0,6}$",
    re.IGNORECASE,
)
#: Words that lower the confidence of a sentence.
_DOUBT = late_pattern(
    r"\b(?:maybe|perhaps|probably|possibly|i think|i guess|i suppose|i believe|not sure|might|may be|kind of|sort of|"
    r"apparently|supposedly|i hope|hopefully|almost|or something)\b",
    re.IGNORECASE,
)
#: Characters at the end of a sentence in which its speaker is searched.
_AFTER_CHARS = 100


def is_reported(sentence: str) -> bool:
    """Return whether a sentence has a verb of saying or thinking: `mom says my name is`."""
    return _REPORTED.search(sentence) is not None


# The facts, the people, the changes and the statements of a sentence are read by functions of their own.
@lru_cache(maxsize=64)
def stated_part(sentence: str) -> str:
    """Return the part of a sentence before what is hypothetical or reported."""
    if _REPORTED_AFTER.search(sentence[-_AFTER_CHARS:]):
        return ""
    matches = (pattern.search(sentence) for pattern in (_NON_FACTUAL, _REPORTED))
    return sentence[: min((match.end() for match in matches if match is not None), default=len(sentence))]


def confidence_factor(sentence: str) -> float:
    """Return the factor for the confidence of the statements in `sentence`: lower when it expresses doubt."""
    return 0.5 if _DOUBT.search(sentence) else 1.0
