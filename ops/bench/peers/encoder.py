"""The embedding model for peers that take vectors, in the precision that Recollect loads it in."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

_BATCH_TEXTS = 32


class Encoder:
    """Texts in, normalised float32 vectors out."""

    def __init__(self, model: str) -> None:
        library: Any = importlib.import_module("sentence_transformers")
        self._model: Any = library.SentenceTransformer(model, model_kwargs=model_settings())
        self.dimensions = int(self.one("warm up").shape[0])

    def many(self, texts: Sequence[str]) -> Any:
        """Return one row a text."""
        numpy: Any = importlib.import_module("numpy")
        encoded = self._model.encode(list(texts), batch_size=_BATCH_TEXTS, show_progress_bar=False)
        vectors = numpy.asarray(encoded, numpy.float32)
        return vectors / numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)

    def one(self, text: str) -> Any:
        """Return the vector of a text."""
        return self.many([text])[0]


def model_settings() -> dict[str, Any]:
    """Return the precision of Recollect's embedder: bfloat16 where the processor multiplies that in hardware."""
    torch: Any = importlib.import_module("torch")
    checks = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    has_bfloat16 = any(getattr(torch.cpu, check, lambda: False)() for check in checks)
    return {"dtype": torch.bfloat16 if has_bfloat16 and not torch.cuda.is_available() else torch.float32}
