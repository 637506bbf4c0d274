"""Parts: the processes of a cluster on one machine, each of which can be killed, paused and started again.

Two nodes share a log in PostgreSQL and a broker in Redis. Each node is a server without workers, a worker and a
scheduler on a data folder of its own.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import orjson

from recollect.events.backends.log import EventLog
from recollect.events.backends.open_log import open_log
from recollect.events.encryption.key_store import KeyStore

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.postgres import PostgresServer, new_database
from support.redis import RedisServer

_COMMAND = [sys.executable, "-c", "from recollect.api.cli.main import run; run()"]
#: Keywords only, work that was lost is found soon, a scheduled run that stalled is begun again soon, no rates.
_SETTINGS = {
    "EMBEDDING_MODEL": "none",
    "SWEEP_SECONDS": "5",
    "SLOT_STALE_SECONDS": "10",
    "REQUESTS_PER_MINUTE": "0",
    "DENIALS_PER_MINUTE": "0",
}
#: Seconds that a server may take to answer after its start, on a machine that others use.
_START_SECONDS_MAX = 120.0


class Part:
    """One process: a server, a worker or a scheduler."""

    def __init__(self, name: str, arguments: list[str], environment: Mapping[str, str], errors: Path) -> None:
        self.name = name
        self._arguments = arguments
        self._environment = dict(environment)
        #: Where its standard error goes, that of all its lives.
        self.errors = errors
        self._process: subprocess.Popen[bytes] | None = None
        #: Whether it ought to run, and how often it was started again after it had ended itself.
        self._is_wanted = False
        self.restarts = 0
        self._lock = threading.RLock()

    def start(self) -> None:
        """Start the process; does not wait until it answers."""
        with self._lock, self.errors.open("ab") as stream:
            self._process = subprocess.Popen(
                [*_COMMAND, *self._arguments], stdout=subprocess.DEVNULL, stderr=stream, env=self._environment
            )
            self._is_wanted = True

    def restart_ended(self) -> None:
        """Start the process again if it has ended itself, as systemd and Compose do: it found no PostgreSQL."""
        with self._lock:
            if self._is_wanted and not self.is_alive():
                self.restarts += 1
                self.start()

    def kill(self) -> None:
        """End the process at once."""
        with self._lock:
            self._is_wanted = False
            self._signal(signal.SIGKILL)
            if self._process is not None:
                self._process.wait()

    def pause(self) -> None:
        """Stop the process where it is."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._signal(signal.SIGCONT)

    def stop(self) -> int | None:
        """Ask the process to end; return its exit code, None when it had to be killed."""
        self._is_wanted = False
        if self._process is None:
            return 0
        self._signal(signal.SIGTERM)
        try:
            return self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    @property
    def pid(self) -> int:
        """Return the id of the process; 0 before its first start."""
        return 0 if self._process is None else self._process.pid

    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def tracebacks(self) -> Counter[str]:
        """Return the tracebacks in its standard error, by the error and the line that was logged with it."""
        found: Counter[str] = Counter()
        for line in self.errors.read_text(errors="replace").splitlines() if self.errors.exists() else ():
            if '"exception":' in line:
                record = orjson.loads(line)
                error = str(record["exception"]).partition(" at\n")[0]
                found[f"{error}: {record['event'].splitlines()[0][:80]}"] += 1
            elif line.startswith("Traceback (most recent call last)"):
                found["plain"] += 1
        return found

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)


class Node:
    """One machine of the cluster: its data folder, its address and its processes."""

    def __init__(self, name: str, folder: Path, log: str, broker: str, environment: Mapping[str, str]) -> None:
        self.name = name
        self.data = folder / name
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        #: Whether its server is killed or paused at present, or starts again; it cannot answer in time then.
        self.is_down = False
        variables = _SETTINGS | {"DATA": str(self.data), "LOG": log, "BROKER": broker, "PORT": str(port)}
        # Both nodes read what either has encrypted.
        variables |= {"KEYS": str(folder / "keys")} | dict(environment)
        full = os.environ | {f"RECOLLECT_{key}": value for key, value in variables.items()}
        commands = {"api": ["serve", "--no-workers"], "worker": ["worker"], "scheduler": ["scheduler"]}
        self.parts = {
            role: Part(f"{role} {name}", command, full, folder / f"{role}-{name}.log")
            for role, command in commands.items()
        }

    def wait(self) -> float:
        """Wait until the server is ready; return the seconds it took."""
        started = time.monotonic()
        while time.monotonic() - started < _START_SECONDS_MAX:
            try:
                if httpx.get(f"{self.base}/health/ready", timeout=2).status_code == 200:
                    return time.monotonic() - started
            except httpx.HTTPError:
                pass
            time.sleep(0.05)
        errors = self.parts["api"].errors.read_text()[-2_000:]
        raise SystemExit(f"the server of node {self.name} is not ready: {errors}")


class Cluster:
    """Nodes, PostgreSQL and Redis.

    Parameters:
        environment: settings of all processes, by name without the prefix.
    """

    def __init__(self, folder: Path, nodes: int, environment: Mapping[str, str]) -> None:
        self.postgres = PostgresServer()
        self.redis = RedisServer()
        #: The URL of the log, for direct reads at the end.
        self.log_url = new_database(self.postgres.url)
        self._keys = folder / "keys"
        self._keys.mkdir(mode=0o700)
        self.nodes = [Node("ab"[number], folder, self.log_url, self.redis.url, environment) for number in range(nodes)]

    def open_log(self) -> EventLog:
        """Return the log, read past all servers."""
        return open_log(self.log_url, keys=KeyStore(self._keys))

    def supervise(self, stop: threading.Event) -> None:
        """Start processes again that have ended themselves, once a second, until `stop`."""
        while not stop.wait(1.0):
            for part in self.parts():
                part.restart_ended()

    def parts(self) -> list[Part]:
        """Return the processes of all nodes."""
        return [part for node in self.nodes for part in node.parts.values()]


@contextmanager
def cluster(nodes: int = 2, environment: Mapping[str, str] | None = None) -> Generator[Cluster]:
    """Start a cluster and wait until its servers are ready; end everything at the end."""
    with tempfile.TemporaryDirectory(prefix="recollect-faults-") as folder:
        running = Cluster(Path(folder), nodes, environment or {})
        stop = threading.Event()
        supervisor = threading.Thread(target=running.supervise, args=(stop,), daemon=True)
        try:
            for node in running.nodes:
                # One after the other: the first one makes the tables.
                for part in node.parts.values():
                    part.start()
                node.wait()
            supervisor.start()
            yield running
        finally:
            stop.set()
            if supervisor.is_alive():
                supervisor.join()
            running.postgres.resume()
            for part in running.parts():
                part.resume()
                part.kill()
            running.redis.remove()
            running.postgres.remove()


def free_port() -> int:
    """Return a port that is free at present."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
