"""HTTP page: the list of routes, from OpenAPI, and the fields of a retrieval's request and answer."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

from msgspec import Struct
from schema_tables import entry, field_list
from source_comments import field_comment

from recollect import Recollect
from recollect.api.http.app import create_app
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import AnswerGuidance, Item, RetrieveResult
from recollect.api.settings import load_settings
from recollect.projections.queries.page_filters import FILTERS

#: The path of a list, and the parameters that each has besides its filters.
_LIST = re.compile(r"/v1/namespaces/\{namespace\}/\w+")
_LIST_PARAMETERS = ("after", "limit", "as_of")


def openapi() -> dict[str, Any]:
    """Return the OpenAPI description of the application."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(data=Path(folder))
        with Recollect(settings=settings, workers=False) as memory:
            return create_app(memory).openapi()


def routes() -> str:
    """Return every route with its scopes, its parameters and its body; lists with the same ones are one entry."""
    description = openapi()
    grouped: dict[tuple[str, str], list[str]] = {}
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            is_list = _LIST.fullmatch(path) is not None and path.rpartition("/")[2] in FILTERS
            details = "; ".join(filter(None, (_scopes(route), _parameters(route, is_list), _body(description, route))))
            meaning = "List items, with [filters](#filters)." if is_list else _meaning(route)
            grouped.setdefault((details, meaning), []).append(f"`{method.upper()} {path}`")
    return "\n".join(entry(", ".join(paths), details, meaning) for (details, meaning), paths in grouped.items())


def request() -> str:
    """Return the fields of a retrieval's request."""
    return field_list(RetrieveRequest)


def answer() -> str:
    """Return the fields of a retrieval's answer, of its items and of `answer`."""
    return "\n\n".join(
        (
            _field_list(RetrieveResult, without=("stages_ms", "explain"), renamed={"aids": "answer"}),
            f"Each of `items`:\n\n{_field_list(Item, without=('authoritative', 'is_read_rule', 'utc_offset'))}",
            f"`answer`:\n\n{_field_list(AnswerGuidance)}",
        )
    )


def filters() -> str:
    """Return the filters of the lists with what they select; a filter that several lists share is one entry."""
    lists: dict[tuple[str, str, str], list[str]] = {}
    for name, filters in FILTERS.items():
        for key, filter in filters.items():
            shown = "metadata.<name>" if key == "metadata" else key
            lists.setdefault((shown, filter.summary, ", ".join(filter.choices)), []).append(name)
    own = {name: [key for key, names in lists.items() if names == [name]] for name in FILTERS}
    shared = [(key, names) for key, names in lists.items() if len(names) > 1]
    return "\n".join(
        (
            *(entry(f"`{key[0]}`", ", ".join(names), _selects(key)) for key, names in shared),
            *(
                f"- {name} alone: {'; '.join(f'`{key[0]}`, {_selects(key)}' for key in keys)}"
                for name, keys in own.items()
                if keys
            ),
        )
    )


def _selects(key: tuple[str, str, str]) -> str:
    """Return what a filter selects, with its values."""
    _, summary, choices = key
    return f"{summary} ({choices})" if choices else summary


def _meaning(route: dict[str, Any]) -> str:
    return " ".join(route.get("description", route.get("summary", "")).split())


def _scopes(route: dict[str, Any]) -> str:
    """Return the scopes that a token needs; a route about the whole server needs them for all namespaces."""
    if not route["security"]:
        return "none, and no token"
    scopes = ", ".join(f"`{scope}`" for scope in route["security"][0]["token"])
    return f"{scopes} of `*`" if route["x-extent"] == "server" else scopes


def _parameters(route: dict[str, Any], is_list: bool) -> str:
    names = [one["name"] for one in route.get("parameters", []) if one["in"] == "query"]
    return ", ".join(f"`{name}`" for name in (_LIST_PARAMETERS if is_list else names))


def _body(description: dict[str, Any], route: dict[str, Any]) -> str:
    """Return the fields of a route's body; those of a retrieval have a section of their own."""
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    name = content.get("$ref", "").rpartition("/")[2]
    fields: dict[str, Any] = description["components"]["schemas"][name].get("properties", {}) if name else {}
    if not fields or name == "RetrieveRequest":
        return ""
    return f"body {', '.join(f'`{field}`' for field in fields)}"


def _field_list(owner: type[Struct], *, without: tuple[str, ...] = (), renamed: dict[str, str] | None = None) -> str:
    entries: list[str] = []
    for field in owner.__struct_fields__:
        if field not in without:
            name = (renamed or {}).get(field, field)
            # Inside, times are microseconds; the outside sees RFC 3339.
            entries.append(entry(f"`{name.removesuffix('_us')}`", "", field_comment(owner, field)))
    return "\n".join(entries)
