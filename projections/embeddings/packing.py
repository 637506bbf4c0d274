"""Packing: lays stretches out in as few and as full batches as possible, each token once.

A row of a batch is a stretch with its context. The attention mask is block-causal: a segment reads itself and those
before it, so the row of the longest stretch also has the vectors of the stretches that it begins with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.projections.embeddings.model_runtime import EMBEDDED_TOKENS, normalised
from recollect.projections.embeddings.offset_tokenizer import Encoding, OffsetTokenizer
from recollect.projections.embeddings.stretches import Purpose, Stretch, TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector

#: Tokens in one batch, padding included: larger batches are no faster, and a query waits for the end of one, 70 ms.
_BATCH_TOKENS = 512
#: Rows are padded to a multiple of the step, and batches have 1, 2, 4 … rows: a runtime keeps up to 1 MB for each input
#: shape, and the first batch of a shape takes up to 10 ms more. Short rows, as those of queries are, have a smaller
#: step: with 16, a row of 18 tokens takes a quarter more time, and the messages of LoCoMo 5 to 9 % more.
_SHORT_TOKENS_MAX = 128
_SHORT_STEP = 8
_LONG_STEP = 16
#: Added to the attention to tokens that are not read; small enough for any precision.
_UNREAD = -10_000.0
#: Added to the attention to the context: a turn is read more by its own words than by those before it.
_CONTEXT_BIAS = -0.7

#: Segments of a stretch that are read together, the part last.
_Segments = tuple[str, ...]


class PackedPlace(NamedTuple):
    """Where a batch has the part of a stretch."""

    #: Number of the stretch.
    stretch: int
    row: int
    #: First token of the part, and the one after its last, special tokens included.
    first: int
    after: int
    encoding: Encoding
    #: Tokens of `encoding` that the row leaves out, at its beginning.
    left_out: int
    has_context: bool


class PackedBatch(NamedTuple):
    """The inputs of one forward pass."""

    #: Shape (rows, length), as are `types` and `positions`.
    ids: NDArray[np.int64]
    types: NDArray[np.int64]
    positions: NDArray[np.int64]
    #: What is added to the attention of each token to each, shape (rows, 1, length, length).
    attention: Vector
    places: list[PackedPlace]

    @property
    def mask(self) -> NDArray[np.int64]:
        """Return 1 for tokens and 0 for padding, for models that read no contexts; shape (rows, length)."""
        return (self.attention[:, 0, 0] == 0).astype(np.int64)

    def embeddings(self, hidden: Vector) -> Iterator[tuple[int, TokenEmbedding]]:
        """Yield the number and the embedding of each stretch.

        Parameters:
            hidden: the model's token vectors, shape (rows, length, dimensions).
        """
        for place in self.places:
            read = hidden[place.row, place.first : place.after]
            tokens = read[[token - place.left_out for token in place.encoding.content]]
            # The sum replaces the mean: both have the same direction. A part in a context is the mean over its words.
            vector: Vector = (tokens if place.has_context else read).sum(axis=0)
            embedding = TokenEmbedding(normalised(vector[np.newaxis])[0], normalised(tokens), place.encoding.spans)
            yield place.stretch, embedding


class Packer:
    """Lays stretches out for a model.

    Parameters:
        with_context: whether the model can read a context; without it, the part of each stretch is read alone.
    """

    def __init__(self, tokenizer: OffsetTokenizer, pad_id: int, *, with_context: bool) -> None:
        self._tokenizer = tokenizer
        self._pad_id = pad_id
        self._with_context = with_context

    def batches(self, stretches: Sequence[Stretch], purpose: Purpose = "document") -> Iterator[PackedBatch]:
        """Yield the batches of `stretches`, the longest rows first. Each row begins with the prompt."""
        segments = [stretch.segments if self._with_context else (stretch.part,) for stretch in stretches]
        distinct = [*dict.fromkeys(text for texts in segments for text in texts)]
        encodings = dict(zip(distinct, self._tokenizer.encode(distinct, purpose), strict=True))
        rows = _rows([self._fitted(texts, encodings) for texts in segments])
        layouts = [_Layout([encodings[text] for text in texts], numbers) for texts, numbers in rows.items()]
        layouts.sort(key=lambda layout: len(layout.ids), reverse=True)
        start = 0
        while start < len(layouts):
            length = _padded_length(len(layouts[start].ids))
            wanted = min(len(layouts) - start, max(1, _BATCH_TOKENS // length))
            count = 1 << (wanted.bit_length() - 1)
            EMBEDDED_TOKENS.add(amount=sum(len(layout.ids) for layout in layouts[start : start + count]))
            yield self._batch(layouts[start : start + count], length)
            start += count

    def _fitted(self, texts: _Segments, encodings: dict[str, Encoding]) -> _Segments:
        """Return the last segments that the model can read at once.

        A part without words is read alone: in a context, it would have no vector.
        """
        if len(texts) == 1 or not encodings[texts[-1]].content:
            return texts[-1:]
        tokens_max = self._tokenizer.tokens_max or sum(len(encodings[text].ids) for text in texts)
        count = tokens = 0
        for text in reversed(texts):
            tokens += len(encodings[text].ids)
            if tokens > tokens_max:
                break
            count += 1
        return texts[-max(1, count) :]

    def _batch(self, layouts: Sequence[_Layout], length: int) -> PackedBatch:
        ids = np.full((len(layouts), length), self._pad_id, np.int64)
        positions = np.zeros_like(ids)
        attention = np.full((len(layouts), 1, length, length), _UNREAD, np.float32)
        places: list[PackedPlace] = []
        for row, layout in enumerate(layouts):
            size = len(layout.ids)
            ids[row, :size] = layout.ids
            positions[row, :size] = layout.positions
            layout.write_attention(attention[row, 0])
            places += layout.places(row)
        return PackedBatch(ids, np.zeros_like(ids), positions, attention, places)


def _padded_length(tokens: int) -> int:
    """Return the length of the rows of a batch whose longest one has so many tokens."""
    step = _SHORT_STEP if tokens <= _SHORT_TOKENS_MAX else _LONG_STEP
    return -(-max(1, tokens) // step) * step


def _rows(stretches: Sequence[_Segments]) -> dict[_Segments, list[list[int]]]:
    """Return the rows to read: for each of its segments, the numbers of the stretches that end with it."""
    rows: dict[_Segments, list[list[int]]] = {}
    #: The row that begins with these segments.
    row_of: dict[_Segments, _Segments] = {}
    for number in sorted(range(len(stretches)), key=lambda number: len(stretches[number]), reverse=True):
        texts = stretches[number]
        row = row_of.get(texts)
        if row is None:
            row = texts
            rows[row] = [[] for _ in texts]
            row_of |= {texts[:count]: row for count in range(len(texts), 0, -1)}
        rows[row][len(texts) - 1].append(number)
    return rows


class _Layout:
    """One row: segments, one after the other.

    Each segment ends with the special tokens that the tokenizer puts after a text, which only it reads itself.

    Parameters:
        numbers: for each segment, the numbers of the stretches that end with it.
    """

    def __init__(self, encodings: Sequence[Encoding], numbers: Sequence[list[int]]) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []
        self._numbers = numbers
        #: For each segment, the token after the last one that later segments read.
        self._read_ends: list[int] = []
        self._ends: list[tuple[int, int, Encoding, int]] = []
        position = 0
        for segment, encoding in enumerate(encodings):
            first = len(self.ids)
            content = encoding.content or [len(encoding.ids)]
            left_out = content[0] if segment else 0
            count = len(encoding.ids) - left_out
            words_end = content[-1] + 1 - left_out
            self.ids += encoding.ids[left_out:]
            self.positions += range(position, position + count)
            self._read_ends.append(first + min(words_end, count))
            self._ends.append((first, first + count, encoding, left_out))
            position += min(words_end, count)

    def write_attention(self, attention: Vector) -> None:
        """Write what is added to the attention of each token to each.

        Parameters:
            attention: of one row, filled with `_UNREAD`.
        """
        for (first, after, _, _), read_end in zip(self._ends, self._read_ends, strict=True):
            attention[first:after, first:after] = 0.0
            attention[after : len(self.ids), first:read_end] = _CONTEXT_BIAS

    def places(self, row: int) -> Iterator[PackedPlace]:
        """Yield where the parts of the stretches are."""
        for (first, after, encoding, left_out), numbers in zip(self._ends, self._numbers, strict=True):
            for number in numbers:
                yield PackedPlace(number, row, first, after, encoding, left_out, has_context=first > 0)
