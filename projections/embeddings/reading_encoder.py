"""Reading encoders: the encoders whose vectors the trained readers of messages, dates and pairs of sentences read.

Each is the default embedding model with an adapter that was trained with its reader. The vectors of the default model
say what a sentence is about; those of the encoders also say what it does (states, asks, instructs, jokes), of which
time it speaks, and what it does to an earlier sentence that is read with it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from recollect.events.late_pattern import late_pattern
from recollect.projections.embeddings.embedder import Embedder, SentenceEmbedder
from recollect.projections.embeddings.model_runtime import RuntimeName
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.projection_settings import DATES_MODEL, DEFAULT_MODEL, READING_MODEL
from recollect.projections.text.date_reading import ReadWindows, TextWindow

#: Returns the embeddings of sentences.
Embed = Callable[[Sequence[str]], list[TokenEmbedding]]
#: Returns the vectors of pairs of an earlier and a later sentence, one row each.
ReadPairs = Callable[[Sequence[tuple[str, str]]], NDArray[np.float32]]
#: Characters of each sentence of a pair that are read: of two long Japanese ones the model sees all of the first.
_PAIR_CHARS_MAX = 200
#: Texts that the model reads as special tokens, such as the separator of a pair of sentences.
_MODEL_SIGNS = late_pattern(r"\[(SEP|CLS|PAD|MASK|UNK)\]")
#: Seconds that a job waits for the embedding model, and for the encoder: without a cache, they are converted first.
LOAD_SECONDS_MAX = 60.0
#: Seconds after which a wait for them looks whether its job has to stop.
_STOP_LOOK_SECONDS = 0.05


def reading_embed(embedder: Embedder, *, waits: bool = True) -> Embed | None:
    """Return the embedding of sentences for the readers of messages.

    None unless `embedder`, the embedding model in use, is the default one, and both are ready: words decide alone then.

    Parameters:
        waits: whether to wait while the encoder loads, as jobs do; an append and a retrieval do not.
    """
    return embedding_by(READING_MODEL, embedder, LOAD_SECONDS_MAX if waits else 0)


def embedding_by(model: str, embedder: Embedder, seconds_max: float) -> Embed | None:
    """Return the embedding of texts by the encoder `model`; None as in `reading_embed`.

    Parameters:
        seconds_max: seconds to wait while the encoder loads.
    """
    # The first messages of a process come before its model is loaded.
    if embedder.name != DEFAULT_MODEL or not embedder.wait_ready(seconds_max):
        return None
    encoder = _encoder(model, embedder.runtime)
    encoder.start()
    if not encoder.wait_ready(seconds_max):
        return None
    return lambda sentences: encoder.embed_tokens([Stretch(sentence) for sentence in sentences])


def wait_for_encoders(embedder: Embedder, models: Sequence[str], stop: threading.Event) -> None:
    """Wait while `embedder` and encoders load, as long as a reader would.

    Raises:
        InterruptedError: `stop` was set meanwhile.
    """
    until = time.monotonic() + LOAD_SECONDS_MAX
    _wait_for(embedder, until, stop)
    if embedder.name == DEFAULT_MODEL and embedder.state == "ready":
        encoders = [_encoder(model, embedder.runtime) for model in models]
        for encoder in encoders:
            encoder.start()
        for encoder in encoders:
            _wait_for(encoder, until, stop)


def _wait_for(embedder: Embedder, until: float, stop: threading.Event) -> None:
    while embedder.state == "loading" and time.monotonic() < until:
        if stop.is_set():
            raise InterruptedError("the worker is stopping; the messages are read again later")
        embedder.wait_ready(_STOP_LOOK_SECONDS)


def window_reader(embedder: Embedder) -> ReadWindows:
    """Return the reading of the words around dates, which loads its encoder, and waits for it, at the first date."""

    def read(windows: Sequence[TextWindow]) -> NDArray[np.float32] | None:
        embed = embedding_by(DATES_MODEL, embedder, LOAD_SECONDS_MAX)
        return None if embed is None else _vectors(windows, embed)

    return read


def pair_reader(model: str, embedder: Embedder, seconds_max: float = LOAD_SECONDS_MAX) -> ReadPairs | None:
    """Return the reading of pairs by the encoder `model`; None as in `reading_embed`.

    Parameters:
        seconds_max: seconds to wait while the encoder loads.
    """
    embed = embedding_by(model, embedder, seconds_max)
    if embed is None:
        return None
    return lambda pairs: _vectors([pair_window(*pair) for pair in pairs], embed)


def pair_window(earlier: str, later: str) -> TextWindow:
    """Return the text by which an encoder reads a pair, with the place of the earlier sentence in it."""
    earlier, later = (without_model_signs(text[:_PAIR_CHARS_MAX]) for text in (earlier, later))
    return TextWindow(f"{earlier} [SEP] {later}", 0, len(earlier))


def without_model_signs(text: str) -> str:
    """Return a text without what the model takes for its own signs."""
    return _MODEL_SIGNS.sub(r"\1", text)


def _vectors(windows: Sequence[TextWindow], embed: Embed) -> NDArray[np.float32]:
    """Return of each window the mean vector of the tokens of its part, and its own: one row each."""
    rows: list[NDArray[np.float32]] = []
    for window, embedding in zip(windows, embed([window.text for window in windows]), strict=True):
        inside = [first < window.end and window.start < after for first, after in embedding.spans]
        # A part behind the longest text of the model has no tokens, nor has a script that the model does not know.
        tokens = embedding.tokens[inside] if any(inside) else embedding.tokens
        of_part = tokens.mean(axis=0) if len(tokens) else embedding.vector
        rows.append(np.concatenate([of_part, embedding.vector]))
    return np.stack(rows)


@cache
def _encoder(model: str, runtime: RuntimeName) -> SentenceEmbedder:
    """Return an encoder of this process on the runtime of the embedding model."""
    return SentenceEmbedder(model, runtime if runtime in ("openvino", "torch") else "auto")
