"""Command server: runs `recollect …` and `python …` in forked children of one process that has imported everything.

A page of the documentation has dozens of commands, and each would import for a second; a server of a test would import
for three. The shims `recollect` and `python`, in a folder of the PATH, and `ForkedCommand` send their arguments,
environment, folder and standard files over a socket; a child runs the command with them, and the shim ends with its
exit code.

    python command_server.py SOCKET MODULE…     the server, until its standard input ends
"""

from __future__ import annotations

import array
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

#: Only the standard library, in isolated mode: it starts in 15 ms.
_SHIM = """#!{python} -IS
import array, json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
request = json.dumps({{"argv": [{name!r}, *sys.argv[1:]], "folder": os.getcwd(), "environment": dict(os.environ)}})
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
server.sendmsg([len(request.encode()).to_bytes(4, "big")], rights)
server.sendall(request.encode())
answers = server.makefile("r")
pid = int(answers.readline())
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: os.kill(pid, number))
sys.exit(int(answers.readline()))
"""


@contextmanager
def command_server(folder: Path, modules: Sequence[str]) -> Generator[Path]:
    """Start the server, with `modules` imported; yield the folder of the shims `recollect` and `python`."""
    address = folder / "socket"
    shims = folder / "bin"
    shims.mkdir()
    for name in ("recollect", "python"):
        shim = shims / name
        shim.write_text(_SHIM.format(python=sys.executable, address=str(address), name=name))
        shim.chmod(0o755)
    # One thread of each library: a process with threads does not fork safely.
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, __file__, str(address), *modules]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n", "the command server did not start"
        try:
            yield shims
        finally:
            server.stdin.close()
            server.wait(30)


class ForkedCommand:
    """One `recollect …` in a process of its own, a child of the command server whose shims are in `shims`.

    Parameters:
        stdout, stderr: file descriptors of its standard output and error.
    """

    def __init__(
        self, shims: Path, arguments: Sequence[str], *, environment: Mapping[str, str], stdout: int, stderr: int
    ) -> None:
        request = {"argv": ["recollect", *arguments], "folder": str(Path.cwd()), "environment": dict(environment)}
        content = json.dumps(request).encode()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(shims.with_name("socket")))
        with Path(os.devnull).open("rb") as nothing:
            socket.send_fds(self._socket, [len(content).to_bytes(4, "big")], [nothing.fileno(), stdout, stderr])
        self._socket.sendall(content)
        self.pid = int(self._line())
        self._code: int | None = None

    def signal(self, number: int) -> None:
        """Send the process a signal, unless `wait` has seen its end."""
        if self._code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, seconds_max: float) -> int:
        """Return the exit code at the end of the process; raise TimeoutError when it goes on for longer."""
        if self._code is None:
            self._socket.settimeout(seconds_max)
            self._code = int(self._line())
        return self._code

    def close(self) -> None:
        """End the process, whatever it does."""
        self.signal(signal.SIGKILL)
        self.wait(30)
        self._socket.close()

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            byte = self._socket.recv(1)
            assert byte, "the command server ended"
            line += byte
        return line


def main(address: str, modules: Sequence[str]) -> None:
    # The folder of this file, whose `redis.py` would hide the library.
    del sys.path[0]
    for module in modules:
        import_module(module)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(16)
    # A collection, and the interpreter's own end, would touch every object, and copy the memory that is shared.
    gc.freeze()
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        readable, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in readable:
            os._exit(0)
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            _answer(connection)
        connection.close()


def _answer(connection: socket.socket) -> None:
    """Run one command in a child, and send the shim its process id and its exit code."""
    size, rights, *_ = connection.recvmsg(4, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    files = array.array("i", rights[0][2])
    request: dict[str, Any] = json.loads(_exactly(connection, int.from_bytes(size, "big")))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        connection.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        os._exit(_exit_code(request))
    for file in files:
        os.close(file)
    connection.sendall(f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    connection.sendall(f"{os.waitstatus_to_exitcode(status) & 255}\n".encode())
    os._exit(0)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


def _exit_code(request: dict[str, Any]) -> int:
    """Run the command to its end, that of its threads included, and return its exit code."""
    code: Any = 0
    try:
        _run(request)
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
        code = 1
    # As the interpreter does: end the idle threads of executors, such as that of asyncio.to_thread, and join all.
    threading._shutdown()  # pyright: ignore
    for stream in (sys.stdout, sys.stderr):
        # A command may have closed it.
        if not stream.closed:
            stream.flush()
    return code if isinstance(code, int) else int(code is not None)


def _run(request: dict[str, Any]) -> None:
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    program, *arguments = request["argv"]
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if program == "recollect":
        sys.argv = [program, *arguments]
        main_module: Any = import_module("recollect.api.cli.main")
        main_module.run()
        return
    sys.path.insert(0, "")
    sys.argv = ["-c", *arguments[2:]] if arguments[0] == "-c" else arguments
    if arguments[0] == "-c":
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
