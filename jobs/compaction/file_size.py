"""File size: rebuilds the file of a read model that is too large."""

from __future__ import annotations

import logging

from recollect.events.errors import ProjectionFailed
from recollect.events.storage.namespace_folder import folder_name
from recollect.jobs.derivation.job_context import JobContext

_logger = logging.getLogger(__name__)

#: Bytes of a read model over which its raw episodes are compressed without delay and its file is rebuilt without free
#: pages.
MODEL_BYTES_MAX = 512 << 20
#: Share of free pages from which a rebuild is worth its time.
_FREE_SHARE = 0.25


def limit_file_size(context: JobContext, namespace: str) -> bool:
    """Rebuild the read model if it is too large and has many free pages; return whether it was rebuilt."""
    with context.read_models.reading(namespace) as snapshot:
        too_large = snapshot.progress.file_size_bytes() > MODEL_BYTES_MAX
        if not too_large or snapshot.progress.free_share() < _FREE_SHARE:
            return False
    try:
        context.read_models.replay(namespace)
    except ProjectionFailed:
        # The old file stays in use; health reports the event that failed.
        _logger.warning("namespace %.12s cannot be rebuilt to free space", folder_name(namespace), exc_info=True)
        return False
    return True
