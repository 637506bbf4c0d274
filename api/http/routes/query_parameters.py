"""Query parameters: refuses unknown ones, and reads the filters of a list."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import Request
from fastapi.routing import APIRoute

from recollect.events.errors import InvalidInput
from recollect.projections.queries.page_filters import FILTERS

#: The prefix of a filter by metadata: `metadata.channel=email`.
METADATA_PREFIX = "metadata."


async def refuse_unknown(request: Request) -> None:
    """Refuse query parameters that the route does not have, since a misspelt filter would select everything.

    Raises:
        InvalidInput: a parameter is unknown; the message names those of the route.
    """
    route: Any = request.scope["route"]
    if not isinstance(route, APIRoute):
        return
    filters = FILTERS.get(route.name, {})
    parameters = [parameter.alias for parameter in route.dependant.query_params]
    for name in request.query_params:
        is_metadata = "metadata" in filters and name.startswith(METADATA_PREFIX)
        if name not in parameters and not is_metadata and (name not in filters or name == "metadata"):
            names = [*parameters, *(_parameter_name(filter) for filter in filters)]
            have = f"it has {', '.join(names)}" if names else "it has none"
            raise InvalidInput(f"{request.url.path} has no parameter of this name; {have}", field=name)


def read_filters(request: Request) -> dict[str, Any]:
    """Return the filters of a list request; a parameter that is repeated selects any of its values."""
    query, filters = request.query_params, FILTERS[request.scope["route"].name]
    selected: dict[str, Any] = {name: query.getlist(name) for name in query if name in filters}
    metadata = read_metadata(request)
    for name in ("since", "until"):
        if name in selected:
            # In a query, the plus of a zone such as +01:00 is a space.
            selected[name] = selected[name][-1].replace(" ", "+")
    return selected | ({"metadata": metadata} if metadata else {})


def read_metadata(request: Request) -> dict[str, list[Any]]:
    """Return the values of the parameters `metadata.<name>`, by name."""
    query = request.query_params
    return {
        name.removeprefix(METADATA_PREFIX): [value for text in query.getlist(name) for value in _values(text)]
        for name in query
        if name.startswith(METADATA_PREFIX)
    }


def filter_parameters(name: str) -> list[dict[str, Any]]:
    """Return the filters of the list `name` as parameters of OpenAPI."""
    return [
        {
            "name": _parameter_name(key),
            "in": "query",
            "required": False,
            "description": filter.summary + (f": {', '.join(filter.choices)}" if filter.choices else ""),
            "schema": {"type": "boolean" if filter.kind == "flag" else "string"},
        }
        for key, filter in FILTERS[name].items()
    ]


def _parameter_name(filter_name: str) -> str:
    return f"{METADATA_PREFIX}<name>" if filter_name == "metadata" else filter_name


def _values(text: str) -> list[Any]:
    """Return the values that a text in a query can stand for: itself, and the number, true, false or null it spells."""
    try:
        value: Any = orjson.loads(text)
    except orjson.JSONDecodeError:
        return [text]
    return [text] if isinstance(value, str | dict | list) else [text, value]
