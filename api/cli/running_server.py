"""Running server: the client of a command for the server of its data folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recollect.api.cli.terminal import echo

if TYPE_CHECKING:
    from recollect.api.client.client import Client

#: Seconds in which a running server has to answer that it is ready.
_READY_SECONDS_MAX = 2.0
#: Seconds that a request may take: a read model of the past, or the vectors of an import, take minutes.
_REQUEST_SECONDS_MAX = 3_600.0


def running_server(data: Path) -> Client | None:
    """Return a client of the running server of a data folder.

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
    if _serves(address, secret, log_id):
        return Client(address, secret or None, timeout_seconds=_REQUEST_SECONDS_MAX, fails_open=False)
    echo(f"note: the server at {address} does not answer, so this command loads the model itself", err=True)
    return None


def _serves(address: str, secret: str, log_id: str) -> bool:
    """Return whether a server of the log `log_id` answers at the address."""
    from recollect.api.client.client import Client  # noqa: PLC0415
    from recollect.events.errors import RecollectError  # noqa: PLC0415

    try:
        with Client(address, secret or None, timeout_seconds=_READY_SECONDS_MAX) as client:
            return client.ready()["log"] == log_id
    except RecollectError:
        return False
