"""Reading encoder: the encoder of sentences whose vectors the trained readers of messages read.

It is the default embedding model with an adapter that was trained with the readers. The vectors of the default model
say what a sentence is about; those of the encoder also say what it does: states, asks, instructs, jokes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from recollect.projections.embeddings.embedder import Embedder, SentenceEmbedder
from recollect.projections.embeddings.model_runtime import RuntimeName
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.projection_settings import DEFAULT_MODEL, READING_MODEL

#: Returns the embeddings of sentences.
Embed = Callable[[Sequence[str]], list[TokenEmbedding]]
#: Seconds that a job waits for the encoder: without a cache, it is converted first.
_LOAD_SECONDS_MAX = 60.0


def reading_embed(embedder: Embedder, *, waits: bool = True) -> Embed | None:
    """Return the embedding of sentences by the reading encoder.

    None unless `embedder`, the embedding model in use, is the default one, and both are ready: words decide alone then.

    Parameters:
        waits: whether to wait while the encoder loads, as jobs do; an append and a retrieval do not.
    """
    if embedder.name != DEFAULT_MODEL or embedder.state != "ready":
        return None
    encoder = _encoder(embedder.runtime)
    encoder.start()
    if not encoder.wait_ready(_LOAD_SECONDS_MAX if waits else 0):
        return None
    return lambda sentences: encoder.embed_tokens([Stretch(sentence) for sentence in sentences])


@cache
def _encoder(runtime: RuntimeName) -> SentenceEmbedder:
    """Return the encoder of this process on the runtime of the embedding model."""
    return SentenceEmbedder(READING_MODEL, runtime if runtime in ("openvino", "torch") else "auto")
