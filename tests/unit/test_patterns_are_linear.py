from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import recollect
from recollect.jobs.extraction.rules import rules


def patterns() -> dict[str, re.Pattern[str]]:
    """Return every pattern that the modules of the packages hold, by a name to find it by, each once."""
    found: dict[re.Pattern[str], str] = {}
    for module in walk_packages(recollect.__path__, "recollect."):
        for name, value in vars(import_module(module.name)).items():
            for at, pattern in enumerate(_within(value)):
                found.setdefault(pattern, f"{module.name}.{name}[{at}]")
    for at, pattern in enumerate(_within(rules())):
        found.setdefault(pattern, f"rules.toml[{at}]")
    return {name: pattern for pattern, name in found.items()}


def _within(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, Mapping):
        yield from _all_within([*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple, set, frozenset)):
        yield from _all_within(value)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _all_within(getattr(value, field.name) for field in fields(value))


def _all_within(values: Iterable[Any]) -> Iterator[re.Pattern[str]]:
    for value in values:
        yield from _within(value)
