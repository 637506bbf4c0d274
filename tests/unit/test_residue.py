"""Windows of an erased text are found in files of any kind, wherever they begin."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import apsw
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.events.integrity import residue
from recollect.events.integrity.residue import WINDOW_BYTES, WINDOWS_MAX, EventSample, search, windows_of
from recollect.events.storage.shared_files import open_shared

TEXT = "My grandmother hid the key under the third pot of basil."


def payload(*texts: str) -> bytes:
    return orjson.dumps({"role": "user", "turns": [{"text": text} for text in texts]})


def test_windows_are_pieces_of_the_texts_and_of_nothing_else() -> None:
    windows = windows_of([payload(TEXT, "short"), payload("=" * 60), payload('"quoted" \\ "words"' * 3)])
    assert windows
    assert all(len(window) == WINDOW_BYTES and window.decode() in TEXT for window in windows)
    assert len(windows_of([payload(f"{number} {TEXT * 9}") for number in range(500)])) <= 500
    assert windows_of([payload("too short")]) == set()


@given(before=st.binary(max_size=40), after=st.binary(max_size=40), number=st.integers(0, 63))
def test_a_window_is_found_at_every_alignment(before: bytes, after: bytes, number: int) -> None:
    windows = sorted(windows_of([payload(TEXT)]))
    window = windows[number % len(windows)]
    finder = residue.Finder(windows)
    assert window in finder.find(before + window + after)
    cut = before + window[:-1]
    assert finder.find(cut) == {other for other in windows if other in cut}


def test_a_window_is_found_across_blocks_and_at_the_end_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(residue, "_BLOCK_BYTES", 64)
    windows = windows_of([payload(TEXT)])
    for shift in range(80):
        path = tmp_path / f"{shift}.bin"
        path.write_bytes(b"x" * shift + TEXT.encode())
        result = search([path, tmp_path / "missing"], windows)
        assert (result.hits_by_file, result.files) == ({path: windows}, 1)
        assert result.is_complete
    monkeypatch.setattr(residue, "_BYTES_MAX", 100)
    assert not search([tmp_path / "79.bin"] * 9, windows).is_complete


def test_a_sample_is_bounded_and_spread() -> None:
    sample = EventSample()
    for number in range(10_000):
        sample.add(number)  # pyright: ignore[reportArgumentType]
    numbers: list[int] = list(sample.events)  # pyright: ignore[reportArgumentType, reportAssignmentType]
    assert WINDOWS_MAX // 2 <= len(numbers) <= WINDOWS_MAX
    assert {second - first for first, second in pairwise(numbers)} == {numbers[1]}


def test_reading_an_open_database_keeps_its_locks(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    lock = (
        "import apsw, sys\nconnection = apsw.Connection(sys.argv[1])\n"
        "try:\n    connection.execute('BEGIN IMMEDIATE')\nexcept apsw.BusyError:\n    print('locked')"
    )
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("BEGIN IMMEDIATE")
        with open_shared(path) as file:
            assert file.read(0, 16) == b"SQLite format 3\0"
        other = subprocess.run([sys.executable, "-c", lock, path], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == "locked"
