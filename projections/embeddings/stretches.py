"""Stretches: the texts that an embedding model reads, and what it says of them."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from recollect.projections.embeddings.token_codes import Vector

#: Character ranges of tokens in a text, as (start, end).
Spans = tuple[tuple[int, int], ...]


class Stretch(NamedTuple):
    """A text whose end is embedded; the model reads what comes before as its context.

    The context is what was said before, so no vector changes when the conversation goes on.
    """

    text: str
    #: First character of the part that is embedded; 0: there is no context.
    start: int = 0

    @property
    def part(self) -> str:
        """Return the text of the part that is embedded."""
        return self.text[self.start :]

    @property
    def digest(self) -> bytes:
        """Return the sha256 of the text, or of that and `start` when there is a context."""
        digest = sha256(self.text.encode(errors="replace")).digest()
        return sha256(digest + str(self.start).encode()).digest() if self.start else digest


class TokenEmbedding(NamedTuple):
    """The embedding of the part of a stretch, and of its tokens."""

    #: The part's vector, normalised, shape (dimensions,).
    vector: Vector
    #: Normalised vectors of the part's tokens without special tokens, shape (tokens, dimensions); (0, dimensions) when
    #: the model does not report them.
    tokens: Vector
    #: Character range of each token; empty when the tokenizer does not report it.
    spans: Spans = ()
