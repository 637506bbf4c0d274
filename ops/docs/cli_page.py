"""CLI page: every command with its arguments and options, from the Typer application."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from schema_tables import table

from recollect.api.cli.main import app

_TYPES = {bool: "flag", int: "integer", float: "number", str: "text", Path: "path", list[str]: "text"}


def commands(command: Any = None, path: str = "recollect") -> Iterator[tuple[str, Any]]:
    """Yield each command with its full name, groups before their commands."""
    chosen: Any = typer.main.get_command(app) if command is None else command
    yield path, chosen
    for name, child in getattr(chosen, "commands", {}).items():
        yield from commands(child, f"{path} {name}")


def render() -> str:
    """Return a section for each command."""
    return "\n\n".join(_section(path, command) for path, command in commands())


def _section(path: str, command: Any) -> str:
    help_text = (command.help or "").strip()
    # Every command has `--data`; the page says so once.
    hidden = {"help"} if path == "recollect" else {"help", "data"}
    parameters = [one for one in command.params if one.name not in hidden]
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    usage = " ".join([path, "[OPTIONS]", *map(_argument, arguments)])
    if getattr(command, "commands", None):
        usage += " [COMMAND]" if command.invoke_without_command and path != "recollect" else " COMMAND"
    hints = get_type_hints(inspect.unwrap(command.callback), include_extras=True) if command.callback else {}
    rows = [(_name(one), _type(hints.get(one.name, Path)), _default(one), one.help or "") for one in parameters]
    text = f"## {path}\n\n{help_text}\n\n```\n{usage}\n```"
    return text + (f"\n\n{table(('argument or option', 'type', 'default', ''), rows)}" if rows else "")


def _argument(argument: Any) -> str:
    name = argument.name.upper()
    return name if argument.required else f"[{name}]"


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))


def _type(hint: Any) -> str:
    """Return the type of a parameter as its function annotates it, with its bounds."""
    annotated, *metadata = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    types = [one for one in (annotated, *get_args(annotated)) if one in _TYPES]
    bounds = [
        f" {word} {value:,}"
        for info in metadata
        for word, value in (("from", info.min), ("to", info.max))
        if value is not None
    ]
    repeated = ", may be repeated" if "list" in str(annotated) else ""
    return f"{_TYPES[types[0]]}{''.join(bounds)}{repeated}"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if isinstance(shown := getattr(parameter, "show_default", None), str):
        return shown
    value = parameter.default
    if value is None or value == () or callable(value) or (getattr(parameter, "is_flag", False) and value is False):
        return ""
    return f"`{parameter.opts[0]}`" if value is True else f"`{value}`"
