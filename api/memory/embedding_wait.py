"""Embedding wait: lets a retrieval in Python wait for the embedding model and for the vectors of new messages."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.retrieval.retrieval_models import load_models
from recollect.events.storage.namespace_folder import folder_name

_logger = logging.getLogger(__name__)


class EmbeddingWait:
    """Waits until a retrieval can search by meaning, for a limited time. Safe to use from many threads.

    While the model loads, retrievals wait for it until `model_wait_seconds` after the first one, so a model that takes
    minutes to download delays a process once. When the model is ready, a retrieval embeds the messages that have no
    vectors yet, within a second time budget as long as its own; a batch that has begun is completed. Until those
    `model_wait_seconds` are over, it also waits for the batch of another thread: the first batch of a process can take
    seconds, since libraries and weights are still being loaded.
    """

    def __init__(self, parts: MemoryParts) -> None:
        self._parts = parts
        self._lock = threading.Lock()
        #: `time.monotonic()` seconds until which retrievals wait for the model; None before the first one.
        self._model_deadline: float | None = None

    def wait(self, namespaces: Iterable[str]) -> None:
        """Wait for the model, and for the vectors of new messages of `namespaces`. It raises no error."""
        wait_seconds = self._parts.settings.retrieval.model_wait_seconds
        vectors = self._parts.vectors
        if not wait_seconds:
            return
        vectors.embedder.start()
        try:
            if vectors.embedder.state == "loading":
                load_models(vectors.embedder.name)
            if not vectors.embedder.wait_ready(self._model_seconds_left(wait_seconds)):
                return
            self._parts.retriever.prepare(vectors)
        except Exception:
            _logger.debug("the retriever could not be prepared for the model", exc_info=True)
        deadline = time.monotonic() + self._parts.settings.retrieval.retrieval_budget_ms / 1_000
        wait_until = time.monotonic() + self._model_seconds_left(wait_seconds)
        for namespace in namespaces:
            try:
                self._parts.read_models.catch_up(namespace, deadline=deadline)
                vectors.embed_new(namespace, deadline=deadline, wait_until=wait_until)
            except Exception:
                # The retrieval that follows meets the same error, and names it in `degraded`.
                _logger.debug(
                    "the new messages of namespace %.12s could not be embedded", folder_name(namespace), exc_info=True
                )

    def _model_seconds_left(self, wait_seconds: float) -> float:
        """Return the seconds that a retrieval still waits for the model, from `wait_seconds` at the first call."""
        now = time.monotonic()
        with self._lock:
            if self._model_deadline is None:
                self._model_deadline = now + wait_seconds
            return max(0.0, self._model_deadline - now)
