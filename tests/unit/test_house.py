"""The rules of this repository, as far as a machine can check them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("events", "projections", "jobs", "api")
LINES_MAX = 450
FUNCTION_LINES_MAX = 70
#: A plain list of every event type: long, and better in one place.
LONG_FILES = {"events/catalogue.py"}


def modules() -> Iterator[Path]:
    for folder in (*PACKAGES, "tests", "ops"):
        yield from (ROOT / folder).rglob("*.py")


def test_a_package_imports_only_from_the_packages_above_it() -> None:
    checked = subprocess.run(
        [Path(sys.executable).with_name("lint-imports")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def test_files_and_functions_are_short() -> None:
    for path in modules():
        source = path.read_text(encoding="utf-8")
        if str(path.relative_to(ROOT)) not in LONG_FILES:
            assert len(source.splitlines()) <= LINES_MAX, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert (node.end_lineno or 0) - node.lineno < FUNCTION_LINES_MAX, f"{path}: {node.name}"


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


#: A row of a package's table: its first column, with the folder before a colon where one is given for all of them.
_ROW = re.compile(r"^\| (`[^|]*`) \|", re.MULTILINE)


def _documented(architecture: str, package: str) -> set[str]:
    """Return the paths below `package` that its table in ARCHITECTURE.md has, each as often as it stands there."""
    section = re.search(rf"^### {package}\n(.*?)(?=^##|^`ops|\Z)", architecture, re.MULTILINE | re.DOTALL)
    assert section is not None, f"ARCHITECTURE.md has no section {package}"
    paths: list[str] = []
    for row in _ROW.findall(section[1]):
        folder, colon, files = row.rpartition("`: ")
        prefix = folder.removeprefix("`") if colon else ""
        paths += [prefix + name for name in re.findall(r"`([^`]+)`", files)]
    assert len(paths) == len(set(paths)), f"twice in ARCHITECTURE.md: {sorted(x for x in paths if paths.count(x) > 1)}"
    return set(paths)


def test_every_module_is_in_the_architecture_by_its_path_below_its_package() -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for package in PACKAGES:
        modules = {
            path.relative_to(ROOT / package).as_posix()
            for path in (ROOT / package).rglob("*")
            if path.suffix in (".py", ".sql", ".toml")
            and path.name != "__init__.py"
            and path.parent.parent.name != "migrations"
        }
        documented = {path for path in _documented(architecture, package) if not path.endswith("/")}
        assert documented == modules, package


def test_the_licence_is_the_one_that_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
