"""Client source: makes the methods of `Client`, each of which sends the request that `CALLS` has for it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from client_calls import CALLS, NOTES
from signatures import head_of, is_overload, read_methods

#: Parameters that no request has: an answer comes once, at the end.
_LEFT_OUT = ("on_progress",)

_HEAD = '''"""Client {what}: methods of `Recollect`, for a remote server.

This file is generated from the methods of `Recollect` and `ops/client/client_calls.py`: run `python ops/client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.api.client import {modules}
from recollect.api.client.client_server import {server}
{imports}

if TYPE_CHECKING:
{types}


class {name}(ClientServer):
    """Methods of a client. `Recollect` documents their parameters, results and errors."""

'''


def client_source(what: str, name: str, files: Sequence[str]) -> str:
    """Return the source of a class with the methods of some files of `api/memory` that a request carries out.

    Parameters:
        what: what the methods are for, as in the first line of a module.
        name: the name of the class.
    """
    read = read_methods(files, CALLS.__contains__)
    calls = {CALLS[method.name].partition(".")[0] for method in read.methods}
    imports = [line for line in read.imports() if not line.endswith(" PAGE_ITEMS")]
    names = ["PAGE_ITEMS", "ClientServer"] if len(imports) < len(read.imports()) else ["ClientServer"]
    head = _HEAD.format(
        server=", ".join(names),
        what=what,
        name=name,
        modules=", ".join(sorted(calls)),
        imports="\n".join(line for line in imports if not line.startswith("from recollect.")),
        types="\n".join(f"    {line}" for line in imports if line.startswith("from recollect.")),
    )
    return head + "\n".join(_method(method) for method in read.methods)


def _method(method: ast.FunctionDef) -> str:
    """Return the form of a method that sends a request."""
    head = f"    {head_of(method, without=_LEFT_OUT)}"
    if is_overload(method):
        return f"    @overload\n{head} ...\n"
    note = NOTES.get(method.name, ".")
    return (
        f"{head}\n"
        f'        """Do what `Recollect.{method.name}` does{note}"""\n'
        f"        return self._send({CALLS[method.name]})\n"
    )
