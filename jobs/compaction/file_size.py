"""The size of a read model's file."""

from __future__ import annotations

import logging

from recollect.events.errors import ProjectionFailed
from recollect.jobs.derivation.job_context import JobContext

_logger = logging.getLogger(__name__)

#: The part of a file that must be free for a rebuild to be worth it.
_FREE_SHARE = 0.25


def limit_file_size(context: JobContext, namespace: str) -> bool:
    """Rebuild a read model that is too large and has much free space in it; return whether it was."""
    with context.read_models.reading(namespace) as snapshot:
        too_large = snapshot.progress.file_size_bytes() > context.settings.compaction.model_bytes_max
        if not too_large or snapshot.progress.free_share() < _FREE_SHARE:
            return False
    try:
        context.read_models.replay(namespace)
    except ProjectionFailed:
        # It goes on serving as it is; health shows where it is parked.
        _logger.warning("namespace %r cannot be rebuilt to free space", namespace, exc_info=True)
        return False
    return True
