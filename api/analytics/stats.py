"""Statistics: numbers of events and episodes, backlog and sizes of a data folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recollect.api.analytics.tables import Tables
from recollect.events.backends.log import EventLog, each_head
from recollect.events.progress import OnProgress
from recollect.events.storage.archive import Archive
from recollect.events.storage.file_sizes import size_bytes
from recollect.jobs.queue.backlog import namespaces_behind
from recollect.projections.read_models.read_models import ReadModels

#: Days in the statistics, newest first.
_DAYS = 31
#: Namespaces in the statistics, largest first.
_NAMESPACES = 50

_QUERIES = {
    "by_type": "SELECT type, count(*) AS events FROM events GROUP BY type ORDER BY events DESC, type",
    "by_day": "SELECT strftime(occurred_at, '%Y-%m-%d') AS day, count(*) AS events FROM events "
    f"GROUP BY day ORDER BY day DESC LIMIT {_DAYS}",
    "by_namespace": "SELECT namespace, count(*) AS events, strftime(max(occurred_at), '%Y-%m-%d') AS last_day "
    f"FROM events GROUP BY namespace ORDER BY events DESC, namespace LIMIT {_NAMESPACES}",
    "tiers": "SELECT tier, count(*) AS episodes, sum(token_count)::BIGINT AS tokens FROM episodes "
    "GROUP BY tier ORDER BY episodes DESC",
}


def stats(
    tables: Tables,
    log: EventLog,
    archive: Archive,
    read_models: ReadModels,
    data: Path,
    *,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Return the statistics, in the form that ``recollect stats --json`` prints."""
    # Read the lag first, because loading the episodes catches up with the log.
    lag = namespaces_behind(log, read_models)
    tables.load(("events", "episodes"), on_progress=on_progress)
    figures: dict[str, Any] = {}
    for name, query in _QUERIES.items():
        answer = tables.connection.execute(query)
        columns = [column[0] for column in answer.description or ()]
        figures[name] = [dict(zip(columns, row, strict=True)) for row in answer.fetchall()]
    heads = list(each_head(log))
    figures["events"] = sum(head.version for head in heads)
    figures["namespaces"] = len(heads)
    figures["knowledge"] = _knowledge(read_models, [head.namespace for head in heads])
    figures["lag"] = lag
    figures["sizes"] = _sizes(heads_events=figures["events"], archive=archive, log=log, data=data)
    return figures


def _knowledge(read_models: ReadModels, namespaces: Sequence[str]) -> list[dict[str, Any]]:
    """Return how many memories of each kind are active, and how many are not, in all namespaces."""
    active: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for namespace in namespaces:
        with read_models.reading(namespace) as snapshot:
            for name, (active_rows, other_rows) in snapshot.pages.totals().items():
                active[name] += active_rows
                others[name] += other_rows
    return [{"kind": name, "active": active[name], "others": others[name]} for name in active]


def _sizes(*, heads_events: int, archive: Archive, log: EventLog, data: Path) -> dict[str, Any]:
    segments = [segment for head in each_head(log) for segment in archive.segments(head.namespace)]
    sealed = sum(segment.last_version - segment.first_version + 1 for segment in segments)
    sealed_bytes = sum(segment.bytes for segment in segments)
    sizes: dict[str, Any] = {
        "log_bytes": log.size_bytes(),
        "archive_bytes": sealed_bytes,
        "sealed_events": sealed,
        "sealed_bytes_an_event": round(sealed_bytes / sealed, 1) if sealed else None,
        "read_models_bytes": _bytes_of(data / "namespaces", "**/[0-9]*.db*"),
        "vectors_bytes": _bytes_of(data / "namespaces", "**/vectors.db*"),
        "traces_bytes": _bytes_of(data / "traces", "*.ndjson"),
    }
    live = heads_events - sum(log.pruned(head.namespace) for head in each_head(log))
    if sizes["log_bytes"] and live:
        sizes["live_bytes_an_event"] = round(sizes["log_bytes"] / live, 1)
        if sealed:
            sizes["compression"] = round(sizes["live_bytes_an_event"] / sizes["sealed_bytes_an_event"], 2)
    return sizes


def _bytes_of(folder: Path, pattern: str) -> int:
    return size_bytes(folder.glob(pattern)) if folder.is_dir() else 0
