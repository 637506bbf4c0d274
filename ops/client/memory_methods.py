"""Memory methods: makes the methods of `AsyncRecollect`, each of which runs that of `Recollect` in a thread."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from signatures import arguments_of, has_argument, head_of, is_overload, read_methods

#: Methods that `async_recollect.py` has, and `turn`, which is not a coroutine.
BY_HAND = frozenset(("append", "append_drafts", "add", "close", "turn"))

_HEAD = '''"""Asynchronous {what}: methods of `Recollect` as coroutines.

This file is generated from the methods of `Recollect`: change these, and run `python ops/client`.
"""

from __future__ import annotations

import asyncio

{imports}


class {name}:
    """Methods of `Recollect` as coroutines: each runs the method of the same name in a thread."""

    memory: Recollect

'''


def memory_source(what: str, name: str, files: Sequence[str]) -> str:
    """Return the source of a class with the asynchronous forms of the methods in some files of `api/memory`.

    Parameters:
        what: what the methods are for, as in the first line of a module.
        name: the name of the class.
    """
    read = read_methods(files, lambda method: method not in BY_HAND)
    read.origins["Recollect"] = "from recollect.api.memory.recollect import Recollect"
    head = _HEAD.format(what=what, name=name, imports="\n".join(read.imports("Recollect")))
    return head + "\n".join(_coroutine(method) for method in read.methods)


def _coroutine(method: ast.FunctionDef) -> str:
    """Return the asynchronous form of a method."""
    head = f"    async {head_of(method)}"
    if is_overload(method):
        return f"    @overload\n{head} ...\n"
    thread = "; `on_progress` is called in another thread" if has_argument(method, "on_progress") else ""
    call = ", ".join([f"self.memory.{method.name}", *arguments_of(method)])
    return (
        f"{head}\n"
        f'        """Do what `Recollect.{method.name}` does{thread}."""\n'
        f"        return await asyncio.to_thread({call})\n"
    )
