"""The real application over a folder of its own, asked in process, with tokens for each kind of caller."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from msgspec import Struct
from starlette.testclient import TestClient

from recollect import Recollect
from recollect.api.access.access_control import AccessControl
from recollect.api.access.callers import SCOPES
from recollect.api.access.token_store import TokenStore
from recollect.api.http.app import create_app
from recollect.api.settings import load_settings

#: Long past: a token of then has ended.
_LONG_AGO_US = 1_000_000


class Application(Struct, frozen=True, kw_only=True):
    """The application, a client on this machine, and its memory."""

    app: FastAPI
    http: TestClient
    memory: Recollect
    data: Path

    @property
    def access(self) -> AccessControl:
        access: AccessControl = self.app.state.access
        return access

    def token(self, *scopes: str, namespace: str | tuple[str, ...] = "*", days: float | None = None) -> dict[str, str]:
        """Return the headers of a new token."""
        patterns = (namespace,) if isinstance(namespace, str) else namespace
        _, text = self.access.tokens.create(name="test", scopes=scopes or SCOPES, patterns=patterns, days=days)
        return headers(text)

    def expired_token(self) -> dict[str, str]:
        """Return the headers of a token for everything that has ended."""
        store = TokenStore(self.memory.parts.settings.tokens_path, clock=lambda: _LONG_AGO_US)
        _, text = store.create(name="old", scopes=SCOPES, patterns=("*",), days=1)
        return headers(text)


def headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@contextmanager
def application(data: Path, *, peer: str = "127.0.0.1", **settings: Any) -> Generator[Application]:
    """Yield the application without a model and without workers."""
    chosen = load_settings(data=data, embedding_model="none", **settings)
    with Recollect(settings=chosen, workers=False) as memory:
        app = create_app(memory)
        http = TestClient(app, base_url="http://127.0.0.1:8787", client=(peer, 50_000), raise_server_exceptions=False)
        yield Application(app=app, http=http, memory=memory, data=data)
        app.state.monitor.stop()
