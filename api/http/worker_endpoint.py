"""Worker endpoint: /metrics, /health/live and /health/ready of a worker or a scheduler, which serve nothing else.

They name no namespace, host or path and need no token; by default they are for this machine alone.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
from prometheus_client import CONTENT_TYPE_LATEST

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.operations.metrics import prometheus_metrics
from recollect.api.operations.readiness import readiness
from recollect.api.operations.state_monitor import StateMonitor
from recollect.events.errors import InvalidInput

_JSON = "application/json"
#: Seconds after which a connection that sends nothing is closed.
_TIMEOUT_SECONDS = 5


@contextmanager
def worker_endpoint(parts: MemoryParts) -> Generator[str | None]:
    """Answer at the address of the settings until the context exits; yield the URL, None when the port is 0.

    Raises:
        InvalidInput: the address cannot be used.
    """
    settings = parts.settings.queue
    if settings.worker_port == 0:
        yield None
        return
    monitor = StateMonitor(parts)
    try:
        server = ThreadingHTTPServer((settings.worker_host, settings.worker_port), _handler(parts, monitor))
    except OSError as error:
        raise InvalidInput(
            f"cannot listen on {settings.worker_host}:{settings.worker_port} ({error.strerror}); choose another",
            field="RECOLLECT_WORKER_PORT",
        ) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="recollect-endpoint", daemon=True)
    thread.start()
    try:
        yield f"http://{settings.worker_host}:{settings.worker_port}"
    finally:
        server.shutdown()
        server.server_close()
        monitor.stop()


def _handler(parts: MemoryParts, monitor: StateMonitor) -> type[BaseHTTPRequestHandler]:
    """Return the handler of one connection."""

    class Handler(BaseHTTPRequestHandler):
        timeout = _TIMEOUT_SECONDS
        server_version, sys_version = "Recollect", ""

        def do_GET(self) -> None:
            status, content_type, body = _answer(self.path.partition("?")[0], parts, monitor)
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing: probes come every few seconds."""

    return Handler


def _answer(path: str, parts: MemoryParts, monitor: StateMonitor) -> tuple[int, str, bytes]:
    """Return the status, the type and the body of the answer to a path."""
    if path == "/health/live":
        return 200, _JSON, orjson.dumps({"live": True, "log": parts.log.log_id})
    if path == "/health/ready":
        asyncio.run(monitor.first())
        answer = readiness(parts, monitor, needs_broker=True)
        return (200 if answer["ready"] else 503), _JSON, orjson.dumps(answer)
    if path == "/metrics":
        return 200, CONTENT_TYPE_LATEST, prometheus_metrics(parts, asyncio.run(monitor.latest()))
    return 404, _JSON, orjson.dumps({"detail": "here are /metrics, /health/live and /health/ready"})
