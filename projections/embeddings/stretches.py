"""Token spans: inputs of the embedding model with their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

from recollect.projections.embeddings.token_codes import Vector

#: Character ranges of tokens in a text, as (start, end).
Spans = tuple[tuple[int, int], ...]
#: What a text is embedded for. Some models put another prompt before each.
Purpose = Literal["document", "query"]


class Stretch(NamedTuple):
    """A text whose last segment, the part, is embedded; the model reads the segments before it as its context.

    The context is what was said before, so no vector changes when the conversation goes on. A segment is read with
    those before it, never with those after it, so stretches that begin with the same segments share their pass.
    """

    text: str
    #: First character of the part; 0: there is no context.
    start: int = 0
    #: First characters of the segments of the context, without the first one.
    breaks: tuple[int, ...] = ()

    @classmethod
    def after(cls, context: Sequence[str], part: str) -> Stretch:
        """Return the stretch of a part and the segments before it."""
        starts = tuple(accumulate(len(segment) + 1 for segment in context))
        return cls("\n".join((*context, part)), starts[-1] if starts else 0, starts[:-1])

    @property
    def part(self) -> str:
        """Return the text of the part that is embedded."""
        return self.text[self.start :]

    @property
    def segments(self) -> tuple[str, ...]:
        """Return the segments of the context and the part, in order."""
        if not self.start:
            return (self.text,)
        starts = (0, *self.breaks, self.start)
        return (*(self.text[first : after - 1] for first, after in pairwise(starts)), self.part)

    @property
    def digest(self) -> bytes:
        """Return the sha256 of the text, or of that and the starts of its segments when there is a context."""
        digest = sha256(self.text.encode(errors="replace")).digest()
        return sha256(digest + repr((*self.breaks, self.start)).encode()).digest() if self.start else digest


class TokenEmbedding(NamedTuple):
    """The embedding of the part of a stretch, and of its tokens."""

    #: The part's vector, normalised, shape (dimensions,).
    vector: Vector
    #: Normalised vectors of the part's tokens without special tokens, shape (tokens, dimensions); (0, dimensions) when
    #: the model does not report them.
    tokens: Vector
    #: Character range of each token in the part; empty when the tokenizer does not report it.
    spans: Spans = ()
