"""Offset tokenizer: finds the tokens of the part of a stretch that is embedded."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from recollect.projections.embeddings.stretches import Spans, Stretch


class Reading(NamedTuple):
    """What a model reads for a stretch."""

    #: The stretch, or its part alone.
    stretch: Stretch
    #: The tokenizer's encoding of its text; None without a fast tokenizer.
    encoding: Any
    #: The ranges of its tokens without special tokens; empty without a fast tokenizer.
    spans: Spans

    @property
    def part_tokens(self) -> int:
        """Return the number of tokens of the part, special tokens apart."""
        # By their ends: some tokenizers count the white space before a word to its first token.
        return sum(end > self.stretch.start for _, end in self.spans)


class TokenizerSpec(BaseModel):
    """What reading texts for a model takes, without the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: The fast tokenizer, in its own JSON.
    tokenizer: str
    #: Tokens after which the model truncates a text, special tokens included; None for no limit.
    tokens_max: int | None
    truncation_side: Literal["left", "right"]
    special_ids: frozenset[int]
    pad_id: int

    @classmethod
    def of_model(cls, model: Any) -> TokenizerSpec:
        """Return that of a SentenceTransformer with a fast tokenizer."""
        return cls(
            tokenizer=model.tokenizer.backend_tokenizer.to_str(),
            tokens_max=model.max_seq_length,
            truncation_side=model.tokenizer.truncation_side,
            special_ids=frozenset(model.tokenizer.all_special_ids),
            pad_id=model.tokenizer.pad_token_id or 0,
        )


class OffsetTokenizer:
    """The tokenizer of a model, truncating as the model does, with the character range of each token."""

    def __init__(self, spec: TokenizerSpec) -> None:
        # A copy, since other users of the model's tokenizer change its truncation and padding.
        tokenizers: Any = import_module("tokenizers")
        self.tokenizer: Any = tokenizers.Tokenizer.from_str(spec.tokenizer)
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        if spec.tokens_max is not None:
            self.tokenizer.enable_truncation(spec.tokens_max, direction=spec.truncation_side)
        self._special_ids = spec.special_ids

    def readings(self, stretches: Sequence[Stretch]) -> list[Reading]:
        """Return what the model reads for each stretch: its part alone when the stretch is too long for the model."""
        readings = self._encoded(stretches)
        # A part of special tokens only would have the vector of its context.
        alone = [
            row
            for row, reading in enumerate(readings)
            if reading.stretch.start and (reading.encoding.overflowing or not reading.part_tokens)
        ]
        parts = self._encoded([Stretch(stretches[row].part) for row in alone])
        for row, reading in zip(alone, parts, strict=True):
            readings[row] = reading
        return readings

    def content_rows(self, encoding: Any) -> list[int]:
        """Return the positions of the tokens that are not special tokens."""
        ids: list[int] = encoding.ids
        return [row for row, token_id in enumerate(ids) if token_id not in self._special_ids]

    def _encoded(self, stretches: Sequence[Stretch]) -> list[Reading]:
        encodings: list[Any] = self.tokenizer.encode_batch([stretch.text for stretch in stretches])
        return [
            Reading(stretch, encoding, tuple(encoding.offsets[row] for row in self.content_rows(encoding)))
            for stretch, encoding in zip(stretches, encodings, strict=True)
        ]


def has_offsets(model: Any) -> bool:
    """Return whether the tokenizer of a SentenceTransformer reports the ranges of tokens."""
    return getattr(model.tokenizer, "is_fast", False)
