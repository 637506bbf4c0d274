"""Errors page: every error with its base class and its HTTP status."""

from __future__ import annotations

import inspect

from schema_tables import first_paragraph, table

from recollect.api.http.routes import problems
from recollect.events import errors
from recollect.events.errors import RecollectError

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
    """Return a table of the classes."""
    rows = [
        (f"`{error.__name__}`", _parent(error), _status(error), first_paragraph(error)) for error in error_classes()
    ]
    return table(("error", "is a", "HTTP", "what it means"), rows)


def _parent(error: type[RecollectError]) -> str:
    return f"`{error.__bases__[0].__name__}`"


def _status(error: type[RecollectError]) -> str:
    return str(next(status for kind, status in _STATUS if issubclass(error, kind)))
