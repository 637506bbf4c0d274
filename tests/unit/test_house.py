"""The rules of this repository, as far as a machine can check them."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("events", "projections", "jobs", "api")
LINES_MAX = 450
#: Fillers, and words of a private language: STYLE says which words a reader looks for instead.
BANNED_NAMES = set(
    "found one known asked at told tells looked held shelf roster news beat bury aids anew likeness nearness rarity "
    "worth spaces era telling".split()
)
BANNED_WORDS = re.compile(
    r"\b(?:nobody|somebody|whoever|whatever|anew|beside|as it was|what is there|that are there|told|shelf|roster)\b",
    re.IGNORECASE,
)
#: Grammar of a private language, each pattern with the reason that a failure shows.
BANNED_GRAMMAR = {
    r"(?<!\bthere )\b(?:is|are|was|were) none\b": "write `is not a …`, `are not …`; only `there is none` is English",
    r"\b(?:what|that|which|who) (?:is|are|was|were) no (?!longer\b|more\b)": "write `that is not a …`, or its name",
    r"\b(?:tells?|telling)\b": "a thing shows, states, identifies or detects; only people tell",
    r"\bcom(?:e|es|ing) along\b": "write `is added`, `is returned with`",
}
#: Uses of banned grammar that are right: quoted words of users, messages to people, `tell apart`.
ALLOWED_GRAMMAR = re.compile(
    r"[\"`'](?:[^\"`' ]{1,20} ){0,6}(?:don't )?tell\b|tells? the user\b|tell the \w{1,20} apart\b", re.IGNORECASE
)
FUNCTION_LINES_MAX = 70


@cache
def modules() -> tuple[Path, ...]:
    return tuple(path for folder in (*PACKAGES, "tests", "ops") for path in (ROOT / folder).rglob("*.py"))


@cache
def _source(path: Path) -> str:
    return path.read_text(encoding="utf-8")


class _Module(NamedTuple):
    """What the rules read of a module, whose tree would fill the memory of the tests that follow."""

    #: Lines and names of the functions.
    functions: list[tuple[int, str]]
    #: Lines and names of the variables, parameters, attributes, functions and classes that it declares.
    declared: list[tuple[int, str]]
    #: Lines of the docstrings, each with the line of its owner.
    docstrings: list[tuple[int, str]]


@cache
def _parsed(path: Path) -> _Module:
    module = _Module([], [], [])
    for node in ast.walk(ast.parse(_source(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            module.functions.append(((node.end_lineno or 0) - node.lineno, node.name))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (ast.get_docstring(node) or "").splitlines()
            module.docstrings.extend((getattr(node, "lineno", 1), line) for line in lines)
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                module.declared.append((node.lineno, name))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                module.declared.append((node.lineno, name))
            case _:
                pass
    return module


def test_files_and_functions_are_short() -> None:
    for path in modules():
        assert len(_source(path).splitlines()) <= LINES_MAX, path
        for lines, name in _parsed(path).functions:
            assert lines < FUNCTION_LINES_MAX, f"{path}: {name}"


def test_every_dependency_has_its_reason_beside_it() -> None:
    lines = (ROOT / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    names = [at for at, line in enumerate(lines) if re.match(r'    "[a-z].*[\[>=<]', line)]
    assert len(names) > 20
    for at in names:
        above = at - 1
        while re.match(r'    "', lines[above]):
            above -= 1
        assert lines[above].lstrip().startswith("#"), lines[at]


def test_the_import_name_is_made_of_relative_links() -> None:
    for package in PACKAGES:
        link = ROOT / "src" / "recollect" / package
        assert link.is_symlink()
        assert str(link.readlink()) == f"../../{package}"
    assert (ROOT / "src" / "recollect" / "py.typed").exists()


def test_tests_are_no_package() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_ci_runs_the_test_command() -> None:
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").rstrip().endswith("make test")


def test_every_path_in_the_architecture_exists() -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:events|projections|jobs|api|docs)/[\w./-]+)`", architecture)
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_no_two_modules_of_a_package_have_the_same_name() -> None:
    for package in PACKAGES:
        names = [path.name for path in (ROOT / package).rglob("*.py") if path.name != "__init__.py"]
        assert [name for name, count in Counter(names).items() if count > 1] == [], package


def test_every_folder_says_what_it_is_for_and_what_it_may_use() -> None:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("__init__.py"):
            docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            assert re.match(r"[A-Z][\w -]*: .", docstring), path
            assert "may use" in docstring or package == "events", path


def test_every_folder_of_modules_is_a_package() -> None:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), path


def test_names_are_terms_of_the_field() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for line, name in _parsed(path).declared
        if name.strip("_").lower() in BANNED_NAMES
    ] == []


def test_no_file_is_named_by_a_private_word() -> None:
    stems = {path.stem for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert stems & BANNED_NAMES == set()


def test_sentences_use_no_banned_word_and_no_banned_grammar() -> None:
    errors: list[str] = []
    for path, line, text in _prose():
        place = f"{path.relative_to(ROOT)}:{line}: {text}"
        errors += [f"{place}: {reason}" for reason in _grammar_errors(text)]
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in PACKAGES and BANNED_WORDS.search(text):
            errors.append(place)
    assert errors == []


@pytest.mark.parametrize(
    "text",
    [
        "Words that say something about a password and are none.",
        "Return the state of a read model; None for a file that is none.",
        "Texts that are no passages.",
        "what is no mapping the server refuses",
        "what tells who wrote an episode",
        "A field telling the speaker.",
        "Neighbours come along.",
    ],
)
def test_banned_grammar_is_detected(text: str) -> None:
    assert _grammar_errors(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "None when there is none.",
        "Fields that are None are left out.",
        "A memory that is no longer valid.",
        'A message with "don\'t tell Ben" is left out.',
        "Each message tells the user what to do.",
        "A model can tell the ids apart.",
    ],
)
def test_good_grammar_is_allowed(text: str) -> None:
    assert _grammar_errors(text) == []


def _grammar_errors(text: str) -> list[str]:
    """Return the reasons why a line breaks `BANNED_GRAMMAR`."""
    reasons = [(pattern, reason) for pattern, reason in BANNED_GRAMMAR.items() if re.search(pattern, text)]
    rest = ALLOWED_GRAMMAR.sub("", text) if reasons else text
    return [reason for pattern, reason in reasons if re.search(pattern, rest)]


def _prose() -> Iterator[tuple[Path, int, str]]:
    """Yield the lines of comments and docstrings of the modules that may break a rule, and of the documentation."""
    for path in modules():
        if _may_break_a_rule(_source(path)):
            yield from ((path, *sentence) for sentence in _sentences(path))
    for path in (*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")):
        if path.name != "CHANGELOG.md":
            yield from ((path, line, text) for line, text in enumerate(path.read_text("utf-8").splitlines(), 1))


def _may_break_a_rule(source: str) -> bool:
    """Return whether a banned pattern matches anywhere in a module: finding its comments takes far longer."""
    return any(re.search(pattern, source) for pattern in (BANNED_WORDS, *BANNED_GRAMMAR))


def _sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the comments of a file and the lines of its docstrings."""
    for token in tokenize.generate_tokens(io.StringIO(_source(path)).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    yield from _parsed(path).docstrings


def test_reading_a_setting_imports_no_numpy() -> None:
    code = (
        "import sys; from recollect.api.settings import load_settings; load_settings(); print('numpy' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"


def test_the_licence_is_the_one_that_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
