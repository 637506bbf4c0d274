"""What makes a sentence say less than its words: hypotheses, doubts, jokes, quotations; and what it asks of the bot."""

from __future__ import annotations

import re
from bisect import bisect_left

from recollect.jobs.extraction.sentences import Sentence

#: Before a statement, they make it none: `if I lived in`, `I wish I had`, `she asked whether I`.
_UNREAL = re.compile(
    r"\b(?:if|unless|whether|wish|imagine|imagining|suppose|supposing|pretend|pretending|hypothetically|would|could|might|"
    r"dreamed|dreamt|novel|story|movie|film|game|character|in theory|as if|what if|not true that|never said|lyrics|"
    r"he said|she said|they said|you said|says that|claims|joke|jokes|example|e\.g|for instance)\b",
    re.IGNORECASE,
)
#: In the sentence, they make it less sure.
_DOUBT = re.compile(
    r"\b(?:maybe|perhaps|probably|possibly|i think|i guess|i suppose|i believe|not sure|might|may be|kind of|sort of|"
    r"apparently|supposedly|i hope|hopefully|almost|or something|someday|one day)\b",
    re.IGNORECASE,
)
#: The sentence before was not meant.
_JOKE = re.compile(
    r"\b(?:just kidding|only kidding|just joking|only joking|i am kidding|i am joking|jk|not really|/s|yeah right|"
    r"not!|sarcasm)\b|^kidding\b|^as if\b",
    re.IGNORECASE,
)
#: Said to somebody who helps: what is to be done in every conversation from now on.
_STANDING = re.compile(
    r"^(?:please,?\s+)?(?:(?:from now on|in (?:the )?future|going forward|for all (?:my|future) \w+|every time|whenever)\b"
    r"|(?:always|never)\s+(?!(?:be|been|had|was|is|wanted|mind|heard|seen|knew|thought|said|here|there|good|great|nice|a|an|the|"
    r"in|on|love|happy|glad|fun|been|too|again|know|mine|remember)\b)\w+"
    r"|do not ever\b|(?:keep|make) (?:your|all|the) (?:answers?|repl(?:y|ies)|responses?|code|explanations?)\b"
    r"|(?:answer|respond|reply|write|talk|speak)(?: to me)? (?:only |always )?in (?:[A-Z]\w+|plain|short|bullet)"
    r"|(?:do not|stop) us(?:e|ing) \w+|call me [A-Z]|address me as\b|remember to always\b)",
    re.IGNORECASE,
)
#: Said by somebody about himself, not to the bot.
_NARRATED = re.compile(r"^(?:please,?\s+)?(?:whenever|every time)\s+(?:I|we)\b(?!.*\b(?:ask|say|write|send|mention)\b)")
_QUOTED = re.compile(r'"[^"]*"')


def is_joke(sentence: Sentence) -> bool:
    """Tell whether it says that what came before was not meant."""
    return _JOKE.search(sentence.text) is not None


class Unreal:
    """What in a sentence is only supposed, or somebody else's words. Each sentence is searched once for it."""

    def __init__(self, sentence: str) -> None:
        self._sentence = sentence
        self._supposed_from = min((match.end() for match in _UNREAL.finditer(sentence)), default=len(sentence) + 1)
        #: Where quotations begin and end, in order.
        self._quotes = [place for match in _QUOTED.finditer(sentence) for place in match.span()]

    def covers(self, start: int) -> bool:
        """Return whether what begins at `start` is unreal."""
        if self._supposed_from <= start:
            return True
        within = bisect_left(self._quotes, start)
        return within % 2 == 1 and start < self._quotes[within]


def doubt(sentence: str) -> float:
    """Return what is left of a statement's confidence."""
    return 0.5 if _DOUBT.search(sentence) else 1.0


def is_instruction(sentence: Sentence) -> bool:
    """Tell whether it says how things are to be done from now on."""
    return not sentence.asks and _STANDING.search(sentence.text) is not None and not _NARRATED.match(sentence.text)
