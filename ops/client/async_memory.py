"""Asynchronous memory: makes the methods of `AsyncRecollect` from those of `Recollect`.

Each runs the method of the same name in a thread. Those that do more are written by hand in `async_recollect.py`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "api" / "memory"
#: Methods that `async_recollect.py` has, and that of the turns, which is no coroutine.
BY_HAND = frozenset(("append", "append_drafts", "add", "close", "turn"))

_HEAD = '''"""Asynchronous {what}: methods of `Recollect` as coroutines.

This file is generated from {files}: change these, and run `python ops/client`.
"""

from __future__ import annotations

import asyncio

{imports}


class {name}:
    """Methods of `Recollect` as coroutines: each runs the method of the same name in a thread."""

    memory: Recollect
'''


def asynchronous_memory(what: str, name: str, files: Sequence[str]) -> str:
    """Return the source of a class with the asynchronous forms of the methods in some files of `api/memory`.

    Parameters:
        what: what the methods are for, as in the first line of a module.
        name: the name of the class.
    """
    trees = {file: ast.parse((FOLDER / file).read_text(encoding="utf-8")) for file in files}
    classes = [node for tree in trees.values() for node in tree.body if _has_methods(node)]
    methods = [method for node in classes for method in _methods(node)]
    origins: dict[str, str] = {}
    for file, tree in trees.items():
        origins |= _origins(file, tree)
    used = {node.id for method in methods for node in _signature_nodes(method) if isinstance(node, ast.Name)}
    used |= {"overload"} if any(map(_is_overload, methods)) else set()
    imports = sorted(origins[used_name] for used_name in (used | {"Recollect"}) - set(dir(builtins)))
    head = _HEAD.format(
        what=what,
        name=name,
        files=f"`{files[0]}`" if len(files) == 1 else f"`{files[0]}` and the files of its base classes",
        imports="\n".join(imports),
    )
    return head + "\n".join(_coroutine(method) for method in methods)


def _has_methods(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and node.name[0] != "_" and any(_methods(node))


def _methods(node: ast.stmt) -> Iterator[ast.FunctionDef]:
    """Yield the public methods of a class that are not abstract."""
    for method in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(method, ast.FunctionDef) and method.name[0] != "_" and method.name not in BY_HAND:
            decorators = {ast.unparse(decorator) for decorator in method.decorator_list}
            if not decorators & {"abstractmethod", "property", "classmethod"}:
                yield method


def _is_overload(method: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "overload" for decorator in method.decorator_list)


def _signature_nodes(method: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of the parameters and the result of a method."""
    yield from ast.walk(method.args)
    if method.returns is not None:
        yield from ast.walk(method.returns)


def _origins(file: str, tree: ast.Module) -> dict[str, str]:
    """Return the import of each name that a file imports or defines."""
    own = f"recollect.api.memory.{file.removesuffix('.py')}"
    origins = {"Recollect": "from recollect.api.memory.recollect import Recollect"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            origins |= {alias.name: f"from {node.module} import {alias.name}" for alias in node.names}
    for node in tree.body:
        names = [node.name] if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        origins |= {name: f"from {own} import {name}" for name in names}
    return origins


def _coroutine(method: ast.FunctionDef) -> str:
    """Return the asynchronous form of a method."""
    returns = "" if method.returns is None else f" -> {ast.unparse(method.returns)}"
    head = f"    async def {method.name}({ast.unparse(method.args)}){returns}:"
    if _is_overload(method):
        return f"    @overload\n{head} ...\n"
    thread = "; `on_progress` is called in another thread" if "on_progress" in _keywords(method) else ""
    call = ", ".join([f"self.memory.{method.name}", *_arguments(method)])
    return (
        f"{head}\n"
        f'        """Do what `Recollect.{method.name}` does{thread}."""\n'
        f"        return await asyncio.to_thread({call})\n"
    )


def _keywords(method: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in method.args.kwonlyargs]


def _arguments(method: ast.FunctionDef) -> list[str]:
    """Return the arguments of the call: those that are passed by place, by name, and all others."""
    by_place = [argument.arg for argument in method.args.args[1:]]
    by_name = [f"{name}={name}" for name in _keywords(method)]
    others = [] if method.args.kwarg is None else [f"**{method.args.kwarg.arg}"]
    return [*by_place, *by_name, *others]
