"""`python ops/client`: writes the asynchronous methods of `Client` and of `Recollect` from the others.

With ``--check`` nothing is written, and the exit code is 1 when a file is not what the generator makes.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from async_memory import asynchronous_memory

API = Path(__file__).parents[2] / "api"
#: The files of the client, and those that are made of them.
FILES = {
    "client_lists.py": "async_client_lists.py",
    "client_methods.py": "async_client_methods.py",
}
#: The files of the memory, each with what its methods are for, its class, and the files with the methods.
MEMORY_FILES = {
    "async_lists.py": ("lists", "AsyncLists", ("memory_lists.py",)),
    "async_methods.py": (
        "methods",
        "AsyncMethods",
        (
            "recollect.py",
            "memory_editing.py",
            "memory_erasing.py",
            "memory_review.py",
            "memory_rereading.py",
            "subject_export.py",
        ),
    ),
}
_REPLACED = (
    (r'"""Client (lists|methods): the', r'"""Asynchronous client \1: the'),
    (r"`async_client_\w+\.py` is generated from this file: run", "This file is generated from that of `Client`: run"),
    (r"run `python ops/client` after a change", "change that one, and run `python ops/client`"),
    (r"\bclient_lists\b", "async_client_lists"),
    (r"\bClient(Lists|Methods)\b", r"AsyncClient\1"),
    (r"\n    def ", "\n    async def "),
    (r"return self\._send\(", "return await self._send("),
    (r"of a client\. `Recollect`", "of a client, as coroutines. `Recollect`"),
)


def generated() -> Iterator[tuple[Path, str]]:
    """Yield the path and the source of each generated file."""
    for source, target in FILES.items():
        yield API / "client" / target, asynchronous((API / "client" / source).read_text(encoding="utf-8"))
    for target, (what, name, sources) in MEMORY_FILES.items():
        yield API / "memory" / target, formatted(asynchronous_memory(what, name, sources))


def asynchronous(source: str) -> str:
    """Return the source of the asynchronous methods of a client."""
    for pattern, replacement in _REPLACED:
        source = re.sub(pattern, replacement, source)
    return formatted(source)


def formatted(source: str) -> str:
    """Return a source with sorted imports, in the format of the house."""
    for arguments in (("check", "--select=I", "--fix", "--quiet"), ("format",)):
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
