"""Uvicorn configuration: how uvicorn serves the application, in one process or in several."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn

from recollect.api.http.bounded_protocol import BoundedProtocol
from recollect.api.http.warm_up import start_warm_up
from recollect.api.http_contract import CONTRACT, CONTRACT_HEADER
from recollect.api.settings import ServerSettings
from recollect.events.storage.heap import share_heaps

if TYPE_CHECKING:
    from fastapi import FastAPI

    from recollect.api.assembly.memory_parts import MemoryParts

#: Seconds that a stop waits for running requests.
STOP_SECONDS = 5
#: Seconds after which a thread that computes lets another one run; Python's default is 5 ms. So long the event loop may
#: wait after a call that releases Python's lock, while background threads compute. With one of them, `stat` takes 13
#: instead of 23 µs on average, and the threads need no more processor time together.
_SWITCH_SECONDS = 0.0005
#: Objects after whose creation Python collects garbage, and collections of one generation before the next one. With
#: Python's 700, 10 and 10, the slowest of 600 retrievals from 50,000 messages takes 0.34 to 0.50 s, with these 0.13 to
#: 0.39.
_GARBAGE_THRESHOLDS = 20_000, 20, 20


def prepare_threads() -> None:
    """Let the threads of this process take turns as often as a server needs, and share their heaps."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    share_heaps()


def uvicorn_config(app: FastAPI, settings: ServerSettings, protocol: type[BoundedProtocol]) -> uvicorn.Config:
    """Return the configuration of a server process."""
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        # Its messages go where those of the program go.
        log_config=None,
        log_level="warning",
        access_log=False,
        # The address of a connection is that of its other end, not one that a header names.
        proxy_headers=False,
        server_header=False,
        headers=[(CONTRACT_HEADER, str(CONTRACT))],
        limit_concurrency=settings.connections_max,
        timeout_graceful_shutdown=STOP_SECONDS,
        lifespan="on",
    )


class MemoryServer(uvicorn.Server):
    """Uvicorn's server of a memory: it loads what was searched last, and stops the workers with the last requests.

    Parameters:
        owns: whether this process answers for a namespace.
    """

    def __init__(
        self, config: uvicorn.Config, parts: MemoryParts, owns: Callable[[str], bool] = lambda _: True
    ) -> None:
        super().__init__(config)
        self.workers = parts.workers
        self._parts, self._owns = parts, owns
        self._warm_up: threading.Thread | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await super().startup(sockets)
        # What is loaded by now stays until the end: no collection needs to look at it.
        gc.freeze()
        gc.set_threshold(*_GARBAGE_THRESHOLDS)
        gc.enable()
        self._warm_up = start_warm_up(self._parts, self._owns)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, answer the running requests, and close the memory."""
        self._parts.job_context.stop.set()
        if self.workers is not None:
            self.workers.begin_stop()
        if self._warm_up is not None:
            # It reads what `super` closes.
            await asyncio.to_thread(self._warm_up.join)
        await super().shutdown(sockets)
