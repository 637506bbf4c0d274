"""HTTP server: serves the memory of one data folder until a signal stops it."""

from __future__ import annotations

import gc
import signal
import socket
from collections.abc import Callable
from ipaddress import ip_address
from types import FrameType

from recollect.api.access.access_control import is_local
from recollect.api.access.token_store import TokenStore
from recollect.api.folder_locks import serving_lock
from recollect.api.settings import Settings
from recollect.events.errors import InvalidInput


def serve(
    settings: Settings,
    *,
    on_listening: Callable[[str], None],
    workers: bool = True,
    configure_log: Callable[[], None] = lambda: None,
) -> None:
    """Serve the folder of `settings`; returns after SIGINT or SIGTERM.

    Parameters:
        workers: run worker and scheduler: in this process, or in one of their own next to several server processes.
        on_listening: called with the address once connections are accepted.
        configure_log: called in each of several server processes.

    Raises:
        FolderInUse: another server works on the folder. InvalidInput: the address cannot be used, or this system has
            no several server processes. StorageError: the folder or the log cannot be used.
    """
    servers = settings.server.process_count
    if servers > 1 and not hasattr(socket, "send_fds"):
        raise InvalidInput("this system serves with one process; leave it out", field="processes")
    with serving_lock(settings.storage.data) as publish_address, _listen(settings) as listener:
        host, port, *_ = listener.getsockname()

        def announce(local_secret: str) -> None:
            publish_address(_url(_local_host(str(host)), port), local_secret)
            on_listening(_url(str(host), port))

        # Until a process answers: a tenth of a start was the search for garbage, which imports do not leave.
        gc.disable()
        if servers == 1:
            _serve_here(settings, listener, announce, workers=workers)
        else:
            from recollect.api.http.processes.process_supervisor import ProcessSupervisor  # noqa: PLC0415

            supervisor = ProcessSupervisor(
                settings, listener, servers=servers, has_background=workers, configure_log=configure_log
            )
            supervisor.run(lambda: announce(supervisor.shared.local_secret))


def _serve_here(settings: Settings, listener: socket.socket, announce: Callable[[str], None], *, workers: bool) -> None:
    """Serve in this process."""
    # Here, so that a folder in use and an address in use are refused before seconds of imports.
    from recollect.api.http.uvicorn_config import MemoryServer, prepare_threads, uvicorn_config  # noqa: PLC0415
    from recollect.api.memory.recollect import Recollect  # noqa: PLC0415

    prepare_threads()
    memory = Recollect(settings=settings, workers=workers)
    # After the memory, whose model loads meanwhile.
    from recollect.api.http.app import create_app  # noqa: PLC0415
    from recollect.api.http.bounded_protocol import bounded_protocol  # noqa: PLC0415

    if memory.parts.workers is not None:
        memory.parts.workers.allow_night_processes()
    app = create_app(memory)
    config = uvicorn_config(app, settings.server, bounded_protocol(settings.server))
    announce(app.state.access.local_secret)
    # Uvicorn stops gracefully and then raises the signal again; that stop is a success, so the exit code is 0.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    MemoryServer(config, memory.parts).run(sockets=[listener])


def _end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(0)


def _local_host(host: str) -> str:
    """Return the address at which this machine reaches a server that listens on the IP address `host`."""
    address = ip_address(host.partition("%")[0])
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"


def _url(host: str, port: int) -> str:
    """Return the base URL of a host, by name or IP address, and a port."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def _listen(settings: Settings) -> socket.socket:
    """Return a listening socket. It is opened before the memory, so that a port in use is refused at once.

    Raises:
        InvalidInput: other machines reach the address and there is no token; or the address cannot be used.
    """
    host, port = settings.server.host, settings.server.port
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family = addresses[0][0]
        if not all(is_local(str(address[4][0])) for address in addresses):
            _require_token(settings)
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise InvalidInput(
            # Python adds the address to the text of the system.
            f"cannot listen on {host}:{port} ({str(error.strerror).partition(' (')[0]}); choose another",
            field="port",
        ) from error


def _require_token(settings: Settings) -> None:
    """Refuse to serve other machines without a token, since they could read and write everything."""
    if not TokenStore(settings.tokens_path).has_live():
        raise InvalidInput(
            f"other machines reach {settings.server.host}, and there is no token, so any of them could read every "
            "memory; create one first, such as: recollect token create --name bot --namespace '*' --scope read "
            "--scope write. Or leave out --host, which serves this machine alone",
            field="host",
        )
