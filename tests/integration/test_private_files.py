"""Modes of files: every file of a data folder is its owner's alone, whatever the process's umask allows."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from support.command_line import recollect
from support.events import message

from recollect import Recollect
from recollect.api.access.token_store import TokenStore
from recollect.api.settings import load_settings


@pytest.fixture(autouse=True)
def open_umask() -> Generator[None]:
    """A umask that lets everybody read and write new files."""
    before = os.umask(0)
    yield
    os.umask(before)


def readable_by_others(root: Path) -> list[str]:
    """Return the files and folders below `root`, and itself, that others than their owner may use."""
    return [
        f"{path.relative_to(root)} {path.stat().st_mode & 0o777:o}"
        for path in (root, *root.rglob("*"))
        if path.stat().st_mode & 0o077
    ]


def names(root: Path) -> str:
    return " ".join(str(path.relative_to(root)) for path in root.rglob("*"))


def test_every_file_of_a_data_folder_is_its_owners_alone(tmp_path: Path) -> None:
    data = tmp_path / "house" / "data"
    settings = load_settings(data=data, embedding_model="none")
    TokenStore(settings.tokens_path).create(name="bot", scopes=["read"], patterns=["*"], days=None)
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("ann", [message(f"I like tea number {number}") for number in range(20)])
        memory.retrieve("ann", "what do I like?")
        memory.retrieve("ann", "what did I like?", as_of=3)
        memory.replay("ann")
        memory.settle("ann")
        (*_,) = memory.list("ann", "episodes", as_of=2)["items"]
    for command in (("archive", "--min-events", "1"), ("export", "--output", str(data / "export.jsonl"))):
        assert recollect(*command, data=data).returncode == 0, command
    rows = ("sql", "SELECT type FROM events", "--format", "parquet", "--output", str(data / "rows.parquet"))
    assert recollect(*rows, data=data).returncode == 0
    assert recollect("backup", str(data.parent / "backup"), data=data).returncode == 0
    assert recollect("restore", str(data.parent / "backup"), data=data).returncode == 0
    for part in ("log.db", "as-of/", "traces/", "000", "tokens.json", "audit/", ".parquet"):
        assert part in names(data), part
    assert readable_by_others(data.parent) == []


def test_files_that_sqlite_adds_are_private_while_the_memory_is_open(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Recollect(settings=load_settings(data=data, embedding_model="none"), workers=False) as memory:
        memory.append("ann", message("I like tea"))
        memory.retrieve("ann", "tea?")
        assert "log.db-wal" in names(data)
        assert readable_by_others(data) == []
