"""`python ops/client`: writes the methods of `Client` and `AsyncClient` from those of `Recollect`.

With ``--check`` nothing is written, and the exit code is 1 when a file is not what the generator makes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from client_source import client_source

API = Path(__file__).parents[2] / "api"
#: The files with the methods of `Recollect`, in the order in which a generated file has them.
_LISTS = ("memory_lists.py",)
_OTHERS = (
    "recollect.py",
    "memory_editing.py",
    "memory_erasing.py",
    "memory_review.py",
    "answer_judging.py",
    "memory_rereading.py",
    "subject_export.py",
)
#: What makes the asynchronous form of a file of the client.
_REPLACED = (
    (r'"""Client (lists|methods|server): ', r'"""Asynchronous client \1: '),
    (r"methods of `Recollect`, for a remote server", "methods of `Recollect` as coroutines, for a remote server"),
    (r"`async_client_\w+\.py` is generated from this file: run", "This file is generated from that of `Client`: run"),
    (r"run `python ops/client` after a change", "change that one, and run `python ops/client`"),
    (r"\bclient_server\b", "async_client_server"),
    (r"\bClient(Lists|Methods|Server)\b", r"AsyncClient\1"),
    (r"\n    def ", "\n    async def "),
    (r"return self\._send\(", "return await self._send("),
    (r"Methods of a client\.", "Methods of a client, as coroutines."),
)


def generated() -> Iterator[tuple[Path, str]]:
    """Yield the path and the source of each generated file."""
    client = API / "client"
    sources = {
        "client_server.py": (client / "client_server.py").read_text(encoding="utf-8"),
        "client_lists.py": formatted(client_source("lists", "ClientLists", _LISTS)),
        "client_methods.py": formatted(client_source("methods", "ClientMethods", _OTHERS)),
    }
    for name, source in sources.items():
        yield client / name, source
        yield client / f"async_{name}", asynchronous(source)


def asynchronous(source: str) -> str:
    """Return the source of the asynchronous methods of a client."""
    for pattern, replacement in _REPLACED:
        source = re.sub(pattern, replacement, source)
    return formatted(source)


def formatted(source: str) -> str:
    """Return a source with sorted imports, in the format of the house."""
    for arguments in (("check", "--select=I,F401", "--fix", "--quiet"), ("format",)):
        command = [Path(sys.executable).with_name("ruff"), *arguments, f"--stdin-filename={API / 'as_of.py'}", "-"]
        source = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout
    return source


def main() -> int:
    """Write the files, or compare them; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file differs")
    is_check = parser.parse_args().check
    different = 0
    for path, made in generated():
        if path.exists() and path.read_text(encoding="utf-8") == made:
            continue
        different += 1
        print(f"api/{path.relative_to(API)}: {'differs; run: python ops/client' if is_check else 'written'}")
        if not is_check:
            path.write_text(made, encoding="utf-8")
    return 1 if is_check and different else 0


if __name__ == "__main__":
    sys.exit(main())
