"""A small part of `ops/fuzz`: bytes on a socket, and two tenants at a time. CONTRIBUTING has the whole runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).parents[2] / "ops" / "fuzz"


def test_hostile_bytes_and_two_tenants_get_no_failure_and_no_word_of_each_other() -> None:
    done = subprocess.run(
        [sys.executable, str(FUZZ), "sample"], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
