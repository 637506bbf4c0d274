"""HTTP contract: its number, and the fields of a problem that a client builds the error of the server from."""

from __future__ import annotations

from typing import Any

from recollect.events import errors
from recollect.events.errors import InvalidInput, RecollectError, StorageError, TooManyBuilds, TooManyRequests

#: The header of every answer of a server with the number of its contract.
CONTRACT_HEADER = "recollect-contract"
#: Raised when a client of before could no longer read the answers. New routes and new fields do not raise it: clients
#: ignore fields that they do not know.
CONTRACT = 1
#: The attributes of errors that a problem has as fields, besides `field`.
_ATTRIBUTES = ("namespace", "version", "expected", "actual", "event_id", "reason", "retry_seconds")


def problem_fields(error: RecollectError) -> dict[str, Any]:
    """Return the fields of the problem of an error that a client builds the same error from."""
    fields: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, InvalidInput):
        return fields | {"field": error.field}
    if isinstance(error, StorageError):
        # Its attributes name files and namespaces, which are the operator's.
        return fields
    return fields | {name: vars(error)[name] for name in _ATTRIBUTES if name in vars(error)}


def error_of(problem: dict[str, Any]) -> RecollectError | None:
    """Return the error that a problem describes; None when it names no error of this version."""
    detail = str(problem.get("detail", ""))
    kind: object = getattr(errors, str(problem.get("error", "")), None)
    if not (isinstance(kind, type) and issubclass(kind, RecollectError)):
        return None
    error = kind.__new__(kind)
    # The message is the server's; the constructors would write another one around it.
    Exception.__init__(error, detail)
    if isinstance(error, InvalidInput):
        error.field = str(problem.get("field", ""))
        error.reason = detail.removeprefix(f"{error.field}: ")
        return error
    if isinstance(error, TooManyRequests | TooManyBuilds):
        error.retry_seconds = 1
    for name in _ATTRIBUTES:
        if name in problem:
            setattr(error, name, problem[name])
    return error
