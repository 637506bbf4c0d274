"""Offset tokenizer: the tokens of a text as a model reads them, with their places in the text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from recollect.projections.embeddings.stretches import Purpose, Spans


class Encoding(NamedTuple):
    """The tokens of a text."""

    #: Numbers of the tokens, with the special ones around them.
    ids: list[int]
    #: Places in `ids` of the tokens of the text, without special ones and those of the prompt.
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
    #: What the model was trained to read before a text, by purpose; empty for most models.
    prompts: dict[Purpose, str]

    @classmethod
    def of_model(cls, model: Any) -> TokenizerSpec:
        """Return that of a SentenceTransformer with a fast tokenizer."""
        return cls(
            tokenizer=model.tokenizer.backend_tokenizer.to_str(),
            tokens_max=model.max_seq_length,
            truncation_side=model.tokenizer.truncation_side,
            special_ids=frozenset(model.tokenizer.all_special_ids),
            pad_id=model.tokenizer.pad_token_id or 0,
            prompts=model_prompts(model),
        )


def model_prompts(model: Any) -> dict[Purpose, str]:
    """Return the prompts of a SentenceTransformer by purpose."""
    return {"document": model.prompts.get("document") or "", "query": model.prompts.get("query") or ""}


class OffsetTokenizer:
    """The tokenizer of a model, truncating as the model does, with the character range of each token."""

    def __init__(self, spec: TokenizerSpec) -> None:
        self.tokenizer: Any = _tokenizer(spec.tokenizer, spec.tokens_max, spec.truncation_side)
        self.tokens_max = spec.tokens_max
        self._special_ids = spec.special_ids
        self._prompts = spec.prompts

    def encode(self, texts: Sequence[str], purpose: Purpose = "document") -> list[Encoding]:
        """Return the tokens of each text, after the prompt of its purpose."""
        prompt = self._prompts[purpose]
        encoded = self.tokenizer.encode_batch([prompt + text for text in texts] if prompt else list(texts))
        return [self._encoding(encoding, len(prompt)) for encoding in encoded]

    def _encoding(self, encoded: Any, start: int) -> Encoding:
        """Return the tokens of a text that begins at character `start`, after its prompt."""
        ids: list[int] = encoded.ids
        offsets: list[tuple[int, int]] = encoded.offsets
        content = [
            place
            for place, token_id in enumerate(ids)
            if token_id not in self._special_ids and (not start or offsets[place][1] > start)
        ]
        spans = (offsets[place] for place in content)
        return Encoding(ids, content, tuple((max(0, first - start), after - start) for first, after in spans))


@lru_cache(maxsize=2)
def _tokenizer(content: str, tokens_max: int | None, truncation_side: str) -> Any:
    """Return the tokenizer of `TokenizerSpec.tokenizer`: 8 MB, which a model and encoders made of it share."""
    # Not the one of the model, since its other users change its truncation and padding.
    tokenizers: Any = import_module("tokenizers")
    tokenizer: Any = tokenizers.Tokenizer.from_str(content)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if tokens_max is not None:
        tokenizer.enable_truncation(tokens_max, direction=truncation_side)
    return tokenizer


def has_offsets(model: Any) -> bool:
    """Return whether the tokenizer of a SentenceTransformer reports the ranges of tokens."""
    return getattr(model.tokenizer, "is_fast", False)
