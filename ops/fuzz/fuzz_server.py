"""Fuzz server: `recollect serve` on a free port, with a token, a small memory and no model, in a temporary folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from msgspec import Struct

from recollect.api.access.callers import SCOPES
from recollect.api.access.token_store import TokenStore

#: Settings of the server: no model, and no rates.
_SETTINGS = {
    "EMBEDDING_MODEL": "none",
    "REQUESTS_PER_MINUTE": "0",
    "DENIALS_PER_MINUTE": "0",
}
_COMMAND = [sys.executable, "-c", "from recollect.api.cli.main import run; run()"]


class FuzzServer(Struct, frozen=True, kw_only=True):
    """A running server."""

    url: str
    process: subprocess.Popen[str]
    store: TokenStore
    #: Where its standard error goes.
    errors: Path

    @property
    def address(self) -> tuple[str, int]:
        """Return its host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0

    def token(self, *patterns: str) -> str:
        """Return a token with all scopes for the namespaces of `patterns`."""
        return self.store.create(name="fuzz", scopes=SCOPES, patterns=patterns or ("*",), days=1)[1]

    def client(self, *patterns: str) -> httpx.Client:
        """Return a client with a token for the namespaces of `patterns`."""
        headers = {"Authorization": f"Bearer {self.token(*patterns)}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    def is_alive(self) -> bool:
        """Return whether it still answers."""
        try:
            return self.process.poll() is None and httpx.get(f"{self.url}/health/ready", timeout=30).status_code == 200
        except httpx.HTTPError:
            return False

    def logged_errors(self) -> list[str]:
        """Return the errors in its log, each with its place in the program."""
        records = re.split(r"^(?=\d{4}-\d\d-\d\d )", self.errors.read_text(errors="replace"), flags=re.MULTILINE)
        return [record for record in records if " ERROR " in record]


@contextmanager
def fuzz_server(arrival_seconds_max: float) -> Generator[FuzzServer]:
    """Start a server, and end it at the end; its data is removed.

    Parameters:
        arrival_seconds_max: how long it waits for headers, and for a body.
    """
    with tempfile.TemporaryDirectory(prefix="recollect-fuzz-") as folder:
        data = Path(folder) / "data"
        store = TokenStore(data / "tokens.json")
        store.create(name="first", scopes=["read"], patterns=["-"], days=1)
        errors = Path(folder) / "errors.log"
        environment = os.environ | {f"RECOLLECT_{name}": value for name, value in _SETTINGS.items()}
        environment |= {f"RECOLLECT_{part}_SECONDS_MAX": str(arrival_seconds_max) for part in ("HEADER", "BODY")}
        with errors.open("w") as stream:
            process = subprocess.Popen(
                [*_COMMAND, "serve", "--port", "0", "--data", str(data)],
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
                env=environment,
            )
        with process:
            assert process.stdout is not None
            line = process.stdout.readline()
            if " at http://" not in line:
                raise SystemExit(f"the server did not start: {errors.read_text()}")
            url = line.split(" at ")[1].split()[0]
            try:
                yield FuzzServer(url=url, process=process, store=store, errors=errors)
            finally:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
