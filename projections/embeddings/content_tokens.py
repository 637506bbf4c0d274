"""Content tokens: the vectors of a text that are worth a code."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from recollect.projections.embeddings.stretches import TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.text.words import STOP_WORDS, WORD

#: Vectors of a passage. More find no more: of BEAM, whose passages have a median of 101 content tokens, 40 find as much
#: evidence as all (`docs/benchmarks.md`).
CONTENT_TOKENS_MAX = 40


def content_tokens(text: str, embedding: TokenEmbedding) -> Vector:
    """Return the vectors of the tokens that are in no stop word of a text, shape (at most 40, dimensions).

    Those of all tokens where it has stop words only, or where the tokenizer reports no places. Of more tokens, the
    neighbours that are most alike are added up, so vectors are not normalised.

    Source: Clavié et al. 2024 ("Token pooling") for clusters of tokens; neighbours are as good and found in one pass.
    """
    stops = [match.span() for match in WORD.finditer(text) if match[0].casefold() in STOP_WORDS]
    starts = [start for start, _ in stops]

    def is_content(first: int) -> bool:
        place = bisect_right(starts, first) - 1
        return place < 0 or first >= stops[place][1]

    kept = [number for number, (first, _) in enumerate(embedding.spans) if is_content(first)]
    return _merged(embedding.tokens[np.array(kept)] if kept else embedding.tokens)


def _merged(tokens: Vector) -> Vector:
    """Return at most `CONTENT_TOKENS_MAX` vectors: there is a border between the neighbours that are least alike."""
    if len(tokens) <= CONTENT_TOKENS_MAX:
        return tokens
    cosines = np.einsum("ij,ij->i", tokens[:-1], tokens[1:])
    borders = np.sort(np.argsort(cosines, kind="stable")[: CONTENT_TOKENS_MAX - 1]) + 1
    return np.add.reduceat(tokens, np.concatenate([[0], borders]), axis=0)
