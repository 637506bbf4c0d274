"""JSON texts: the texts within a JSON value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast


def json_texts(value: Any) -> Iterator[str]:
    """Yield the texts of a JSON value."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending += cast("dict[str, Any]", item).values()
        elif isinstance(item, list):
            pending += cast("list[Any]", item)
