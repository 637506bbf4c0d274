"""Module list: every folder of the four packages with its purpose, every module with its first line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from schema_tables import table

ROOT = Path(__file__).parents[2]
PACKAGES = ("events", "projections", "jobs", "api")


def list_of_modules() -> str:
    """Return a section for each folder, in the order of the layers: its purpose, then a table of its modules."""
    return "\n\n".join(_section(folder) for package in PACKAGES for folder in _folders(ROOT / package))


def _folders(package: Path) -> Iterator[Path]:
    yield package
    for path in sorted(package.rglob("__init__.py")):
        if path.parent != package:
            yield path.parent


def _section(folder: Path) -> str:
    purpose = " ".join(_docstring(folder / "__init__.py").split())
    rows = [(f"`{path.name}`", _docstring(path).split("\n", maxsplit=1)[0]) for path in sorted(folder.glob("*.py"))]
    listed = [row for row in rows if row[0] != "`__init__.py`"]
    heading = f"## {folder.relative_to(ROOT)}\n\n{purpose}"
    return f"{heading}\n\n{table(('module', 'purpose'), listed)}" if listed else heading


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
