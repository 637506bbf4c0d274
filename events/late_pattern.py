"""Late pattern: a regular expression that is compiled when it is first used.

To compile the patterns of all modules takes 0.17 s, and most processes use few of them.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, cast


def late_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return what behaves as `re.compile(pattern, flags)`, but raises its errors at the first use."""
    late = _LatePattern(pattern, flags)
    _patterns.append(late)
    return cast("re.Pattern[str]", late)


def compile_patterns() -> None:
    """Compile the patterns of all modules that are imported, so that no text waits for it."""
    # Another thread may do the same, and take the last one.
    with suppress(IndexError):
        while True:
            _ = _patterns.pop().flags


class _LatePattern:
    """A pattern. Its methods are attributes after the first use, so that a later one costs nothing more."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self._asked_flags = flags
        self._compiled: re.Pattern[str] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            # Not of a pattern: copies and debuggers look for them.
            raise AttributeError(name)
        self._compiled = self._compiled or re.compile(self.pattern, self._asked_flags)
        value = getattr(self._compiled, name)
        setattr(self, name, value)
        return value


#: The patterns that `compile_patterns` has not compiled.
_patterns: list[_LatePattern] = []
