"""Export: the log as lines of JSON, which `import jsonl` reads."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from recollect.events.backends.log import EventLog


def export_lines(log: EventLog, namespace: str) -> Iterator[bytes]:
    """Yield the events of `namespace` in order, each as one line of JSON, without the erased ones."""
    after = 0
    while events := log.read(namespace, after=after):
        for event in events:
            if event.is_erased:
                continue
            yield orjson.dumps(event.as_json(), option=orjson.OPT_APPEND_NEWLINE)
        after = events[-1].version
