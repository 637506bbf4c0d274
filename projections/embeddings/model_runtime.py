"""Model runtime: the interface to an embedding model that a library runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, Protocol

import numpy as np

from recollect.events.instruments import Counter
from recollect.projections.embeddings.stretches import Purpose, Stretch, TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector

RuntimeName = Literal["openvino", "torch", "static", "none"]


EMBEDDED_TOKENS = Counter("recollect_embedded_tokens", "Tokens that the embedding model has read, with their contexts")

#: Returns what is held during one forward pass.
Hold = Callable[[], AbstractContextManager[None]]


class RuntimeRefused(Exception):
    """The configured runtime cannot run the model; the message says why and what to do."""


class PendingEmbedding(Protocol):
    """The embedding of a query that is being computed; a `Future` is one."""

    def result(self, timeout: float | None = None) -> TokenEmbedding:
        """Return the embedding; raise `TimeoutError` when it is not there after `timeout` seconds."""
        ...


class QueryPass(PendingEmbedding, Protocol):
    """A forward pass that runs in parallel with the thread that begins it. Another one may begin once it is over."""

    def begin(self) -> None:
        """Begin it."""
        ...

    def wait(self) -> None:
        """Wait until it is over. It raises no error: `result` does."""
        ...

    @property
    def is_over(self) -> bool:
        """Return whether it is over."""
        ...


class Runtime(Protocol):
    """A loaded model. One thread at a time may use it, but for what `encode` does outside its forward passes."""

    @property
    def name(self) -> RuntimeName:
        """Return the name of the runtime."""
        ...

    @property
    def tokenizer(self) -> Any:
        """Return the model's tokenizer: a tokenizer of transformers."""
        ...

    @property
    def tokens_max(self) -> int | None:
        """Return the tokens after which the model truncates a text, special tokens included; None for no limit."""
        ...

    def encode(
        self, stretches: Sequence[Stretch], hold: Hold = nullcontext, purpose: Purpose = "document"
    ) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch.

        The vector of a part in a context is the mean over the part's tokens. A part is embedded without its context
        when the model cannot read both at once, or when the mean over a part's tokens has no meaning in the model's
        vector space.

        Parameters:
            hold: held during each forward pass over a batch.
            purpose: what the texts are embedded for; it selects the model's prompt.
        """
        ...

    def query_pass(self, stretch: Stretch) -> QueryPass | None:
        """Return the forward pass over a query, not begun; None for a runtime whose passes are one of this thread."""
        ...


def end_with_program() -> None:
    """End this thread when the main thread has ended: called between the steps of a load, for which the end waits."""
    if not threading.main_thread().is_alive():
        raise SystemExit


def normalised(vectors: Vector) -> Vector:
    """Return the rows of `vectors`, shape (n, dimensions), scaled to length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
