"""Reranker: optionally reorders the first items by a cross-encoder, within the time budget."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from msgspec.structs import replace

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.contract.time_budget import TimeBudget
from recollect.events.errors import short_text

_logger = logging.getLogger(__name__)

#: Items that are scored again, at about 5 ms each for a small model on one core.
_ITEMS_MAX = 20
#: Characters of each text that the model reads.
_CHARS_MAX = 1_000


class Reranker:
    """A cross-encoder of sentence-transformers. Safe to use from many threads.

    Parameters:
        model: the name of the cross-encoder on the model hub, or its folder.
    """

    def __init__(self, model: str) -> None:
        self._name = model
        #: A CrossEncoder, or None while it is not loaded; its methods have no useful types.
        self._model: Any = None
        self._reason = "model loading"
        self._load_finished = threading.Event()
        self._start_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        # One thread, since parallel predictions would compete for the same cores.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="recollect-reranker")

    def start(self) -> None:
        """Start to load the model in the background. A second call does nothing."""
        with self._start_lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._load, name="recollect-reranker-loader", daemon=True)
                self._thread.start()

    def wait_ready(self, timeout_seconds: float) -> bool:
        """Wait until the model is loaded or has failed to load; return whether it is loaded."""
        self._load_finished.wait(timeout_seconds)
        return self._model is not None

    def close(self) -> None:
        """Wait for running predictions, then stop the thread."""
        self._pool.shutdown()

    def rerank(self, query: str, items: Sequence[Item], budget: TimeBudget) -> list[Item]:
        """Return `items` with the first ones in the order of the cross-encoder; unchanged when it is late or fails.

        The scores keep their positions: the item that is now first gets the highest score.
        """
        if self._model is None:
            budget.record_missing("reranker", self._reason)
            return list(items)
        first, rest = list(items[:_ITEMS_MAX]), list(items[_ITEMS_MAX:])
        started_ms = budget.spent_ms
        pending = self._pool.submit(self._scores, query, [item.text[:_CHARS_MAX] for item in first])
        try:
            scores = pending.result(budget.left_seconds)
        except FutureTimeout:
            pending.cancel()
            budget.record_missing("reranker", "out of time")
            return list(items)
        except Exception as error:
            budget.record_missing("reranker", error)
            return list(items)
        finally:
            budget.end_stage("rerank", started_ms)
        order = sorted(range(len(first)), key=lambda index: (-scores[index], index))
        reordered = [
            replace(first[index], score=first[position].score, ranks=first[index].ranks | {"reranker": position + 1})
            for position, index in enumerate(order)
        ]
        return [*reordered, *rest]

    def _scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the score of each text for the query."""
        scores: Any = self._model.predict([(query, text) for text in texts], show_progress_bar=False)
        return [float(score) for score in scores]

    def _load(self) -> None:
        """Load the model; record the reason when it fails."""
        try:
            # The import takes seconds, so it runs here, in the background thread.
            from sentence_transformers import CrossEncoder  # noqa: PLC0415

            self._model = CrossEncoder(self._name)
        except Exception as error:
            cause = short_text(error)
            self._reason = f"model {self._name!r} could not be loaded ({cause}); check RECOLLECT_RERANKER"
            _logger.warning("the re-ranking %s", self._reason)
        finally:
            self._load_finished.set()
