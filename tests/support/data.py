"""Real conversations, where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_FOLDER = Path(os.environ.get("RECOLLECT_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))


def conversations(pattern: str) -> list[Path]:
    """Return the files that match, or skip the test where there are none."""
    files = sorted(_FOLDER.glob(pattern))
    if not files:
        pytest.skip(f"no {pattern} in {_FOLDER}; set RECOLLECT_TEST_DATA to a folder with conversations")
    return files
