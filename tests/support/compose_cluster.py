"""Compose cluster: the services of ops/deploy/compose.yaml as processes of this machine, with its commands, settings.

PostgreSQL and Redis are those of the tests; a volume is a folder; a port is a free one. There is no container, so that
images, networks and health checks by Docker are not tested.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx
import yaml
from support.pages import ROOT
from support.waiting import eventually

DEPLOY = ROOT / "ops" / "deploy"
_COMMAND = [sys.executable, "-c", "from recollect.api.cli.main import run; run()"]


def haproxy() -> str | None:
    """Return the program of the proxy; None where it is not installed."""
    return shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")


class ComposeCluster:
    """The processes of the services with the image `recollect`, and the proxy.

    Parameters:
        folder: for the volumes and the output of the processes.
        environment: settings besides those of the file: the log, the broker, the model.
        sources: by service, the folder of the sources that it runs; others run those of this process.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], *, sources: Mapping[str, Path] | None = None
    ) -> None:
        self._folder = folder
        self._environment = environment
        self.sources = dict(sources or {})
        services: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
        self.services = {name: service for name, service in services.items() if service["image"] == "recollect"}
        self.ports = {name: free_port() for name in (*self.services, "proxy")}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.token = ""

    def __enter__(self) -> Self:
        arguments = ["token", "create", "--name", "bot", "--namespace", "*", "--scope", "read", "--scope", "write"]
        created = self._run("api-1", [*arguments, "--scope", "erase"])
        self.token = next(word for word in created.split() if word.startswith("rcl_"))
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def start(self, *services: str) -> None:
        """Start services; return when those that answer are ready."""
        for name in services:
            with (self._folder / f"{name}.out").open("ab") as output:
                command = self._proxy_command() if name == "proxy" else [*_COMMAND, *self._arguments(name)]
                self.processes[name] = subprocess.Popen(command, env=self._settings(name), stdout=output, stderr=output)
        for name in services:
            path = "/proxy/health" if name == "proxy" else "/health/ready"
            eventually(lambda name=name, path=path: self._status(name, path) == 200)

    def stop(self, *services: str) -> None:
        """End services as `docker compose stop` does."""
        for name in services:
            self.processes[name].send_signal(signal.SIGTERM)
        for name in services:
            assert self.processes[name].wait(30) in (0, -signal.SIGTERM), self.output(name)
            del self.processes[name]

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait()
        del self.processes[name]

    def client(self, name: str = "proxy") -> httpx.Client:
        """Return a client of a service, with the token."""
        headers = {"Authorization": f"Bearer {self.token}", "Host": "proxy"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.ports[name]}", headers=headers, timeout=60)

    def output(self, name: str) -> str:
        return (self._folder / f"{name}.out").read_text()

    def _arguments(self, name: str) -> list[str]:
        """Return the arguments of the file, with a port of this machine."""
        command: list[str] = self.services[name]["command"]
        return [str(self.ports[name]) if argument == "8787" else argument for argument in command]

    def _settings(self, name: str) -> dict[str, str]:
        """Return the environment of a service: that of the file, with the addresses of the tests."""
        if name == "proxy":
            nodes = {f"NODE_{number}": f"127.0.0.1:{self.ports[f'api-{number}']}" for number in (1, 2)}
            return os.environ | nodes | {"PROXY_BIND": f"127.0.0.1:{self.ports['proxy']}"}
        service = self.services[name]
        mounts: list[str] = service["volumes"]
        volumes = {path: self._folder / volume for volume, _, path in (mount.partition(":") for mount in mounts)}
        own = {
            # What the image sets.
            "RECOLLECT_DATA": str(volumes["/data"]),
            "RECOLLECT_KEYS": str(volumes["/keys"]),
            "RECOLLECT_TOKENS": str(volumes["/keys"] / "tokens.json"),
            "RECOLLECT_WORKER_PORT": str(self.ports[name]),
        }
        if name in self.sources:
            own["PYTHONPATH"] = str(self.sources[name] / "src")
        return os.environ | service["environment"] | own | dict(self._environment)

    def _run(self, name: str, arguments: list[str]) -> str:
        """Run a command of a service to its end, as `docker compose run` does."""
        done = subprocess.run(
            [*_COMMAND, *arguments], env=self._settings(name), capture_output=True, text=True, check=True, timeout=120
        )
        return done.stdout

    def _status(self, name: str, path: str) -> int:
        process = self.processes[name]
        assert process.poll() is None, self.output(name)
        try:
            return httpx.get(f"http://127.0.0.1:{self.ports[name]}{path}", timeout=10).status_code
        except httpx.TransportError:
            return 0

    def _proxy_command(self) -> list[str]:
        program = haproxy()
        assert program is not None
        return [program, "-f", str(DEPLOY / "proxy" / "haproxy.cfg")]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
