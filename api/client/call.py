"""Call: one request to the server, described apart from how it is sent, and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, cast
from urllib.parse import quote

import orjson
from msgspec import Struct
from pydantic import BaseModel

from recollect.events.errors import InvalidInput, RecollectError
from recollect.events.limits import check_namespace

Result = TypeVar("Result")

#: How long a call may take: as a bot waits for an answer; or as long as work on a whole namespace.
Duration = Literal["short", "long"]

#: The part of a path that names the route: `facts` of `/v1/namespaces/ann/facts/f1/history`.
_ROUTE_PART = 3
#: Characters of the query parameters of a request: servers and proxies limit the headers, in which they are.
_QUERY_CHARS_MAX = 8_000


class Call(Struct, Generic[Result], frozen=True, kw_only=True):
    """One request, and the type of its result."""

    method: Literal["GET", "POST", "PATCH", "DELETE"]
    #: The path below the address of the server, its parts quoted.
    path: str
    #: Returns the result from the decoded JSON of the answer.
    read: Callable[[Any], Result]
    #: Query parameters; a repeated name selects any of its values.
    parameters: Sequence[tuple[str, str]] = ()
    #: The body; None without one.
    body: bytes | None = None
    duration: Duration = "short"
    #: Seconds that the server may take for it, besides the time for the transport; None: those of `duration`.
    work_seconds: float | None = None
    #: Whether it can be sent again when its answer is lost: it only reads, or the ids of its events are in the body.
    is_repeatable: bool = True
    #: Ids of the events that it appends.
    event_ids: tuple[str, ...] = ()
    #: Returns the result when the server is not reached, from the error and the milliseconds that have passed; None:
    #: the error is raised.
    fallback: Callable[[RecollectError, float], Result] | None = None

    @property
    def name(self) -> str:
        """Return the method and the name of the route, for messages: without namespaces, ids and texts."""
        _, *parts = self.path.split("/")
        return f"{self.method} {parts[min(len(parts) - 1, _ROUTE_PART) if parts[0] == 'v1' else 0]}"


def namespace_path(namespace: str, *parts: str) -> str:
    """Return the path of a namespace, or below it.

    Raises:
        InvalidNamespace: the name.
    """
    return "/".join(("/v1/namespaces", quote(check_namespace(namespace), safe=""), *parts))


def id_part(id: str, *, field: str = "id") -> str:
    """Return an id as a part of a path.

    Raises:
        InvalidInput: it cannot be a part of a path. Dots alone would name another path: that of the namespace, say.
    """
    if not id.strip("."):
        raise InvalidInput("give an id; one of dots alone cannot be sent in the path of a request", field=field)
    try:
        return quote(id, safe="")
    except UnicodeEncodeError:
        raise InvalidInput("holds text that is not valid Unicode", field=field) from None


def encoded(body: Mapping[str, Any], *, with_none: bool = False) -> bytes:
    """Return a body as JSON.

    Parameters:
        with_none: whether fields that are None are sent as null, and not left out.

    Raises:
        InvalidInput: a value is not JSON.
    """
    fields = {name: value for name, value in body.items() if with_none or value is not None}
    try:
        return orjson.dumps(fields, default=_jsonable, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    except orjson.JSONEncodeError as error:
        raise InvalidInput(f"cannot be sent as JSON: {error}", field="body") from None


def query(parameters: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return query parameters; those that are None are left out, and of several values each is one.

    Raises:
        InvalidInput: they are too long for a request.
    """
    pairs: list[tuple[str, str]] = []
    for name, value in parameters.items():
        if value is None:
            continue
        if name == "metadata" and isinstance(value, Mapping):
            labels = cast("Mapping[str, Any]", value)
            pairs += [(f"metadata.{label}", text) for label, values in labels.items() for text in _texts(values)]
        else:
            pairs += [(name, text) for text in _texts(value)]
    if sum(len(name) + len(text) for name, text in pairs) > _QUERY_CHARS_MAX:
        raise InvalidInput(f"the parameters have more than {_QUERY_CHARS_MAX:,} characters; send fewer", field="query")
    return pairs


def _texts(value: object) -> list[str]:
    """Return the value of a query parameter as texts."""
    if isinstance(value, Sequence | Set) and not isinstance(value, str | bytes):
        return [text for member in cast("Sequence[object]", value) for text in _texts(member)]
    if isinstance(value, datetime):
        return [value.isoformat()]
    if isinstance(value, str):
        return [value]
    return [orjson.dumps(value, default=str).decode()]


def _jsonable(value: object) -> object:
    """Return a value that JSON does not have as one that it has."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if isinstance(value, Sequence | Set) and not isinstance(value, str | bytes):
        return list(cast("Sequence[Any]", value))
    if isinstance(value, str):
        # A subclass, such as a member of an enumeration.
        return str.__str__(value)
    raise TypeError(f"{type(value).__name__} is not a type of JSON")
