"""Lock files: resolve the requirements of pyproject.toml to releases with hashes, and check that these are wheels.

uv resolves for all platforms at once, which pip cannot. It is installed into a temporary folder, so that tests and CI
need none.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from importlib.metadata import requires
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: What the product and the image need: the dependencies with the extra `mcp`.
LOCK = ROOT / "ops" / "supply" / "requirements.lock"
#: What the tests need besides.
DEV_LOCK = ROOT / "ops" / "supply" / "requirements-dev.lock"
_UV = "uv==0.13.9"
#: pip and what it builds Recollect with. `editables` is required by hatchling for `pip install --editable`.
_TOOLS = ["pip>=25.3", "hatchling>=1.27", "editables>=0.3"]
#: The machines that must find a wheel of everything in `LOCK`, by uv's names: Debian 12 and Ubuntu 22.04 or newer.
_PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_35")
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")
#: The machines that must find a wheel of everything in `DEV_LOCK`, too: that of CI. Others build what is printed.
_CI = [("x86_64-manylinux_2_28", "3.11"), ("x86_64-manylinux_2_28", "3.12")]
#: What replaces the requirements of packages of the tests: the group `llama-index` refuses the release of `openai` that
#: the product has, and `deprecated` 3 needs Python 3.12, where the lock has one release for all.
_OVERRIDES = ["openai", "deprecated>=1.2.9,<3"]
_LINE = re.compile(r"^([\w.-]{1,100})==[^\\\n]{1,1000}", re.MULTILINE)
_WITHOUT_WHEEL = re.compile(r"Because ([\w.-]{1,100})(?:\{[^}]{1,200}\})?==\S{1,100} has no (?:usable )?wheels")


def requirements() -> list[str]:
    """Return the requirements of the product: those of pyproject.toml, of its CPU build of PyTorch, and of pip."""
    project = _pyproject()["project"]
    torch = [line for line in requires("torch") or [] if ";" not in line]
    return [*project["dependencies"], *project["optional-dependencies"]["mcp"], *torch, *_TOOLS]


def dev_requirements() -> list[str]:
    """Return the requirements of the tests in pyproject.toml."""
    groups = _pyproject()["dependency-groups"]
    return [*groups["dev"], *groups["llama-index"]]


def locked(path: Path) -> dict[str, str]:
    """Return the lines of a lock file by the name of the package, each with its version and its markers."""
    return {line[1]: line[0] for line in _LINE.finditer(path.read_text(encoding="utf-8"))}


def write_locks(*, upgrade: bool) -> None:
    """Write both lock files; releases that they have stay if they fit, without `upgrade`."""
    with _uv() as uv, tempfile.TemporaryDirectory() as folder:
        excluded = Path(folder, "excluded.txt")
        excluded.write_text("torch\n")
        overrides = Path(folder, "overrides.txt")
        overrides.write_text("\n".join(_OVERRIDES))
        arguments = ["--universal", "--python-version=3.11", "--generate-hashes", "--no-build", "--no-annotate"]
        arguments += ["--no-header", f"--excludes={excluded}", *(["--upgrade"] if upgrade else [])]
        _compile(uv, requirements(), [*arguments, f"--output-file={LOCK}"])
        of_product = [f"--constraints={LOCK}", *(f"--no-emit-package={name}" for name in locked(LOCK))]
        arguments += [*of_product, f"--overrides={overrides}", f"--output-file={DEV_LOCK}"]
        _compile(uv, [*requirements(), *dev_requirements()], arguments)


def check_wheels() -> int:
    """Print by machine the locked releases without a wheel; return their number where there must be none."""
    faults = 0
    with _uv() as uv:
        for platform in _PLATFORMS:
            for python in _PYTHONS:
                of_product, of_tests = (_without_wheel(uv, path, platform, python) for path in (LOCK, DEV_LOCK))
                print(f"{platform}, Python {python}: {', '.join(of_product) or 'wheels only'}", end="; ")
                print(f"for tests: {', '.join(of_tests) or 'wheels only'}")
                faults += len(of_product) + (len(of_tests) if (platform, python) in _CI else 0)
    return faults


def _without_wheel(uv: str, path: Path, platform: str, python: str) -> list[str]:
    """Return the releases of a lock file that a machine builds from source, one refusal of uv at a time."""
    releases = locked(path)
    missing: list[str] = []
    arguments = ["--no-deps", "--no-build", f"--python-platform={platform}", f"--python-version={python}"]
    while True:
        lines = [line for name, line in releases.items() if name not in missing]
        try:
            _compile(uv, lines, arguments)
        except ValueError as refusal:
            found = _WITHOUT_WHEEL.search(str(refusal))
            if found is None or found[1] in missing:
                raise
            missing.append(found[1])
        else:
            return missing


def _compile(uv: str, lines: Iterable[str], arguments: list[str]) -> None:
    """Run `uv pip compile` on requirements.

    Raises:
        ValueError: uv found no solution; the message is uv's.
    """
    command = [uv, "pip", "compile", "-", "--quiet", "--system-certs", *arguments]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr)


@contextmanager
def _uv() -> Generator[str]:
    """Install uv into a temporary folder, and yield its path."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, _UV], check=True)
        yield str(Path(folder, "bin", "uv"))


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
