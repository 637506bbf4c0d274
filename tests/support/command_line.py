"""The command line, run in the process of the tests: starting another one takes longer than most commands."""

from __future__ import annotations

import io
import os
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

from support.server import PATIENT

from recollect.api.cli.main import run


def recollect(*arguments: str, data: Path, stdin: bytes = b"", model: str = "none") -> CompletedProcess[str]:
    """Run the command line to its end, with standard streams of its own, and return what a process would."""
    command = ["--data", str(data), *arguments]
    stdout, stderr = _stream(), _stream()
    exit_code = 0
    with (
        patch.dict(os.environ, PATIENT | os.environ | {"RECOLLECT_EMBEDDING_MODEL": model}),
        patch.object(sys, "stdin", _stream(stdin)),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        try:
            run(command)
        except SystemExit as exited:
            exit_code = exited.code if isinstance(exited.code, int) else int(exited.code is not None)
        except Exception:
            traceback.print_exc()
            exit_code = 1
    return CompletedProcess(command, exit_code, _text(stdout), _text(stderr))


class _Kept(io.BytesIO):
    """Bytes that can be read after a command has closed the stream, as `export` does with its output."""

    def close(self) -> None:
        pass


def _stream(content: bytes = b"") -> io.TextIOWrapper:
    # The errors are those of a process in the C.UTF-8 locale.
    return io.TextIOWrapper(_Kept(content), encoding="utf-8", errors="surrogateescape")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
