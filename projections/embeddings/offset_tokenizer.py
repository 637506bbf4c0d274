"""Offset tokenizer: the tokens of a text as a model reads them, with their places in the text."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from recollect.projections.embeddings.stretches import Spans


class Encoding(NamedTuple):
    """The tokens of a text."""

    #: Numbers of the tokens, with the special ones around them.
    ids: list[int]
    #: Places in `ids` of the tokens that are not special.
    content: list[int]
    #: Character ranges of these in the text.
    spans: Spans


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
        self.tokens_max = spec.tokens_max
        if spec.tokens_max is not None:
            self.tokenizer.enable_truncation(spec.tokens_max, direction=spec.truncation_side)
        self._special_ids = spec.special_ids

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the tokens of each text."""
        return [self._encoding(encoded) for encoded in self.tokenizer.encode_batch(list(texts))]

    def _encoding(self, encoded: Any) -> Encoding:
        ids: list[int] = encoded.ids
        offsets: list[tuple[int, int]] = encoded.offsets
        content = [place for place, token_id in enumerate(ids) if token_id not in self._special_ids]
        return Encoding(ids, content, tuple(offsets[place] for place in content))


def has_offsets(model: Any) -> bool:
    """Return whether the tokenizer of a SentenceTransformer reports the ranges of tokens."""
    return getattr(model.tokenizer, "is_fast", False)
