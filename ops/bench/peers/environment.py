"""The peers' own virtual environment: their requirements would change the versions of Recollect's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
#: PyPI's torch for Linux brings gigabytes of CUDA; this index has a small one. When it cannot be reached, PyPI serves.
_TORCH_INDEX = "https://download.pytorch.org/whl/cpu"


def default_env() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recollect" / "peers"


def interpreter(env: Path) -> Path:
    return env / ("Scripts" if sys.platform == "win32" else "bin") / "python"


def prepare(env: Path) -> list[str]:
    """Make the environment hold what `requirements.txt` says; return what could not be installed, and why.

    When not all of it can be installed together, each line is tried on its own, so that one peer does not take the
    others with it. An environment that holds everything has a copy of the file, and costs nothing the next time.
    """
    wanted = _REQUIREMENTS.read_text(encoding="utf-8")
    stamp = env / "installed.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return []
    if not interpreter(env).exists() and (error := _run([sys.executable, "-m", "venv", str(env)])):
        return [f"{env}: {error}"]
    lines = [line for line in wanted.splitlines() if line and not line.startswith("#")]
    torch = next(line for line in lines if line.startswith("torch=="))
    # First and on its own, as the Makefile does.
    _pip(env, "--no-deps", "--timeout", "15", "--retries", "0", "--extra-index-url", _TORCH_INDEX, torch)
    failed: list[str] = []
    if _pip(env, "-r", str(_REQUIREMENTS)):
        failed = [f"{line}: {error}" for line in lines if (error := _pip(env, line))]
    if not failed:
        stamp.write_text(wanted, encoding="utf-8")
    return failed


def _pip(env: Path, *arguments: str) -> str:
    return _run(
        [
            str(interpreter(env)),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--no-input",
            *arguments,
        ]
    )


def _run(command: list[str]) -> str:
    """Return why it failed, in one line; empty when it did not."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return last_words(done.stderr or done.stdout) or f"exit code {done.returncode}" if done.returncode else ""


def last_words(text: str) -> str:
    """Return the line that says what went wrong: the last that names an error, or the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.partition(":")[0].lower()]
    return (errors or lines or [""])[-1][:200]
