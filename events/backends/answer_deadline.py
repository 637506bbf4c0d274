"""Answer deadline: until when the caller of a log waits for the answer of its server.

It is a context variable, because the reads of a retrieval are made by many layers, none of which knows its budget.
A log in SQLite, whose answers come from the disk, does not look at it.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_DEADLINE: ContextVar[float | None] = ContextVar("recollect_answer_deadline", default=None)


@contextmanager
def answers_by(deadline: float | None) -> Generator[None]:
    """Let the log answer by `deadline`, or by an earlier one that holds already; None changes nothing.

    Parameters:
        deadline: `time.monotonic()` seconds after which a read raises `LogUnreachable`.
    """
    outer = _DEADLINE.get()
    if deadline is None or (outer is not None and outer <= deadline):
        yield
        return
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def answer_deadline() -> float | None:
    """Return the deadline that holds here, in `time.monotonic()` seconds; None without one."""
    return _DEADLINE.get()


def seconds_left(default: float) -> float:
    """Return the seconds until the deadline, at least 0; `default` without one."""
    deadline = _DEADLINE.get()
    return default if deadline is None else max(0.0, deadline - time.monotonic())
