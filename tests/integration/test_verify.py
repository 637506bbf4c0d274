from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.events import message_draft

from recollect.events.sqlite import SqliteLog
from recollect.events.verify import Verdict, verify

_EVENTS = 30


@pytest.fixture
def tampered(tmp_path: Path) -> Callable[[str], Verdict]:
    """Run SQL on a log behind its back, then verify it."""

    def run(statements: str) -> Verdict:
        log = SqliteLog(tmp_path / "log.db")
        log.append("a", [message_draft(f"text {number}", session_id="s", actor="ann") for number in range(_EVENTS)])
        thief = apsw.Connection(str(tmp_path / "log.db"))
        thief.execute("DROP TRIGGER events_refuse_update; DROP TRIGGER events_refuse_delete")
        thief.execute(statements)
        thief.close()
        verdict = verify(log, "a")
        log.close()
        return verdict

    return run


def test_an_untouched_log_is_intact_and_says_its_hash(tampered: Callable[[str], Verdict]) -> None:
    verdict = tampered("SELECT 1")
    assert verdict.ok
    assert verdict.version == _EVENTS


@pytest.mark.parametrize(
    ("statement", "version", "what"),
    [
        ("UPDATE events SET payload = CAST('{}' AS BLOB) WHERE position & 255 = 7", 7, "altered"),
        ("UPDATE events SET actor = 'bob' WHERE position & 255 = 7", 7, "altered"),
        ("UPDATE events SET occurred_at_us = occurred_at_us + 1 WHERE position & 255 = 7", 7, "altered"),
        ("UPDATE events SET leaf = zeroblob(32) WHERE position & 255 = 7", 7, "altered"),
        ("UPDATE events SET hash = zeroblob(32) WHERE position & 255 = 7", 7, "chain"),
        ("DELETE FROM events WHERE position & 255 = 7", 7, "removed"),
        (f"DELETE FROM events WHERE position & 255 = {_EVENTS}", _EVENTS, "removed"),
        (
            "INSERT OR REPLACE INTO events SELECT position, id, type, schema_version, occurred_at_us, recorded_at_us, "
            "session_id, 'bob', causation_id, correlation_id, encoding, payload, leaf, hash FROM events "
            "WHERE position & 255 = 7",
            7,
            "altered",
        ),
        ("UPDATE heads SET hash = zeroblob(32)", _EVENTS, "head"),
    ],
)
def test_what_was_changed_is_found_and_named(
    tampered: Callable[[str], Verdict], statement: str, version: int, what: str
) -> None:
    verdict = tampered(statement)
    assert not verdict.ok
    assert verdict.problems[0].version == version
    assert what in verdict.problems[0].what


def test_two_events_that_changed_places_are_found(tampered: Callable[[str], Verdict]) -> None:
    verdict = tampered(
        "UPDATE events SET position = position + 1000 WHERE position & 255 = 7;"
        "UPDATE events SET position = position - 1 WHERE position & 255 = 8;"
        "UPDATE events SET position = position - 999 WHERE position & 0xfff = 1007"
    )
    assert {problem.version for problem in verdict.problems} >= {7, 8}


@settings(max_examples=40, deadline=None)
@given(version=st.integers(1, _EVENTS), byte=st.integers(0, 200), column=st.sampled_from(["payload", "leaf", "hash"]))
def test_any_single_changed_byte_is_found(
    tmp_path_factory: pytest.TempPathFactory, version: int, byte: int, column: str
) -> None:
    folder = tmp_path_factory.mktemp("tampered")
    log = SqliteLog(folder / "log.db")
    log.append("a", [message_draft(f"text {number}") for number in range(_EVENTS)])
    thief = apsw.Connection(str(folder / "log.db"))
    thief.execute("DROP TRIGGER events_refuse_update")
    rows = thief.execute(f"SELECT position, {column} FROM events WHERE position & 255 = ?", (version,)).fetchall()
    position, value = rows[0]
    assert isinstance(value, bytes)
    at = byte % len(value)
    changed = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
    thief.execute(f"UPDATE events SET {column} = ? WHERE position = ?", (changed, position))
    thief.close()

    assert not verify(log, "a").ok
    log.close()
