"""File export: a namespace as the files of a format, for the command line and HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from recollect.api.exporters.exported_rows import ExportedRows, read_rows
from recollect.api.exporters.memory_view import LOG_ID_CHARS, render_view
from recollect.api.exporters.okf_bundle import render_bundle
from recollect.api.memory.recollect import Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS_MAX
from recollect.events.envelope import now_us, rfc3339

_RENDER: Final[Mapping[str, Callable[[ExportedRows], Iterator[tuple[str, str]]]]] = {
    "okf": render_bundle,
    "memory-md": render_view,
}


def export_files(memory: Recollect, namespace: str, form: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file of a namespace in a format, `okf` or `memory-md`."""
    rows = read_rows(
        lambda name, after: memory.list(namespace, name, after=after, limit=PAGE_ITEMS_MAX),
        namespace,
        log_id=memory.parts.log.log_id[:LOG_ID_CHARS],
        version=memory.parts.log.head(namespace).version,
        exported_at=rfc3339(now_us()),
    )
    return _RENDER[form](rows)
