"""Viewer files: the page, the style and the modules of the viewer, read from the package."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerFile:
    """One file of the viewer."""

    content: bytes
    media_type: str
    #: The quoted hash of the content, for `If-None-Match`.
    etag: str


@cache
def viewer_files() -> dict[str, ViewerFile]:
    """Return the files of the viewer by name. The package has no others, so that no path leads out of it."""
    by_name: dict[str, ViewerFile] = {}
    for entry in files(__package__ or "").iterdir():
        media_type = next((kind for suffix, kind in _MEDIA_TYPES.items() if entry.name.endswith(suffix)), None)
        if media_type is not None:
            content = entry.read_bytes()
            by_name[entry.name] = ViewerFile(
                content=content, media_type=media_type, etag=f'"{sha256(content).hexdigest()[:16]}"'
            )
    return by_name
