"""Content tokens: the tokens of a text whose vectors are worth a code."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from recollect.projections.embeddings.stretches import TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.text.words import STOP_WORDS, WORD


def content_tokens(text: str, embedding: TokenEmbedding) -> Vector:
    """Return the vectors of the tokens that are in no stop word of a text, shape (tokens, dimensions).

    Those of all tokens where it has stop words only, or where the tokenizer reports no places.
    """
    stops = [match.span() for match in WORD.finditer(text) if match[0].casefold() in STOP_WORDS]
    starts = [start for start, _ in stops]

    def is_content(first: int) -> bool:
        place = bisect_right(starts, first) - 1
        return place < 0 or first >= stops[place][1]

    kept = [number for number, (first, _) in enumerate(embedding.spans) if is_content(first)]
    return embedding.tokens[np.array(kept)] if kept else embedding.tokens
