"""Python page: the public methods of `Recollect`, and what its other forms have besides, from their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

from source_comments import markdown

from recollect import AsyncClient, AsyncRecollect, Client, Recollect

_SECTIONS = ("Parameters:", "Returns:", "Raises:")


def public_methods(owner: type) -> Iterator[tuple[str, object]]:
    """Yield the public methods and properties of a class and its bases, each in the order of its source."""
    members = {name: value for base in owner.__mro__ if base is not object for name, value in vars(base).items()}
    for name in members:
        value = inspect.getattr_static(owner, name)
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
            yield name, value


def render() -> str:
    """Return a section for `Recollect` and for each of its methods; of the other classes what differs."""
    methods, client = dict(public_methods(Recollect)), dict(public_methods(Client))
    missing = ", ".join(f"`{name}`" for name in methods if name not in client)
    parts = [_class_section(Recollect)]
    parts += [_method_section(name, value) for name, value in methods.items()]
    parts.append(f"## AsyncRecollect\n\n{_text(AsyncRecollect)}")
    parts.append(f"{_class_section(Client)}\n\nMethods of `Recollect` that a client lacks: {missing}.")
    parts += [_method_section(name, value) for name, value in client.items() if name not in methods]
    parts.append(f"## AsyncClient\n\n{_text(AsyncClient)}")
    return "\n\n".join(parts)


def _class_section(owner: type) -> str:
    return f"## {owner.__name__}\n\n`{_signature(owner.__name__, owner.__init__)}`\n\n{_text(owner)}"


def _method_section(name: str, value: object) -> str:
    if isinstance(value, property):
        return f"### {name}\n\nA property. {_text(value)}"
    return f"### {name}\n\n`{_signature(name, value)}`\n\n{_text(value)}"


class _Bare:
    """An annotation or a default that is shown as it is in the source, without quotes or addresses."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _signature(name: str, function: object) -> str:
    assert callable(function)
    signature = inspect.signature(function)
    parameters = [
        one.replace(
            annotation=_annotation(one),
            default=_Bare(one.default.__name__) if inspect.isfunction(one.default) else one.default,
        )
        for one in signature.parameters.values()
        if one.name != "self"
    ]
    result = "" if signature.return_annotation in (None, "None") else f" -> {signature.return_annotation}"
    return f"{name}{signature.replace(parameters=parameters, return_annotation=signature.empty)}{result}"


def _annotation(parameter: inspect.Parameter) -> object:
    """Return the annotation as it is shown: none of a namespace, nor one that the default shows, and no None."""
    text = str(parameter.annotation)
    is_clear = parameter.name == "namespace" or parameter.default is not parameter.empty
    if is_clear and text in ("str", "int", "float", "bool"):
        return parameter.empty
    return _Bare(text.removesuffix(" | None") if parameter.default is None else text)


def _text(owner: object) -> str:
    """Return a docstring as Markdown: parameters as a list, other sections as a paragraph; examples are left out."""
    lines: list[str] = []
    section: str | None = None
    for line in (inspect.getdoc(owner) or "").splitlines():
        stripped = line.strip()
        if stripped.startswith((">>>", "...")):
            continue
        if stripped in _SECTIONS:
            section = stripped
            lines += (
                ["", f"**{section.removesuffix(':')}**", ""] if section == "Parameters:" else ["", f"**{section}**"]
            )
        elif section == "Parameters:" and re.match(r"    \S", line):
            lines.append(f"- {stripped}")
        elif section == "Parameters:" and stripped:
            lines.append(f"  {stripped}")
        else:
            lines.append(stripped)
    return markdown(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip())
