"""Export: the log as lines of JSON, which `import jsonl` reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import orjson

from recollect.events.backends.log import EventLog, each_page


def export_lines(log: EventLog, namespace: str) -> Iterator[bytes]:
    """Yield the events of `namespace` in order, each as one line of JSON, without the erased ones."""
    for event in chain.from_iterable(each_page(log.read, namespace)):
        if not event.is_erased:
            yield orjson.dumps(event.as_json(), option=orjson.OPT_APPEND_NEWLINE)
