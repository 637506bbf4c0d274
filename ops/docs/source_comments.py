"""Source comments: the ``#:`` comment above each field of a class, which describes the field."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache


@cache
def field_comments(owner: type) -> dict[str, str]:
    """Return the ``#:`` comment of each field that the source of `owner` declares; base classes are not read."""
    source = textwrap.dedent(inspect.getsource(owner))
    lines = source.splitlines()
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    comments: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            comments[node.target.id] = _comment_above(lines, node.lineno - 1)
    return comments


def field_comment(owner: type, name: str) -> str:
    """Return the ``#:`` comment of a field, wherever in the base classes of `owner` it is declared; "" without one."""
    for base in owner.__mro__:
        if name in inspect.get_annotations(base):
            return field_comments(base).get(name, "")
    return ""


def _comment_above(lines: list[str], end: int) -> str:
    start = end
    while start > 0 and lines[start - 1].lstrip().startswith("#:"):
        start -= 1
    return markdown(" ".join(line.lstrip().removeprefix("#:").strip() for line in lines[start:end]))


def markdown(text: str) -> str:
    """Return a docstring's text with double backquotes as Markdown's single ones."""
    return text.replace("``", "`")
