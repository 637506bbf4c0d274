"""Page runner: runs the code blocks of one page in order, in an empty folder, as a reader would.

- ``bash``: commands; every one has to succeed, and a `curl` fails on an error status. What is exported holds for later
  blocks.
- ``console``: `$ command` lines, each followed by what it prints.
- ``python``: a program. A block that begins with a comment such as ``# bot.py`` is saved under that name too.
- ``text`` after a ``bash`` or ``python`` block: what that prints.

``…`` in an output stands for anything. `recollect serve`, `worker` and `scheduler` run until the end of the page; a
reader starts them in other terminals.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from support.pages import Block, blocks_of

#: A block that runs longer has hung.
_BLOCK_SECONDS_MAX = 120
_END_SECONDS_MAX = 30

_PREAMBLE = """
[ -f "$RUNNER/environment" ] && . "$RUNNER/environment"
set -eu -o pipefail
curl() { command curl --fail-with-body --max-time 60 "$@"; }
started() {
    local log=$(mktemp "$RUNNER/started-XXXXXX")
    "$@" > "$log" 2>&1 < /dev/null &
    echo $! >> "$RUNNER/pids"
    for _ in $(seq 600); do
        grep -q "Ctrl-C stops" "$log" && return
        sleep 0.05
    done
    cat "$log" >&2
    return 1
}
trap 'export -p > "$RUNNER/environment"' EXIT
"""
_LONG_RUNNING = re.compile(r"^(recollect (?:serve|worker|scheduler)\b)", re.MULTILINE)


class PageRunner:
    """The blocks of one page and the processes that they start.

    Parameters:
        folder: an empty folder, in which the page's commands run.
        environment: variables beside those of this process.
        replaced: texts of the page and their replacements here, such as the port.
    """

    def __init__(
        self, page: Path, folder: Path, *, shims: Path, environment: Mapping[str, str], replaced: Mapping[str, str]
    ) -> None:
        self._blocks = blocks_of(page)
        self._page = page.name
        self._folder = folder / "page"
        self._folder.mkdir()
        self._runner = folder / "runner"
        self._runner.mkdir()
        self._replaced = replaced
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
        self._environment = kept | {
            "PATH": f"{shims}:{os.environ['PATH']}",
            "RUNNER": str(self._runner),
            "COLUMNS": "120",
            **environment,
        }

    def run(self) -> None:
        """Run every block that is not marked; raise AssertionError at the first that fails or prints something else."""
        try:
            for number, block in enumerate(self._blocks):
                if block.not_run is None:
                    after = self._blocks[number + 1] if number + 1 < len(self._blocks) else None
                    self._run_block(block, after.text if after and after.language == "text" else None)
        finally:
            self._end_processes()

    def _run_block(self, block: Block, output: str | None) -> None:
        if block.language == "console":
            for command, printed in _commands(block.text):
                self._compare(block, self._shell(block, command), printed)
        elif block.language in ("bash", "python"):
            printed = self._shell(block, block.text) if block.language == "bash" else self._python(block)
            if output is not None:
                self._compare(block, printed, output)

    def _shell(self, block: Block, command: str) -> str:
        text = _LONG_RUNNING.sub(r"started \1", self._here(command))
        return self._output_of(block, ["bash", "-c", f"{_PREAMBLE}\n{text}"])

    def _python(self, block: Block) -> str:
        text = self._here(block.text)
        named = re.match(r"# (\w+\.py)\n", text)
        name = named.group(1) if named else f"block-{block.line}.py"
        (self._folder / name).write_text(text, encoding="utf-8")
        return self._output_of(block, ["bash", "-c", f"{_PREAMBLE}\npython {name}"])

    def _output_of(self, block: Block, command: list[str]) -> str:
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_BLOCK_SECONDS_MAX,
                check=False,
                text=True,
            )
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{self._where(block)} hangs: {error.stdout!r}") from None
        assert done.returncode == 0, f"{self._where(block)} ended with {done.returncode}: {done.stdout}"
        return done.stdout

    def _compare(self, block: Block, printed: str, expected: str) -> None:
        if expected.strip():
            pattern = ".*".join(re.escape(part) for part in self._here(expected).strip().split("…"))
            assert re.fullmatch(pattern, printed.strip(), re.DOTALL), f"{self._where(block)} prints:\n{printed}"

    def _here(self, text: str) -> str:
        for written, actual in self._replaced.items():
            text = text.replace(written, actual)
        return text

    def _where(self, block: Block) -> str:
        return f"{self._page}, line {block.line}"

    def _end_processes(self) -> None:
        """Stop what the page started, as Ctrl-C in its terminal would."""
        pids = self._runner / "pids"
        running = [int(line) for line in pids.read_text().split()] if pids.exists() else []
        for pid in running:
            _signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + _END_SECONDS_MAX
        for pid in running:
            while _signal(pid, 0) and time.monotonic() < deadline:
                time.sleep(0.02)
            _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> bool:
    """Send a signal; return whether the process is there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    # A zombie is gone: its parent, the shell, ended before it, and not every machine reaps orphans at once.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def _commands(text: str) -> list[tuple[str, str]]:
    """Return the commands of a ``console`` block, each with what it prints."""
    commands: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], ""))
            continue
        assert commands, f"a console block begins with a command: {line!r}"
        command, printed = commands[-1]
        # The shell's second prompt: the command goes on.
        commands[-1] = (f"{command}\n{line[2:]}", "") if line.startswith("> ") else (command, f"{printed}{line}\n")
    return commands
