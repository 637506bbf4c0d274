"""CLI page: every command with its arguments and options, from the Typer application."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from schema_tables import entry

from recollect.api.cli.main import app

#: The type of a parameter as the page names it; a text, a path and a flag are what the description says.
_TYPES = {bool: "", int: "integer", float: "number", str: "", Path: "", list[str]: ""}
#: From this number of commands on, a parameter is described once for all of them.
_SHARED_FROM = 3


def commands(command: Any = None, path: str = "recollect") -> Iterator[tuple[str, Any]]:
    """Yield each command with its full name, groups before their commands."""
    chosen: Any = typer.main.get_command(app) if command is None else command
    yield path, chosen
    for name, child in getattr(chosen, "commands", {}).items():
        yield from commands(child, f"{path} {name}")


def render() -> str:
    """Return a section for each command, after the parameters that several commands have."""
    shared = _shared()
    entries = "\n".join(sorted(set(shared.values())))
    heading = f"Arguments and options of several commands, which the usage lines show:\n\n{entries}"
    return "\n\n".join((heading, *(_section(path, command, shared) for path, command in commands())))


def _shared() -> dict[tuple[str, str], str]:
    """Return the entries of the parameters that at least `_SHARED_FROM` commands have, by command and name."""
    texts = {
        (path, one.name): _entry(one, _hints(command))
        for path, command in commands()
        for one in _parameters(path, command)
    }
    counts = Counter(texts.values())
    return {key: text for key, text in texts.items() if counts[text] >= _SHARED_FROM}


def _parameters(path: str, command: Any) -> list[Any]:
    # Every command has `--data`; the page says so once.
    hidden = {"help"} if path == "recollect" else {"help", "data"}
    return [one for one in command.params if one.name not in hidden]


def _hints(command: Any) -> dict[str, Any]:
    return get_type_hints(inspect.unwrap(command.callback), include_extras=True) if command.callback else {}


def _section(path: str, command: Any, shared: dict[tuple[str, str], str]) -> str:
    parameters = _parameters(path, command)
    own = [_entry(one, _hints(command)) for one in parameters if (path, one.name) not in shared]
    usage = [_usage(one) for one in parameters if one.param_type_name == "argument" or (path, one.name) in shared]
    if getattr(command, "commands", None):
        usage.append("[COMMAND]" if command.invoke_without_command and path != "recollect" else "COMMAND")
    line = f"`{' '.join([path, *usage])}`: " if usage else ""
    text = f"## {path}\n\n{line}{(command.help or '').strip()}"
    return "\n\n".join((text, "\n".join(own))) if own else text


def _entry(parameter: Any, hints: dict[str, Any]) -> str:
    details = ", ".join(filter(None, (_type(hints.get(parameter.name, Path)), _default(parameter))))
    return entry(_name(parameter), details, parameter.help or "")


def _usage(parameter: Any) -> str:
    name = parameter.name.upper() if parameter.param_type_name == "argument" else parameter.opts[0]
    return name if parameter.required else f"[{name}]"


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.name.upper()}`"
    return ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))


def _type(hint: Any) -> str:
    """Return the type of a parameter as its function annotates it, with its bounds; "" for a text and a flag."""
    annotated, *metadata = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    types = [one for one in (annotated, *get_args(annotated)) if one in _TYPES]
    return f"{_TYPES[types[0]]}{''.join(map(_bounds, metadata))}"


def _bounds(info: Any) -> str:
    if info.min is not None and info.max is not None:
        return f" {info.min:,}–{info.max:,}"
    return "".join(f" {word} {value:,}" for word, value in (("from", info.min), ("to", info.max)) if value is not None)


def _default(parameter: Any) -> str:
    if parameter.required:
        # The usage line shows which arguments may be left out.
        return "" if parameter.param_type_name == "argument" else "required"
    if isinstance(shown := getattr(parameter, "show_default", None), str):
        return f"default {shown}"
    value = parameter.default
    if value in (None, "", ()) or callable(value) or (getattr(parameter, "is_flag", False) and value is False):
        return ""
    return f"default `{parameter.opts[0]}`" if value is True else f"default `{value}`"
