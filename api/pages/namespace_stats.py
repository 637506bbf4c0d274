"""Namespace statistics: how many memories one namespace holds, and the bytes that it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect.events.storage.file_sizes import size_bytes
from recollect.events.storage.namespace_folder import hashed_folder
from recollect.projections.queries.snapshot import Snapshot

#: The files of a namespace's folder, by what they hold.
_FILES = {"read_model": "[0-9]*.db*", "vectors": "vectors.db*", "past_read_models": "as-of/*.db*"}


def namespace_stats(snapshot: Snapshot, data: Path, namespace: str) -> dict[str, Any]:
    """Return the numbers of episodes by tier and of memories by list, and the sizes of the files in the data folder."""
    folder = hashed_folder(data / "namespaces", namespace)
    return {
        "version": snapshot.version,
        "episodes": {
            tier: {"episodes": totals.episodes, "tokens": totals.tokens}
            for tier, totals in snapshot.episodes.tier_totals().items()
        },
        "memories": {
            name: {"active": active, "others": others} for name, (active, others) in snapshot.pages.totals().items()
        },
        "entities": snapshot.map.entity_count(),
        "bytes": {name: size_bytes(folder.glob(pattern)) for name, pattern in _FILES.items()},
    }
