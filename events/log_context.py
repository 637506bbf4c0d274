"""Log context: the fields of log lines that identify the request or the job that writes them.

Names, ids and numbers of our own, never texts of users: the request id, the trace id, a namespace as a hash.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

Value = str | int | float

#: One dictionary for a request and all threads that work on it, so that each of them can add to it.
_fields: ContextVar[dict[str, Value] | None] = ContextVar("recollect_log_fields", default=None)


@contextmanager
def log_context(fields: dict[str, Value]) -> Generator[dict[str, Value]]:
    """Add `fields` to the lines that are logged within the block, in this thread and in tasks that it starts."""
    token = _fields.set(fields)
    try:
        yield fields
    finally:
        _fields.reset(token)


def note(name: str, value: Value) -> None:
    """Add a field to the current context; without one, nothing is noted."""
    fields = _fields.get()
    if fields is not None:
        fields[name] = value


def current_fields() -> Mapping[str, Value]:
    """Return a copy of the fields of the current context."""
    return dict(_fields.get() or {})
