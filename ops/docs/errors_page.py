"""Errors page: the tree of errors with the HTTP status and the exit code of each."""

from __future__ import annotations

import inspect

from schema_tables import first_paragraph, table

from recollect.api.http.routes import problems
from recollect.events import errors
from recollect.events.errors import NotSettled, ProjectionFailed, RecollectError

#: The status of each error, the special before the general.
_STATUS: tuple[tuple[type[RecollectError], int], ...] = vars(problems)["_STATUS"]


def error_classes() -> list[type[RecollectError]]:
    """Return every class of the tree, in the order of its source."""
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, RecollectError) and value.__module__ == errors.__name__
    ]


def render() -> str:
    """Return the tree as it is drawn in the source, and a table of its classes."""
    tree = (errors.__doc__ or "").partition("\n\n")[2].rstrip()
    rows = [
        (f"`{error.__name__}`", _parent(error), _status(error), _exit(error), first_paragraph(error))
        for error in error_classes()
    ]
    return f"```\n{tree}\n```\n\n{table(('error', 'is a', 'HTTP', 'exit', 'what it means'), rows)}"


def _parent(error: type[RecollectError]) -> str:
    return f"`{error.__bases__[0].__name__}`"


def _status(error: type[RecollectError]) -> str:
    return str(next(status for kind, status in _STATUS if issubclass(error, kind)))


def _exit(error: type[RecollectError]) -> str:
    return "1" if issubclass(error, ProjectionFailed | NotSettled) else "2"
