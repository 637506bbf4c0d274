"""Content tokens: the tokens of a text whose vectors are worth a code."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from recollect.projections.embeddings.stretches import TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.text.words import STOP_WORDS, WORD


def content_tokens(text: str, embedding: TokenEmbedding) -> Vector:
    """Return the vectors of the tokens in the words of a text, without its stop words, shape (tokens, dimensions).

    Those of all tokens where it has stop words only, or where the tokenizer reports no places.
    """
    words = [match.span() for match in WORD.finditer(text) if match[0].casefold() not in STOP_WORDS]
    starts = [start for start, _ in words]
    kept: list[int] = []
    for number, (first, _) in enumerate(embedding.spans):
        place = bisect_right(starts, first) - 1
        if place >= 0 and first < words[place][1]:
            kept.append(number)
    return embedding.tokens[np.array(kept)] if kept else embedding.tokens
