"""Viewer routes: the page of the viewer and its files, from `api/web`. They hold no data, so they need no token."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi import Request
from msgspec import Struct
from starlette.responses import Response

from recollect.api.http.routes.rights import GuardedRouter, allow
from recollect.events.errors import NotFound

#: A page may load files of this server and nothing else, run no text as code, and not be framed.
_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    # A new version is used at the next load; an unchanged file is not sent again.
    "cache-control": "no-cache",
}

router = GuardedRouter(include_in_schema=False)
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@router.get("/")
@allow(extent="public", audited=False)
async def read_viewer(request: Request) -> Response:
    """Return the page of the viewer."""
    return page_response(request, "index.html")


@router.get("/web/{name}")
@allow(extent="public", audited=False)
async def read_viewer_file(request: Request, name: str) -> Response:
    """Return a file of the viewer."""
    return page_response(request, name)


def page_response(request: Request, name: str) -> Response:
    """Return a file, or 304 when the browser has it; raise `NotFound` for a name that the viewer does not have."""
    file = viewer_files().get(name)
    if file is None:
        raise NotFound("the viewer has no file of this name", field="name")
    headers = {**_HEADERS, "etag": file.etag}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


class ViewerFile(Struct, frozen=True, kw_only=True):
    """One file of the viewer."""

    content: bytes
    media_type: str
    #: The quoted hash of the content, for `If-None-Match`.
    etag: str


@cache
def viewer_files() -> dict[str, ViewerFile]:
    """Return the files of the viewer by name. The package has no others, so that no path leads out of it."""
    by_name: dict[str, ViewerFile] = {}
    for entry in files("recollect.api.web").iterdir():
        media_type = next((kind for suffix, kind in _MEDIA_TYPES.items() if entry.name.endswith(suffix)), None)
        if media_type is not None:
            content = entry.read_bytes()
            by_name[entry.name] = ViewerFile(
                content=content, media_type=media_type, etag=f'"{sha256(content).hexdigest()[:16]}"'
            )
    return by_name
