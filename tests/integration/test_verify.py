from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.events import message_draft

from recollect.events.backends.log import each_head
from recollect.events.backends.open_log import open_log
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import InvalidInput
from recollect.events.integrity.anchor import read_anchor, write_anchor
from recollect.events.integrity.parallel_verify import verify_all
from recollect.events.integrity.verify import VerifyResult, verify

_EVENTS = 30


@pytest.fixture
def tampered(tmp_path: Path) -> Callable[[str], VerifyResult]:
    """Run SQL on a log behind its back, then verify it."""

    def run(statements: str) -> VerifyResult:
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


def test_an_untouched_log_is_intact_and_says_its_hash(tampered: Callable[[str], VerifyResult]) -> None:
    verdict = tampered("SELECT 1")
    assert verdict.is_intact
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
    tampered: Callable[[str], VerifyResult], statement: str, version: int, what: str
) -> None:
    verdict = tampered(statement)
    assert not verdict.is_intact
    assert verdict.problems[0].version == version
    assert what in verdict.problems[0].message


def test_two_events_that_changed_places_are_found(tampered: Callable[[str], VerifyResult]) -> None:
    verdict = tampered(
        "UPDATE events SET position = position + 1000 WHERE position & 255 = 7;"
        "UPDATE events SET position = position - 1 WHERE position & 255 = 8;"
        "UPDATE events SET position = position - 999 WHERE position & 0xfff = 1007"
    )
    assert {problem.version for problem in verdict.problems} >= {7, 8}


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

    assert not verify(log, "a").is_intact
    log.close()


def test_content_that_was_removed_without_an_erasure_event_is_found(tmp_path: Path, log: SqliteLog) -> None:
    log.append("a", [message_draft(f"text {number}") for number in range(3)])
    with closing(apsw.Connection(str(tmp_path / "log.db"))) as thief:
        thief.execute("DROP TRIGGER events_refuse_update")
        thief.execute("UPDATE events SET encoding = 'erased', type = 'erased', payload = x'' WHERE position & 255 = 2")
        [problem] = verify(log, "a").problems
        assert problem.version == 2
        assert "no erasure event names it" in problem.message
        # A row that claims an erasure is not an event of the chain.
        thief.execute("INSERT INTO erasures SELECT key, 3 FROM heads")
    assert not verify(log, "a").is_intact


def test_a_long_chain_is_walked_in_parts_with_the_same_verdict(tmp_path: Path, log: SqliteLog) -> None:
    for namespace, count in (("a", 40), ("b", 1), ("c", 14), ("d", 3)):
        log.append(namespace, [message_draft(f"text {number}") for number in range(count)])
    reopen = partial(open_log, f"sqlite:///{tmp_path / 'log.db'}")
    whole = [verify(log, head.namespace) for head in each_head(log)]

    progress: list[tuple[int, int]] = []
    in_parts = partial(verify_all, log, open_log=reopen, task_events=7)
    seen = list(in_parts(each_head(log), on_progress=lambda done, all: progress.append((done, all))))
    assert seen == whole
    assert progress[-1] == (58, 58)
    assert list(in_parts(each_head(log), processes=2)) == whole


@pytest.mark.parametrize("version", range(1, 41))
def test_whatever_is_removed_or_altered_shows_at_the_seams_too(tmp_path: Path, log: SqliteLog, version: int) -> None:
    log.append("a", [message_draft(f"text {number}") for number in range(40)])
    thief = apsw.Connection(str(tmp_path / "log.db"))
    thief.execute("DROP TRIGGER events_refuse_update; DROP TRIGGER events_refuse_delete")
    thief.execute("DELETE FROM events WHERE position & 255 = ?", (version,))
    thief.execute("UPDATE events SET actor = 'bob' WHERE position & 255 = ?", (version % 40 + 1,))
    thief.close()

    [verdict] = verify_all(log, each_head(log), open_log=lambda: log, task_events=10)
    assert {version, version % 40 + 1} <= {problem.version for problem in verdict.problems}


def test_an_anchor_proves_that_the_end_was_cut_off_or_rewritten(tmp_path: Path, log: SqliteLog) -> None:
    for namespace in ("a", "b", "c"):
        log.append(namespace, [message_draft(f"text {number}", id=str(number)) for number in range(5)])
    verdicts = list(verify_all(log, each_head(log), open_log=lambda: log))
    write_anchor(tmp_path / "anchor.json", log.log_id, verdicts)
    log.append("c", [message_draft("later")])
    thief = apsw.Connection(str(tmp_path / "log.db"))
    thief.execute("DROP TRIGGER events_refuse_update; DROP TRIGGER events_refuse_delete")
    # The end of "a" goes, heads included; "b" goes as a whole.
    thief.execute("DELETE FROM events WHERE position >> 36 = 1 AND position & 255 > 3")
    thief.execute(
        "UPDATE heads SET (version, hash) = (SELECT 3, hash FROM events WHERE position & 255 = 3) WHERE namespace = 'a'"
    )
    thief.execute("DELETE FROM events WHERE position >> 36 = 2; DELETE FROM heads WHERE namespace = 'b'")
    thief.close()

    assert all(verdict.is_intact for verdict in verify_all(log, each_head(log), open_log=lambda: log))
    anchor = read_anchor(tmp_path / "anchor.json", log)
    found = {
        verdict.namespace: verdict for verdict in verify_all(log, each_head(log), open_log=lambda: log, anchor=anchor)
    }
    assert not found["a"].is_intact
    assert not found["b"].is_intact
    assert found["c"].is_intact
    log.append("a", [message_draft("another 4"), message_draft("another 5")])
    [rewritten] = verify_all(
        log, [log.head("a")], open_log=lambda: log, anchor=anchor._replace(heads={"a": anchor.heads["a"]})
    )
    assert "rewritten" in rewritten.problems[0].message


def test_events_behind_the_head_are_found(tampered: Callable[[str], VerifyResult]) -> None:
    verdict = tampered(f"UPDATE heads SET version = {_EVENTS - 1}")
    assert not verdict.is_intact


@pytest.mark.parametrize("content", [b"", b"[]", b'{"log_id": "x"}', b'{"log_id": "x", "heads": {"a": 1}}', b"\xff"])
def test_a_file_that_is_no_anchor_is_refused(tmp_path: Path, log: SqliteLog, content: bytes) -> None:
    (tmp_path / "anchor.json").write_bytes(content)
    with pytest.raises(InvalidInput, match="not an anchor"):
        read_anchor(tmp_path / "anchor.json", log)


def test_an_anchor_of_another_log_is_refused(tmp_path: Path, log: SqliteLog) -> None:
    write_anchor(tmp_path / "anchor.json", "another", [])
    with pytest.raises(InvalidInput, match="another log"):
        read_anchor(tmp_path / "anchor.json", log)
