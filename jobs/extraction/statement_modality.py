"""Statement modality: finds hypotheses, doubts, jokes and quotations in sentences."""

from __future__ import annotations

import re
from bisect import bisect_left

from recollect.jobs.extraction.sentences import Sentence

#: Words after which a sentence states no fact: `if I lived in`, `I wish I had`, `she asked whether I`.
_NON_FACTUAL = re.compile(
    r"\b(?:if|unless|whether|wish|imagine|imagining|suppose|supposing|pretend|pretending|hypothetically|would|could|might|"
    r"dreamed|dreamt|in theory|as if|what if|not true that|never said|lyrics|my character|the character|protagonist|"
    r"in (?:the|my|a|this|that|our) (?:\w{1,20} )?(?:novel|story|movie|film|game|book|dream|play|scene|campaign)|"
    r"(?:say|says|said|writes|wrote|asks|asked|replied|answered|told me)(?=:)|he said|she said|they said|you said|says that|claims|joke|jokes|for example|e\.g|for instance)\b",
    re.IGNORECASE,
)
#: What others say, think or heard, and what the speaker said to others: it may be true or not.
_REPORTED = re.compile(
    r"\b(?<!\bI )(?<!\bwe )(?:says|said|tells|told|thinks|thought|believes|believed|claims|claimed|insists|insisted|swears|swore|hears|heard|writes|wrote|"
    r"texts|texted|posts|posted|jokes|joked|assumes|assumed|reckons|suspects|suspected|announced|mentions|mentioned|repeated|convinced|pretends|pretended|"
    r"accuses|accused|(?:keeps?|kept|is|are|was|were|go(?:es)? around|been) (?:saying|telling|claiming|spreading|joking|insisting|convinced))\b|"
    r"\b(?:they|people|folks|everyone|everybody|others|some|kids|parents|friends|colleagues|neighbou?rs|doctors) (?:\w{2,12} )?(?:say|think|believe|claim|tell|assume)\b|"
    r"\b(?:according to|allegedly|supposedly|rumou?rs?|gossip|word is|it is said|story goes|myth|lie|lies|lied|lying|pretended|as a joke|for fun|as a test)\b|"
    r"(?<!\b[Aa]s )\bI (?:have |had |just |once |always |even |almost )?(?:said|told (?!you\b)|tell (?!you\b)|texted|wrote|heard|thought|pretended|dreamed|claimed)\b(?! you\b)",
    re.IGNORECASE,
)
#: The same after the words: `I am a plumber, says the sign`.
_REPORTED_AFTER = re.compile(
    r",\s{1,2}(?:is what\s)?(?:[\w'-]{1,20}\s){0,4}(?:says|said|claims|claimed|thinks|thought|writes|wrote|told me|tells me|replied|answered)"
    r"(?:\s[\w'-]{1,20}){0,6}$",
    re.IGNORECASE,
)
#: Words that lower the confidence of a sentence.
_DOUBT = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|i think|i guess|i suppose|i believe|not sure|might|may be|kind of|sort of|"
    r"apparently|supposedly|i hope|hopefully|almost|or something)\b",
    re.IGNORECASE,
)
#: Words that mark the sentence before as a joke.
_JOKE = re.compile(
    r"\b(?:just kidding|only kidding|just joking|only joking|i am kidding|i am joking|jk|not really|/s|yeah right|"
    r"not!|sarcasm)\b|^kidding\b|^as if\b|^(?:ha){2,6}h?\b,? \w|^(?:he){2,6}\b,? \w",
    re.IGNORECASE,
)
#: The beginning of a question that is typed without its sign.
_ASKS = re.compile(
    r"^(?:(?:and|so|but|ok|okay|hey|hi|also|oh|well|um|btw|by the way|please)[,.!]? )*(?:"
    r"(?:do|does|did|can|could|would|will|should|shall|is|are|was|were|have|has|am|may|might) (?:not )?(?:I|you|we|he|she|they|it|the|my|your|there|this|that|anyone)\b"
    r"|(?:what|where|why|who|whom|whose|how|which)\b(?! (?:a|an|matters|helps|I love|I like)\b)|when (?:is|are|do|does|did|was|will|should|can)\b|any (?:idea|tips|advice|recommendations|suggestions)\b)",
    re.IGNORECASE,
)
#: Characters at the end of a sentence in which its speaker is searched.
_AFTER_CHARS = 100
_QUOTED = re.compile(r'"[^"]*"')


def is_reported(predicate: str) -> bool:
    """Return whether a predicate has a verb of saying or thinking: `mom says my name is`."""
    return _REPORTED.search(predicate) is not None


def is_joke(sentence: Sentence) -> bool:
    """Return whether the sentence marks the sentence before as a joke."""
    return _JOKE.search(sentence.text) is not None


def asks(sentence: str) -> bool:
    """Return whether a sentence begins as a question, with or without a question mark."""
    return _ASKS.match(sentence) is not None


class NonFactualSpans:
    """The parts of a sentence that are hypothetical or quoted. The sentence is scanned once, in the constructor."""

    def __init__(self, sentence: str) -> None:
        #: Where the hypothetical part begins; after the end without one.
        matches = (pattern.search(sentence) for pattern in (_NON_FACTUAL, _REPORTED))
        self._hypothetical_from = (
            0
            if _REPORTED_AFTER.search(sentence[-_AFTER_CHARS:])
            else min((match.end() for match in matches if match is not None), default=len(sentence) + 1)
        )
        #: Start and end of each quotation, in order.
        self._quotes = [position for match in _QUOTED.finditer(sentence) for position in match.span()]
        last = sentence.rfind('"') if sentence.count('"') % 2 else -1
        if last >= 0:
            # The quotation goes on in the next sentence, or began in the one before.
            opens = last + 1 < len(sentence) and not sentence[last + 1].isspace()
            self._quotes = [*self._quotes, last, len(sentence)] if opens else [0, last + 1]

    @property
    def stated_length(self) -> int:
        """Return the length of the part of the sentence before what is hypothetical or reported."""
        return self._hypothetical_from

    def covers(self, start: int) -> bool:
        """Return whether the statement at the position `start` is hypothetical or quoted."""
        if self._hypothetical_from <= start:
            return True
        bound = bisect_left(self._quotes, start)
        return bound % 2 == 1 and start < self._quotes[bound]


def confidence_factor(sentence: str) -> float:
    """Return the factor for the confidence of the statements in `sentence`: lower when it expresses doubt."""
    return 0.5 if _DOUBT.search(sentence) else 1.0
