"""Description routes: the OpenAPI description, and its page."""

from __future__ import annotations

import orjson
from fastapi import Request
from starlette.responses import Response

from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.api.http.routes.viewer_routes import page_response

router = GuardedRouter(include_in_schema=False)


@router.get("/openapi.json")
@allow(extent="any", audited=False)
async def read_openapi(request: Request) -> Response:
    """Return the OpenAPI description."""
    return Response(orjson.dumps(request.app.openapi()), media_type="application/json")


@router.get("/docs")
@allow(extent="any", audited=False)
async def read_docs(request: Request) -> Response:
    """Return the page of the OpenAPI description. A browser sends no token, so it is for servers without tokens."""
    return page_response(request, "openapi.html")
