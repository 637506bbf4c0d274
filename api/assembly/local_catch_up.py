"""Local catch-up: brings the files of this machine up to date for namespaces whose retrievals were degraded.

A machine keeps the namespaces that it is asked for. The first retrieval of one answers within its budget from what is
projected by then; the rest is projected here, and the vectors are read from the other machines, or made.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict

from recollect.events.errors import RecollectError
from recollect.events.storage.namespace_folder import folder_name
from recollect.projections.embeddings.vectors import CurrentVectors
from recollect.projections.read_models.read_models import ReadModels

_logger = logging.getLogger(__name__)

#: Namespaces that wait: of more, the one asked for first is dropped, and the next retrieval asks for it again.
_WAITING_MAX = 1_000
#: Seconds that `close` waits for the batch in progress; a daemon thread does not keep the process.
_STOP_SECONDS = 10.0


class LocalCatchUp:
    """A thread that projects and embeds the namespaces of `request`. Safe to use from many threads."""

    def __init__(self, read_models: ReadModels, current_vectors: CurrentVectors) -> None:
        self._read_models = read_models
        self._current_vectors = current_vectors
        self._waiting: OrderedDict[str, None] = OrderedDict()
        self._changed = threading.Condition()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def request(self, namespace: str) -> None:
        """Bring `namespace` up to date soon."""
        with self._changed:
            if self._stop.is_set():
                return
            self._waiting[namespace] = None
            if len(self._waiting) > _WAITING_MAX:
                self._waiting.popitem(last=False)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="recollect-local-catch-up")
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """End after the batch in progress."""
        with self._changed:
            self._stop.set()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._stop.is_set())
                if self._stop.is_set():
                    return
                # The newest first: its caller asks again soon.
                namespace, _ = self._waiting.popitem()
            try:
                self._read_models.catch_up(namespace)
                self._current_vectors().embed_new(namespace, stop=self._stop)
            except RecollectError as error:
                # Its message says what to do; a traceback would look like a fault of the program.
                _logger.warning("namespace %.12s could not be brought up to date: %s", folder_name(namespace), error)
            except Exception:
                _logger.exception("namespace %.12s could not be brought up to date", folder_name(namespace))
