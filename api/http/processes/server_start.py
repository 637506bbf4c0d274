"""Server start: the objects that a server process gets from its supervisor."""

from __future__ import annotations

import socket
from collections.abc import Callable

from msgspec import Struct

from recollect.api.access.rate_limits import RateMemory
from recollect.api.http.processes.channels import Channels
from recollect.api.http.processes.process_table import ProcessTable
from recollect.api.settings import Settings


class ServerShared(Struct, frozen=True, kw_only=True):
    """Objects that all server processes share."""

    settings: Settings
    listener: socket.socket
    table: ProcessTable
    channels: Channels
    #: The counted requests of all processes.
    rates: RateMemory
    #: The secret by which commands of the data folder are answered without a token.
    local_secret: str
    #: Sets up the log of a process.
    configure_log: Callable[[], None]
