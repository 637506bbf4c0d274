"""Warm-up: loads the models of retrievals and the indexes of the namespaces that were searched last, after a start.

The first retrieval from 50,000 messages and 5,000 facts takes 0.6 s otherwise, and runs out of time for the vectors.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.retrieval_models import load_models
from recollect.events.errors import RecollectError
from recollect.events.storage.database import DatabaseError
from recollect.projections.embeddings.reading_encoder import wait_for_encoders

_logger = logging.getLogger(__name__)

#: Seconds after the start of a server: those who wait for it ask first, 60 ms sooner.
_DELAY_SECONDS = 0.2
#: Namespaces that are loaded.
_NAMESPACES_MAX = 16
#: Seconds of processor time after which no further one is.
_SECONDS_MAX = 3.0
#: A question that nothing answers at once: all parts of a retrieval read for it.
_QUERY = "Where did we have dinner?"


def start_warm_up(parts: MemoryParts, owns: Callable[[str], bool]) -> threading.Thread:
    """Begin to load the indexes in a thread of its own, and return it; it ends soon after the stop of the jobs is set.

    Parameters:
        owns: whether this process answers for a namespace.
    """
    thread = threading.Thread(target=_warm_up, args=(parts, owns), name="recollect-warm-up")
    thread.start()
    return thread


def _warm_up(parts: MemoryParts, owns: Callable[[str], bool]) -> None:
    namespaces = [it for it in parts.trace_store.last_namespaces(_NAMESPACES_MAX) if owns(it)]
    stop = parts.job_context.stop
    if stop.wait(_DELAY_SECONDS):
        return
    try:
        wait_for_encoders(parts.vectors.embedder, [], stop)
        load_models(parts.vectors.embedder.name)
        if parts.vectors.embedder.state == "ready":
            parts.retriever.prepare(parts.vectors)
    except InterruptedError:
        return
    for namespace in namespaces:
        if stop.is_set() or time.thread_time() > _SECONDS_MAX:
            return
        try:
            _load(parts, namespace)
        except (RecollectError, DatabaseError) as error:
            _logger.debug("the indexes of a namespace are loaded by its first retrieval: %s", error)


def _load(parts: MemoryParts, namespace: str) -> None:
    """Load the indexes of a namespace, which take longer than a retrieval may, and what the first retrieval needs."""
    vectors = parts.vectors
    with parts.read_models.reading(namespace) as snapshot:
        parts.indexes.get(snapshot).knowledge.prepare()
        if vectors.embedder.state == "ready":
            vectors.index(namespace, snapshot)
    if not parts.job_context.stop.is_set():
        # The weights of the trained models, and the vectors of the knowledge.
        parts.retriever.retrieve(namespace, RetrieveRequest(query=_QUERY))
