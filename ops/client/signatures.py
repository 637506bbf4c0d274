"""Signatures: the public methods of `Recollect`, read from its files, and sources with other bodies for them."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

FOLDER = Path(__file__).parents[2] / "api" / "memory"


class Methods(Struct):
    """The public methods of the classes in some files of `api/memory`."""

    methods: list[ast.FunctionDef] = field(default_factory=list[ast.FunctionDef])
    #: The import of each name that the files import or define.
    origins: dict[str, str] = field(default_factory=dict[str, str])

    def imports(self) -> list[str]:
        """Return the imports of the names in all signatures, sorted."""
        used = {node.id for method in self.methods for node in _signature_nodes(method) if isinstance(node, ast.Name)}
        used |= {"overload"} if any(map(is_overload, self.methods)) else set()
        return sorted(self.origins[name] for name in used - set(dir(builtins)))


def read_methods(files: Sequence[str], is_wanted: Callable[[str], bool]) -> Methods:
    """Return the public methods that are not abstract and whose names are wanted, in the order of the files."""
    read = Methods()
    for file in files:
        tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
        read.methods += [method for method in _methods(tree) if is_wanted(method.name)]
        read.origins |= _origins(file, tree)
    return read


def is_overload(method: ast.FunctionDef) -> bool:
    """Return whether a method is a signature for type checkers alone."""
    return any(ast.unparse(decorator) == "overload" for decorator in method.decorator_list)


def head_of(method: ast.FunctionDef, *, without: Sequence[str] = ()) -> str:
    """Return the first line of a method, without some keyword arguments."""
    arguments = ast.parse(f"def f({ast.unparse(method.args)}): ...").body[0]
    assert isinstance(arguments, ast.FunctionDef)
    kept = [place for place, argument in enumerate(arguments.args.kwonlyargs) if argument.arg not in without]
    arguments.args.kw_defaults = [arguments.args.kw_defaults[place] for place in kept]
    arguments.args.kwonlyargs = [arguments.args.kwonlyargs[place] for place in kept]
    returns = "" if method.returns is None else f" -> {ast.unparse(method.returns)}"
    return f"def {method.name}({ast.unparse(arguments.args)}){returns}:"


def _methods(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield the public methods of the public classes of a file that are neither abstract nor properties."""
    for node in tree.body:
        for method in node.body if isinstance(node, ast.ClassDef) and node.name[0] != "_" else ():
            if isinstance(method, ast.FunctionDef) and method.name[0] != "_":
                decorators = {ast.unparse(decorator) for decorator in method.decorator_list}
                if not decorators & {"abstractmethod", "property", "classmethod"}:
                    yield method


def _signature_nodes(method: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of the parameters and the result of a method."""
    yield from ast.walk(method.args)
    if method.returns is not None:
        yield from ast.walk(method.returns)


def _origins(file: str, tree: ast.Module) -> dict[str, str]:
    """Return the import of each name that a file imports or defines."""
    own = f"recollect.api.memory.{file.removesuffix('.py')}"
    origins: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            origins |= {alias.name: f"from {node.module} import {alias.name}" for alias in node.names}
    for node in tree.body:
        names = [node.name] if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        origins |= {name: f"from {own} import {name}" for name in names}
    return origins
