"""Running server: the client of a command for the server of its data folder."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from recollect.api.cli.terminal import echo

if TYPE_CHECKING:
    from recollect.api.client.client import Client

#: Seconds in which a running server has to be reached, and to answer which log it has.
_CONNECT_SECONDS_MAX = 0.5
_ANSWER_SECONDS_MAX = 2.0
#: Seconds that a request may take: a read model of the past, or the vectors of an import, take minutes.
_REQUEST_SECONDS_MAX = 3_600.0


def running_server(data: Path, *, timeout_seconds: float = _REQUEST_SECONDS_MAX, quiet: bool = False) -> Client | None:
    """Return a client of the running server of a data folder.

    Parameters:
        timeout_seconds: seconds that a request may take.
        quiet: print no note.

    Returns:
        None when no server runs; after a note, when one should run and does not answer, or serves another log.
    """
    from recollect.api.folder_locks import server_address  # noqa: PLC0415
    from recollect.events.integrity.log_identity import read_log_id  # noqa: PLC0415

    published, log_id = server_address(data), read_log_id(data)
    if published is None or log_id is None:
        return None
    from recollect.api.client.client import Client  # noqa: PLC0415

    address, secret = published
    if _listens(address) and _serves(address, secret, log_id):
        return Client(address, secret or None, timeout_seconds=timeout_seconds, fails_open=False)
    if not quiet:
        echo(f"note: the server at {address} does not answer, so this command works without it", err=True)
    return None


def _listens(address: str) -> bool:
    """Return whether a process listens at the address; a client would try again when none does.

    A server that was killed leaves its address behind.
    """
    url = urlsplit(address)
    try:
        socket.create_connection((url.hostname or "", url.port or 80), _CONNECT_SECONDS_MAX).close()
    except OSError:
        return False
    return True


def _serves(address: str, secret: str, log_id: str) -> bool:
    """Return whether a server of the log `log_id` answers at the address."""
    from recollect.api.client.client import Client  # noqa: PLC0415
    from recollect.events.errors import RecollectError  # noqa: PLC0415

    try:
        with Client(address, secret or None, timeout_seconds=_ANSWER_SECONDS_MAX) as client:
            return client.log_id() == log_id
    except RecollectError:
        return False
