"""A short part of `ops/faults`; CONTRIBUTING has the whole runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[2] / "ops" / "faults"


@pytest.mark.long
@pytest.mark.parametrize(("kind", "minutes"), [("linearizable", "0.3"), ("nodes", "0.4"), ("soak", "0.6")])
def test_nothing_acknowledged_is_lost_or_doubled_while_parts_fail(kind: str, minutes: str) -> None:
    command = [sys.executable, str(FAULTS), kind, "--minutes", minutes]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "violations 0" in done.stdout
