"""HTTP page: the table of routes, from OpenAPI, and the fields of a retrieval's request and answer."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

from schema_tables import field_table, table
from source_comments import field_comment

from recollect import Recollect
from recollect.api.http.app import create_app
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import AnswerGuidance, Item, RetrieveResult
from recollect.api.settings import load_settings
from recollect.projections.queries.page_filters import FILTERS


def openapi() -> dict[str, Any]:
    """Return the OpenAPI description of the application."""
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(data=Path(folder))
        with Recollect(settings=settings, workers=False) as memory:
            return create_app(memory).openapi()


def routes() -> str:
    """Return every route with its parameters and its body."""
    rows: list[tuple[str, ...]] = []
    for path, methods in openapi()["paths"].items():
        for method, route in methods.items():
            parameters = [f"`{one['name']}`" for one in route.get("parameters", []) if one["in"] == "query"]
            rows.append(
                (method.upper(), f"`{path}`", _meaning(route), _scopes(route), ", ".join(parameters), _body(route))
            )
    return table(("method", "path", "what it does", "scopes", "query parameters", "body"), rows)


def request() -> str:
    """Return the fields of a retrieval's request."""
    return field_table(RetrieveRequest)


def answer() -> str:
    """Return the fields of a retrieval's answer, of its items and of `answer`."""
    return "\n\n".join(
        (
            _dataclass_table(RetrieveResult, without=("stages_ms", "explain"), renamed={"aids": "answer"}),
            f"Each of `items`:\n\n{_dataclass_table(Item, without=('authoritative', 'is_read_rule', 'utc_offset'))}",
            f"`answer`:\n\n{_dataclass_table(AnswerGuidance)}",
        )
    )


def filters() -> str:
    """Return the filters of the lists with what they select; a filter that several lists share is one row."""
    lists: dict[tuple[str, str, str], list[str]] = {}
    for name, filters in FILTERS.items():
        for key, filter in filters.items():
            shown = "metadata.<name>" if key == "metadata" else key
            lists.setdefault((shown, filter.summary, ", ".join(filter.choices)), []).append(name)
    rows = [
        (", ".join(f"`{name}`" for name in names), f"`{key}`", summary, choices)
        for (key, summary, choices), names in lists.items()
    ]
    return table(("lists", "filter", "selects the items with", "values"), rows)


def _meaning(route: dict[str, Any]) -> str:
    return " ".join(route.get("description", route.get("summary", "")).split())


def _scopes(route: dict[str, Any]) -> str:
    """Return the scopes that a token needs; a route about the whole server needs them for all namespaces."""
    if not route["security"]:
        return "none, and no token"
    scopes = ", ".join(f"`{scope}`" for scope in route["security"][0]["token"])
    return f"{scopes} of `*`" if route["x-extent"] == "server" else scopes


def _body(route: dict[str, Any]) -> str:
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    return content.get("$ref", "").rpartition("/")[2].lstrip("_")


def _dataclass_table(owner: type, *, without: tuple[str, ...] = (), renamed: dict[str, str] | None = None) -> str:
    rows: list[tuple[str, ...]] = []
    for field in dataclasses.fields(owner):
        if field.name not in without:
            name = (renamed or {}).get(field.name, field.name)
            # Inside, times are microseconds; the outside sees RFC 3339.
            rows.append((f"`{name.removesuffix('_us')}`", field_comment(owner, field.name)))
    return table(("field", ""), rows)
