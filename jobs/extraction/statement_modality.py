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
#: Words that lower the confidence of a sentence.
_DOUBT = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|i think|i guess|i suppose|i believe|not sure|might|may be|kind of|sort of|"
    r"apparently|supposedly|i hope|hopefully|almost|or something)\b",
    re.IGNORECASE,
)
#: Words that mark the sentence before as a joke.
_JOKE = re.compile(
    r"\b(?:just kidding|only kidding|just joking|only joking|i am kidding|i am joking|jk|not really|/s|yeah right|"
    r"not!|sarcasm)\b|^kidding\b|^as if\b",
    re.IGNORECASE,
)
#: The beginning of a question that is typed without its sign.
_ASKS = re.compile(
    r"^(?:(?:and|so|but|ok|okay|hey|hi|also|oh|well|um|btw|by the way|please)[,.!]? )*(?:"
    r"(?:do|does|did|can|could|would|will|should|shall|is|are|was|were|have|has|am|may|might) (?:not )?(?:I|you|we|he|she|they|it|the|my|your|there|this|that|anyone)\b"
    r"|(?:what|where|why|who|whom|whose|how|which)\b(?! (?:a|an|matters|helps|I love|I like)\b)|when (?:is|are|do|does|did|was|will|should|can)\b|any (?:idea|tips|advice|recommendations|suggestions)\b)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"[^"]*"')


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
        self._hypothetical_from = min(
            (match.end() for match in _NON_FACTUAL.finditer(sentence)), default=len(sentence) + 1
        )
        #: Start and end of each quotation, in order.
        self._quotes = [position for match in _QUOTED.finditer(sentence) for position in match.span()]
        last = sentence.rfind('"') if sentence.count('"') % 2 else -1
        if last >= 0:
            # The quotation goes on in the next sentence, or began in the one before.
            opens = last + 1 < len(sentence) and not sentence[last + 1].isspace()
            self._quotes = [*self._quotes, last, len(sentence)] if opens else [0, last + 1]

    def covers(self, start: int) -> bool:
        """Return whether the statement at the position `start` is hypothetical or quoted."""
        if self._hypothetical_from <= start:
            return True
        bound = bisect_left(self._quotes, start)
        return bound % 2 == 1 and start < self._quotes[bound]


def confidence_factor(sentence: str) -> float:
    """Return the factor for the confidence of the statements in `sentence`: lower when it expresses doubt."""
    return 0.5 if _DOUBT.search(sentence) else 1.0
