"""Description routes: the OpenAPI description, and its page."""

from __future__ import annotations

import orjson
from fastapi import Request
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.responses import Response

from recollect.api.http.routes.rights import GuardedRouter, allow

_OPENAPI_PATH = "/openapi.json"

router = GuardedRouter(include_in_schema=False)


@router.get(_OPENAPI_PATH)
@allow(extent="any")
async def read_openapi(request: Request) -> Response:
    """Return the OpenAPI description."""
    return Response(orjson.dumps(request.app.openapi()), media_type="application/json")


@router.get("/docs")
@allow(extent="any")
async def read_docs() -> Response:
    """Return the page of the OpenAPI description. A browser sends no token, so it is for servers without tokens."""
    return get_swagger_ui_html(openapi_url=_OPENAPI_PATH, title="Recollect")
