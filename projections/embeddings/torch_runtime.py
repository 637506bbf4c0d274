"""Torch runtime: runs a SentenceTransformer on PyTorch, or reads its static token vectors with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect.projections.embeddings.model_runtime import (
    Runtime,
    RuntimeName,
    RuntimeRefused,
    normalised,
    part_embedding,
)
from recollect.projections.embeddings.offset_tokenizer import OffsetTokenizer, Reading, TokenizerSpec, has_offsets
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector


class TorchRuntime:
    """A SentenceTransformer on PyTorch."""

    name: RuntimeName = "torch"

    def __init__(self, model: Any) -> None:
        self.model = model
        self.tokenizer: Any = model.tokenizer
        self.tokens_max: int | None = model.max_seq_length
        self._tokenizer = OffsetTokenizer(TokenizerSpec.of_model(model)) if has_offsets(model) else None
        self._has_context = not unusual_part(model)
        self._special_ids = set[int](self.tokenizer.all_special_ids)

    def encode(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch."""
        readings = self._readings(stretches)
        rows: Any = self.model.encode(
            [reading.stretch.text for reading in readings],
            output_value=None,
            show_progress_bar=False,
            batch_size=len(readings),
            convert_to_numpy=False,
        )
        return [self._embedding(reading, row) for reading, row in zip(readings, rows, strict=True)]

    def _readings(self, stretches: Sequence[Stretch]) -> list[Reading]:
        read = stretches if self._has_context else [Stretch(stretch.part) for stretch in stretches]
        if self._tokenizer is None:
            return [Reading(stretch, None, ()) for stretch in read]
        return self._tokenizer.readings(read)

    def _embedding(self, reading: Reading, row: Any) -> TokenEmbedding:
        """Return the embedding of one reading from the output of sentence-transformers."""
        vector: Vector = row["sentence_embedding"].float().cpu().numpy()
        tokens: Vector = np.empty((0, len(vector)), np.float32)
        if "token_embeddings" in row and "input_ids" in row:
            ids: list[int] = row["input_ids"].tolist()
            mask: list[int] = row["attention_mask"].tolist()
            content_rows = [index for index, id in enumerate(ids) if mask[index] and id not in self._special_ids]
            tokens = row["token_embeddings"].float().cpu().numpy()[content_rows]
        # Normalised in float32: in bfloat16, lengths are off by up to 0.4 %.
        return part_embedding(reading, vector, tokens)


class StaticRuntime:
    """A model of static token vectors (`StaticEmbedding`), such as those of model2vec.

    A token has the same vector in every text, and a text's vector is the mean over its tokens. So a context changes
    nothing, and only the part of a stretch is read.

    Raises:
        RuntimeRefused: other modules follow the token vectors.
    """

    name: RuntimeName = "static"
    tokens_max: int | None = None

    def __init__(self, model: Any) -> None:
        modules = _module_names(model)
        if modules[1:] not in ([], ["Normalize"]):
            raise RuntimeRefused(f"the model is made of {', '.join(modules)}, which is not supported")
        self.tokenizer: Any = model.tokenizer
        self._weights: Vector = model[0].embedding.weight.detach().float().cpu().numpy()

    def encode(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch."""
        encodings: list[Any] = self.tokenizer.encode_batch(
            [stretch.part for stretch in stretches], add_special_tokens=False
        )
        return [self._embedding(encoding.ids, encoding.offsets) for encoding in encodings]

    def _embedding(self, ids: list[int], offsets: list[tuple[int, int]]) -> TokenEmbedding:
        tokens = self._weights[ids]
        # The sum replaces the mean: both have the same direction, and the vector is normalised.
        vector: Vector = tokens.sum(axis=0, keepdims=True)
        return TokenEmbedding(normalised(vector)[0], normalised(tokens), tuple(offsets))


def torch_runtime(model: Any) -> Runtime:
    """Return the runtime without OpenVINO of a SentenceTransformer."""
    return StaticRuntime(model) if is_static(model) else TorchRuntime(model)


def is_static(model: Any) -> bool:
    """Return whether a SentenceTransformer reads static token vectors."""
    return _module_names(model)[0] == "StaticEmbedding"


def _module_names(model: Any) -> list[str]:
    """Return the names of the classes that a SentenceTransformer is made of."""
    return [type(module).__name__ for module in model]


def unusual_part(model: Any) -> str:
    """Return in what a SentenceTransformer differs from a transformer with mean pooling; empty when in nothing."""
    modules = _module_names(model)
    if modules[:2] != ["Transformer", "Pooling"] or modules[2:] not in ([], ["Normalize"]):
        return f"it is made of {', '.join(modules)}"
    if getattr(model[1], "pooling_mode", None) != "mean":
        return "its pooling is not the mean"
    if model.default_prompt_name is not None:
        return "it puts a prompt before every text"
    if not has_offsets(model):
        return "its tokenizer is not a fast one"
    return ""
