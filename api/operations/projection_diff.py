"""Projection diff: which rows two versions of Recollect make of one log, before one replaces the other.

Each version projects a copy of the log in a process of its own environment, so that any two can be compared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from recollect.events.encryption.key_store import KEYS_NAME
from recollect.events.errors import InvalidInput
from recollect.events.integrity.backup import backup
from recollect.projections.schema.row_differences import RowDifference, row_differences

#: What runs the command line of an environment, also of one whose programs are not on the path.
_RUN = "from recollect.api.cli.main import run; run()"
_ERROR_CHARS_MAX = 400


def diff_projections(
    log: Path, keys: Path, folder: Path, pythons: tuple[str, str], namespace: str
) -> list[RowDifference]:
    """Return the differences between the read models that two environments build from a log.

    Parameters:
        log: the file of the log, of which copies are projected.
        keys: the file of its keys, which may be missing.
        folder: an empty folder for the copies.
        pythons: the Python of each environment, such as `/srv/next/bin/python`.

    Raises:
        InvalidInput: an environment cannot project the log; its error is in the text.
    """
    before, after = (
        _projected(log, keys, folder / side, python, namespace) for side, python in zip("ab", pythons, strict=True)
    )
    return row_differences(before, after)


def _projected(log: Path, keys: Path, data: Path, python: str, namespace: str) -> Path:
    """Return the read model that an environment builds from a copy of the log in the new folder `data`."""
    backup(log, data)
    if keys.is_file():
        shutil.copy(keys, data / KEYS_NAME)
    settings = {name: value for name, value in os.environ.items() if name not in ("RECOLLECT_LOG", "RECOLLECT_KEYS")}
    command = [python, "-c", _RUN, "--data", str(data), "replay", "--namespace", namespace]
    try:
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)  # noqa: S603 -- the operator names it
    except OSError as error:
        raise InvalidInput(f"cannot be run: {error.strerror}", field=python) from None
    built = sorted((data / "namespaces").rglob("[0-9]*.db"))
    if done.returncode or not built:
        raise InvalidInput(
            f"cannot project the log: {(done.stderr or done.stdout).strip()[-_ERROR_CHARS_MAX:]}", field=python
        )
    return built[-1]
