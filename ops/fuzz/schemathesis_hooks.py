"""Hooks of schemathesis: bodies that it cannot write by itself, lines of JSON; and no answers without an end."""

from __future__ import annotations

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def write_lines(_: schemathesis.SerializationContext, value: object) -> bytes:
    """Return a generated text as a body; half of a pair of surrogates becomes a question mark."""
    return str(value).encode("utf-8", "replace")


@schemathesis.hook  # pyright: ignore[reportUnknownMemberType]
def map_query(_: schemathesis.HookContext, query: dict[str, object] | None) -> dict[str, object] | None:
    """Leave out the parameter that asks for a stream of events, which ends with the server."""
    return {name: value for name, value in query.items() if name != "follow"} if query else query
