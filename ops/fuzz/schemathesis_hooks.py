"""Bodies that schemathesis cannot write by itself: lines of JSON."""

from __future__ import annotations

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def write_lines(_: schemathesis.SerializationContext, value: object) -> bytes:
    """Return a generated text as a body; half of a pair of surrogates becomes a question mark."""
    return str(value).encode("utf-8", "replace")
