"""Other embedding models: real, random and small. 32 dimensions, 2 layers, a vocabulary of pieces of words."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Any

_WORDS = ["user", "the", "and", "cat", "kitten", "tea", "bridge", "tax", "number", "message"]


def make_tiny_model(folder: Path, *, seed: int) -> Path:
    """Save the model under `folder` and return where; another seed gives other weights."""
    bare = _save_bare(folder, "BertModel", seed)
    sentence_transformers: Any = import_module("sentence_transformers")
    # A bare transformer gets mean pooling put on top.
    sentence_transformers.SentenceTransformer(str(bare)).save(str(folder / "model"))
    return folder / "model"


def make_tiny_reranker(folder: Path, *, seed: int) -> Path:
    """Save a cross-encoder under `folder` and return where."""
    return _save_bare(folder, "BertForSequenceClassification", seed)


def _save_bare(folder: Path, kind: str, seed: int) -> Path:
    # By name: their types are of no use to a type checker.
    torch: Any = import_module("torch")
    transformers: Any = import_module("transformers")

    pieces = [*ascii_lowercase, *digits, ":", ".", ",", "?"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS, *pieces, *(f"##{piece}" for piece in pieces)]
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        num_labels=1,
    )
    bare = folder / "bare"
    torch.manual_seed(seed)
    getattr(transformers, kind)(config).save_pretrained(bare)
    numbered = {piece: number for number, piece in enumerate(vocabulary)}
    transformers.BertTokenizerFast(vocab=numbered).save_pretrained(bare)
    return bare
