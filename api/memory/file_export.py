"""File export: a namespace as the files of a format, or as the lines of JSON that `import jsonl` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final

import orjson

from recollect.api.exporters.exported_rows import ExportedRows, read_rows
from recollect.api.exporters.memory_view import LOG_ID_CHARS, render_view
from recollect.api.exporters.okf_bundle import render_bundle
from recollect.api.memory.recollect import Recollect
from recollect.api.pages.list_pages import PAGE_ITEMS_MAX
from recollect.events.backends.log import EventLog, each_page
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


def export_lines(log: EventLog, namespace: str) -> Iterator[bytes]:
    """Yield the events of `namespace` in order, each as one line of JSON, without the erased ones."""
    for event in chain.from_iterable(each_page(log.read, namespace)):
        if not event.is_erased:
            yield orjson.dumps(event.as_json(), option=orjson.OPT_APPEND_NEWLINE)
