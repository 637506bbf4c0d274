"""Torch runtime: runs a SentenceTransformer on PyTorch, or reads its static token vectors with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from recollect.projections.embeddings.model_runtime import (
    EMBEDDED_TOKENS,
    Hold,
    Runtime,
    RuntimeName,
    RuntimeRefused,
    normalised,
)
from recollect.projections.embeddings.offset_tokenizer import OffsetTokenizer, TokenizerSpec, has_offsets, model_prompts
from recollect.projections.embeddings.packing import PackedBatch, Packer
from recollect.projections.embeddings.stretches import Purpose, Spans, Stretch, TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector

#: Texts in one batch of a model that `Packer` does not serve.
_BATCH_TEXTS = 32


class TorchRuntime:
    """A SentenceTransformer on PyTorch."""

    name: RuntimeName = "torch"

    def __init__(self, model: Any) -> None:
        self.model = model
        self.tokenizer: Any = model.tokenizer
        self.tokens_max: int | None = model.max_seq_length
        self._special_ids = set[int](self.tokenizer.all_special_ids)
        self._tokenizer: OffsetTokenizer | None = None
        self._packer: Packer | None = None
        if has_offsets(model):
            spec = TokenizerSpec.of_model(model)
            self._tokenizer = OffsetTokenizer(spec)
            if reads_contexts(model):
                self._packer = Packer(self._tokenizer, spec.pad_id, with_context=True)

    def encode(
        self, stretches: Sequence[Stretch], hold: Hold = nullcontext, purpose: Purpose = "document"
    ) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch."""
        embeddings: dict[int, TokenEmbedding] = {}
        if self._packer is not None:
            for batch in self._packer.batches(stretches, purpose):
                with hold():
                    embeddings |= batch.embeddings(self._hidden(batch))
            return [embeddings[number] for number in range(len(stretches))]
        order = sorted(range(len(stretches)), key=lambda number: len(stretches[number].part), reverse=True)
        for start in range(0, len(order), _BATCH_TEXTS):
            batch = order[start : start + _BATCH_TEXTS]
            with hold():
                embeddings |= zip(
                    batch, self._encode([stretches[number].part for number in batch], purpose), strict=True
                )
        return [embeddings[number] for number in range(len(stretches))]

    def _hidden(self, batch: PackedBatch) -> Vector:
        """Return the token vectors of a batch, shape (rows, length, dimensions)."""
        torch: Any = import_module("torch")
        with torch.inference_mode():
            output: Any = self.model[0].auto_model(**torch_features(batch, self.model))
        return output.last_hidden_state.float().cpu().numpy()

    def _encode(self, texts: Sequence[str], purpose: Purpose) -> list[TokenEmbedding]:
        """Return the embeddings that sentence-transformers gives for texts."""
        spans = [()] * len(texts) if self._tokenizer is None else [it.spans for it in self._tokenizer.encode(texts)]
        prompt = model_prompts(self.model)[purpose] or None
        EMBEDDED_TOKENS.add(amount=sum(map(len, spans)))
        rows: Any = self.model.encode(
            list(texts),
            prompt=prompt,
            output_value=None,
            show_progress_bar=False,
            batch_size=len(texts),
            convert_to_numpy=False,
        )
        return [self._embedding(row, spans_of_text) for row, spans_of_text in zip(rows, spans, strict=True)]

    def _embedding(self, row: Any, spans: Spans) -> TokenEmbedding:
        """Return the embedding of one text from the output of sentence-transformers."""
        vector: Vector = row["sentence_embedding"].float().cpu().numpy()
        tokens: Vector = np.empty((0, len(vector)), np.float32)
        if "token_embeddings" in row and "input_ids" in row:
            ids: list[int] = row["input_ids"].tolist()
            mask: list[int] = row["attention_mask"].tolist()
            content_rows = [index for index, id in enumerate(ids) if mask[index] and id not in self._special_ids]
            tokens = row["token_embeddings"].float().cpu().numpy()[content_rows]
        # A model that puts a prompt before the text has more token vectors than the text has tokens.
        spans = spans if len(spans) == len(tokens) else ()
        # Normalised in float32: in bfloat16, lengths are off by up to 0.4 %.
        return TokenEmbedding(normalised(vector[np.newaxis])[0], normalised(tokens), spans)

    def query_pass(self, stretch: Stretch) -> None:
        """Return None: a forward pass is one of this thread."""


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

    def encode(
        self,
        stretches: Sequence[Stretch],
        hold: Hold = nullcontext,
        purpose: Purpose = "document",  # noqa: ARG002 -- a prompt adds the same vector to every text
    ) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch."""
        with hold():
            encodings: list[Any] = self.tokenizer.encode_batch(
                [stretch.part for stretch in stretches], add_special_tokens=False
            )
        return [self._embedding(encoding.ids, encoding.offsets) for encoding in encodings]

    def _embedding(self, ids: list[int], offsets: list[tuple[int, int]]) -> TokenEmbedding:
        tokens = self._weights[ids]
        # The sum replaces the mean: both have the same direction, and the vector is normalised.
        vector: Vector = tokens.sum(axis=0, keepdims=True)
        return TokenEmbedding(normalised(vector)[0], normalised(tokens), tuple(offsets))

    def query_pass(self, stretch: Stretch) -> None:
        """Return None: a forward pass is one of this thread."""


def torch_runtime(model: Any) -> Runtime:
    """Return the runtime without OpenVINO of a SentenceTransformer."""
    return StaticRuntime(model) if is_static(model) else TorchRuntime(model)


def is_static(model: Any) -> bool:
    """Return whether a SentenceTransformer reads static token vectors."""
    return _module_names(model)[0] == "StaticEmbedding"


def _module_names(model: Any) -> list[str]:
    """Return the names of the classes that a SentenceTransformer is made of."""
    return [type(module).__name__ for module in model]


def reads_contexts(model: Any) -> bool:
    """Return whether a SentenceTransformer can read a block-causal attention mask, and pools its tokens by their mean.

    Models of BERT's kind have absolute positions and take a mask of their own; those of others differ in either.
    """
    return not unusual_part(model) and model[0].auto_model.config.model_type == "bert"


def torch_features(batch: PackedBatch, model: Any) -> dict[str, Any]:
    """Return a batch as the inputs of the transformer of a SentenceTransformer that reads contexts."""
    torch: Any = import_module("torch")
    features = {
        "input_ids": torch.from_numpy(batch.ids),
        "attention_mask": torch.from_numpy(batch.attention).to(model.dtype),
        "token_type_ids": torch.from_numpy(batch.types),
        "position_ids": torch.from_numpy(batch.positions),
    }
    return {name: tensor.to(model.device) for name, tensor in features.items()}


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
