"""A second real embedding model: static token vectors of 256 dimensions, from the package wordllama."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def make_static_model(folder: Path) -> str:
    """Save the model under `folder` as sentence-transformers does, and return its path."""
    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    # By name: their types are of no use to a type checker.
    safetensors: Any = import_module("safetensors.torch")
    tokenizers: Any = import_module("tokenizers")
    modules: Any = import_module("sentence_transformers.sentence_transformer.modules")
    sentence_transformers: Any = import_module("sentence_transformers")
    weights = safetensors.load_file(package / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = tokenizers.Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    static = modules.StaticEmbedding(tokenizer, embedding_weights=weights.float())
    sentence_transformers.SentenceTransformer(modules=[static]).save(str(folder))
    return str(folder)
