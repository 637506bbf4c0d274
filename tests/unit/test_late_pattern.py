"""Patterns of modules are compiled when they are first used."""

from __future__ import annotations

import ast
import copy
import re
import subprocess
import sys
from pathlib import Path

import pytest

import recollect
from recollect.events import late_pattern as patterns
from recollect.events.late_pattern import compile_patterns, late_pattern

#: Patterns of strings that the imports of a server compile: what reads a table of its module.
_AT_IMPORT_MAX = 20
_COUNTING = """
import re, sys
compiled = []
real = re.compile
def counted(pattern, flags=0):
    callers = (sys._getframe(1), sys._getframe(1).f_back)
    if isinstance(pattern, str) and any(it.f_globals.get("__name__", "").startswith("recollect.") for it in callers):
        compiled.append(pattern)
    return real(pattern, flags)
re.compile = counted
import recollect.api.memory.recollect, recollect.api.http.app
print(len(compiled))
"""


@pytest.fixture(autouse=True)
def _no_patterns(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """The patterns of a test are not those of modules."""
    monkeypatch.setattr(patterns, "_patterns", [])


def test_a_late_pattern_finds_what_a_compiled_one_does() -> None:
    late, compiled = late_pattern(r"(?P<word>\w+)\s", re.IGNORECASE), re.compile(r"(?P<word>\w+)\s", re.IGNORECASE)
    for _ in range(2):
        assert late.findall("to be or not") == compiled.findall("to be or not")
        assert late.sub("-", "to be or not") == compiled.sub("-", "to be or not")
        assert [it.span() for it in late.finditer("to be")] == [(0, 3)]
    assert (late.pattern, late.flags, late.groups) == (compiled.pattern, compiled.flags, compiled.groups)
    assert late.groupindex == compiled.groupindex
    found = late.search("to be")
    assert found is not None
    assert found.re == compiled


def test_a_late_pattern_that_is_wrong_raises_at_its_first_use() -> None:
    late = late_pattern("(")
    assert late.pattern == "("
    with pytest.raises(re.error):
        late.search("text")


def test_patterns_are_compiled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    late = [late_pattern("a"), late_pattern("b")]

    def compiled(pattern: str, flags: int) -> re.Pattern[str]:
        made.append(pattern)
        return real(pattern, flags)

    real = re.compile
    monkeypatch.setattr(patterns.re, "compile", compiled)
    compile_patterns()
    compile_patterns()
    assert sorted(made) == ["a", "b"]
    assert {it.pattern for it in late} == {"a", "b"}


def test_a_late_pattern_has_the_attributes_of_a_pattern_and_no_others() -> None:
    late = copy.copy(late_pattern("a"))
    assert late.fullmatch("a")
    assert not hasattr(late, "find")


def test_the_imports_of_a_server_compile_few_patterns() -> None:
    done = subprocess.run([sys.executable, "-c", _COUNTING], check=True, capture_output=True, text=True, timeout=60)
    assert int(done.stdout) <= _AT_IMPORT_MAX


def test_patterns_of_modules_are_late() -> None:
    for path in sorted(Path(recollect.__path__[0]).glob("*/**/*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "re.compile":
                assert isinstance(ast.literal_eval(value.args[0]), bytes), f"{path}:{node.lineno}: use late_pattern"
