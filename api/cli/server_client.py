"""Server client: sends the requests of a command to the running server of its data folder."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import orjson
import typer

from recollect.api.cli.terminal import echo
from recollect.events.errors import NotSettled, ProjectionFailed, RecollectError

#: Seconds in which a running server has to answer that it is alive.
_READY_SECONDS_MAX = 2.0
#: Seconds that a request may take: a read model of the past, or the vectors of an import, take minutes.
_REQUEST_SECONDS_MAX = 3_600.0
#: Errors that end a command with exit code 1, by name; every other error is exit code 2.
_FAILURES = frozenset(error.__name__ for error in (NotSettled, ProjectionFailed))


class ServerGone(Exception):
    """The server does not answer, or its answer is not that of Recollect."""


class ServerClient:
    """A running server. Each request has a connection of its own.

    Parameters:
        address: the server's base URL, such as ``http://127.0.0.1:8787``.
        secret: the secret of the server's lock file, which takes the place of a token.
        seconds_max: seconds that a request may take.
    """

    def __init__(self, address: str, secret: str, *, seconds_max: float = _REQUEST_SECONDS_MAX) -> None:
        self.address = address
        self._seconds_max = seconds_max
        self._headers = {"Authorization": f"Bearer {secret}"} if secret else {}

    def get(self, *path: str, **parameters: str | int) -> dict[str, Any]:
        """Return the answer to a GET of the path's parts; errors are those of `post`."""
        return self._send("GET", path, parameters, None, self._seconds_max)

    def post(self, *path: str, body: dict[str, Any] | None = None, **parameters: str | int) -> dict[str, Any]:
        """Return the answer to a POST of `body` to the path's parts.

        Raises:
            RecollectError: the server refused the request; the message is the server's. typer.Exit: the request failed.
            ServerGone: the server ended before it answered.
        """
        return self._send("POST", path, parameters, body, self._seconds_max)

    def serves(self, log_id: str) -> bool:
        """Return whether a server of the log `log_id` answers at the address."""
        try:
            live = self._send("GET", ("health", "live"), {}, None, _READY_SECONDS_MAX)
        except (ServerGone, RecollectError, typer.Exit):
            return False
        return live.get("log") == log_id

    def _send(
        self,
        method: str,
        path: tuple[str, ...],
        parameters: dict[str, str | int],
        body: dict[str, Any] | None,
        timeout_seconds: float,
    ) -> dict[str, Any]:
        """Return the JSON of the answer. No proxy is used: the server is on this machine."""
        url = urlsplit(self.address)
        target = "/" + "/".join(quote(part, safe="") for part in path)
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=timeout_seconds)
        try:
            connection.request(method, f"{target}?{urlencode(parameters)}", orjson.dumps(body or {}), self._headers)
            response = connection.getresponse()
            answer: dict[str, Any] = orjson.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            raise ServerGone(f"{self.address} does not answer: {error}") from error
        finally:
            connection.close()
        if response.status >= http.client.BAD_REQUEST:
            _refuse(answer)
        return answer


def running_server(data: Path) -> ServerClient | None:
    """Return the running server of a data folder; None, and a note when a server should run but does not answer."""
    from recollect.api.folder_locks import server_address  # noqa: PLC0415
    from recollect.events.integrity.log_identity import read_log_id  # noqa: PLC0415

    published, log_id = server_address(data), read_log_id(data)
    if published is None or log_id is None:
        return None
    address, secret = published
    server = ServerClient(address, secret)
    if server.serves(log_id):
        return server
    echo(f"note: the server at {address} does not answer, so this command loads the model itself", err=True)
    return None


def _refuse(problem: dict[str, Any]) -> None:
    """Raise the error of a problem response."""
    message = str(problem.get("detail", "the server could not answer"))
    if problem.get("error") in _FAILURES:
        echo(f"recollect: {message}", err=True)
        raise typer.Exit(1)
    raise RecollectError(message)
