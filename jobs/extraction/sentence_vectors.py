"""Sentence vectors: the vectors of sentences as the extraction reaches them, embedded many at once.

A short text alone takes up to twice the time of one among others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from recollect.jobs.extraction.author_text import author_text
from recollect.jobs.extraction.excerpt import read_part
from recollect.jobs.extraction.rule_extractor import IncomingMessage
from recollect.jobs.extraction.spoken_sentences import sentences

Floats = NDArray[np.float32]

#: Sentences that are embedded at once.
_AHEAD_MAX = 32


class SentenceVectors:
    """The vectors of the sentences of some messages, which are asked for in their order.

    Parameters:
        embed: returns the vectors of texts, one row each.
    """

    def __init__(self, embed: Callable[[Sequence[str]], Floats], messages: Iterable[IncomingMessage]) -> None:
        self._embed = embed
        self._coming = _said(messages)
        self._vectors: dict[str, Floats] = {}

    def of(self, text: str) -> Floats:
        """Return the vector of a sentence, shape (dimensions,); a text that comes in no message is embedded alone."""
        if text not in self._vectors:
            # Sentences before it were not compared with anything.
            is_coming = any(sentence == text for sentence in self._coming)
            ahead = [*dict.fromkeys([text, *islice(self._coming, _AHEAD_MAX - 1)])] if is_coming else [text]
            self._vectors = dict(zip(ahead, self._embed(ahead), strict=True))
        return self._vectors[text]


def _said(messages: Iterable[IncomingMessage]) -> Iterator[str]:
    """Yield what people say, without their questions."""
    for message in messages:
        if not message.is_assistant:
            own = author_text(read_part(message.text), message.speaker)
            yield from (sentence.text for sentence in sentences(own) if not sentence.is_question)
