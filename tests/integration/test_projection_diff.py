"""`recollect diff-projections`: what another version makes of a log, before it is switched on."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import pytest
from support.command_line import recollect
from support.events import message

from recollect import Recollect
from recollect.api.settings import load_settings

#: Imported at the start of each Python process of an environment: a version that stores facts in capitals.
_NEXT = """
import recollect.projections.projector.knowledge_handlers as handlers
stated = handlers.KNOWLEDGE_HANDLERS["fact.stated"]
def loud(batch, event, payload):
    stated(batch, event, payload | {"object": payload["object"].upper()})
handlers.KNOWLEDGE_HANDLERS["fact.stated"] = loud
import recollect.projections.projector.event_handlers as events
events._HANDLERS["fact.stated"] = loud
"""


def environment(folder: Path, code: str) -> str:
    """Make a Python in which `code` has run; return its path."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return str(python)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    with Recollect(settings=load_settings(data=folder, embedding_model="none"), workers=False) as memory:
        fact = {"subject": "Ann", "predicate": "lives in", "object": "Porto"}
        memory.append("ann", [message("I live in Porto."), {"type": "fact.stated", "payload": fact}])
    return folder


def files(data: Path) -> dict[Path, bytes]:
    """Return the files of the data folder, without the audit log and what SQLite keeps beside an open file."""
    found = (path for path in data.rglob("*") if path.is_file() and "audit" not in path.parts)
    return {path: path.read_bytes() for path in found if not path.name.endswith(("-wal", "-shm"))}


def test_two_versions_that_make_the_same_rows_are_equal(data: Path, tmp_path: Path) -> None:
    other = environment(tmp_path / "same", "")
    done = recollect("diff-projections", sys.executable, other, "--namespace", "ann", data=data)
    assert (done.returncode, done.stdout) == (0, "Both make the same rows.\n"), done.stderr


def test_what_a_version_changes_is_shown_by_row_and_column_and_nothing_is_written(data: Path, tmp_path: Path) -> None:
    before = files(data)
    other = environment(tmp_path / "next", _NEXT)
    done = recollect("diff-projections", sys.executable, other, "--namespace", "ann", data=data)
    assert done.returncode == 1, done.stderr
    assert "facts: 1 changed" in done.stdout
    assert "object 'Porto' -> 'PORTO'" in done.stdout
    as_json = recollect("diff-projections", sys.executable, other, "--namespace", "ann", "--json", data=data)
    [fact] = [row for row in map(orjson.loads, as_json.stdout.splitlines()) if row["table"] == "facts"]
    assert (fact["before"]["object"], fact["after"]["object"]) == ("Porto", "PORTO")
    assert files(data) == before


def test_an_environment_that_cannot_project_is_named_with_its_error(data: Path, tmp_path: Path) -> None:
    broken = environment(tmp_path / "broken", "raise SystemExit('no such version')")
    for python, reason in ((broken, "no such version"), ("/nowhere/python", "cannot be run")):
        done = recollect("diff-projections", sys.executable, python, "--namespace", "ann", data=data)
        assert (done.returncode, reason in done.stderr, python in done.stderr) == (2, True, True), done.stderr
