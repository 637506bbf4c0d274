"""JSON bodies of requests and responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import orjson
from fastapi import Request
from msgspec.structs import asdict
from pydantic import BaseModel, ValidationError
from starlette.responses import Response

from recollect.api.http.routes.rights import CountedResponse
from recollect.events.errors import TooLarge
from recollect.events.field_problems import first_problem
from recollect.events.limits import REQUEST_BYTES_MAX

Body = TypeVar("Body", bound=BaseModel)


async def read_body(request: Request) -> bytes:
    """Return the body of a request.

    Raises:
        TooLarge: it is over `REQUEST_BYTES_MAX`; raised before the rest is received.
    """
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > REQUEST_BYTES_MAX:
            raise TooLarge(f"over the {REQUEST_BYTES_MAX:,} bytes of one request; send several", field="body")
        chunks.append(chunk)
    return b"".join(chunks)


async def parse_body(model: type[Body], request: Request, *, optional: bool = False) -> Body:
    """Return the body of a request as `model`. Any content type is read as JSON, because `curl -d` names a form's.

    Parameters:
        optional: whether an empty body means the defaults of all fields.

    Raises:
        InvalidInput: it does not fit `model`. TooLarge: it is over `REQUEST_BYTES_MAX`.
    """
    body = await read_body(request)
    try:
        return model.model_validate_json(b"{}" if optional and not body.strip() else body, strict=True)
    except ValidationError as error:
        raise first_problem(error, model, root="body") from None


def json_response(body: Mapping[str, Any], *, status: int = 200) -> Response:
    """Return a response with `body` as JSON. Its `items`, or itself as one item, are counted for the audit log."""
    items: Any = body.get("items")
    count = len(cast("list[Any]", items)) if isinstance(items, list) else 1
    return CountedResponse(orjson.dumps(body, asdict), status_code=status, media_type="application/json", count=count)


def body_reference(schema: str, *, required: bool = True) -> dict[str, Any]:
    """Return the fields of an OpenAPI operation that declare a JSON body of `schema`."""
    reference = {"$ref": f"#/components/schemas/{schema}"}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": reference}}}}
