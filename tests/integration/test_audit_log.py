"""Audit lines are chained: a change shows, and a restart or a removed oldest file does not break the chain."""

from __future__ import annotations

import hmac
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from support.command_line import recollect

from recollect.api.access.audit_log import AuditLog, audit_files, command_entry, read_audit, verify_audit
from recollect.events.encryption.master_key import KeyOptions
from recollect.events.errors import KeyMissing

OPTIONS = KeyOptions()
ENTRY = command_entry("recollect export", "ann", ("export",), count=3)


def written(folder: Path, lines: int, *, bytes_max: int = 1_000_000) -> AuditLog:
    log = AuditLog(folder, OPTIONS, bytes_max=bytes_max)
    for _ in range(lines):
        log.record(ENTRY)
    return log


def test_two_processes_and_a_restart_continue_one_chain(tmp_path: Path) -> None:
    first, second = written(tmp_path, 3), written(tmp_path, 3)
    with ThreadPoolExecutor(4) as pool:
        for log in (first, second) * 20:
            pool.submit(log.record, ENTRY)
    written(tmp_path, 1)
    check = verify_audit(tmp_path, OPTIONS)
    assert (check.lines, check.problems, check.has_removed_files) == (47, (), False)
    assert verify_audit(tmp_path, OPTIONS, expected=check.head).problems == ()


def test_a_removed_oldest_file_is_allowed_and_visible(tmp_path: Path) -> None:
    log = written(tmp_path, 90, bytes_max=40_000)
    assert len(audit_files(tmp_path)) > 2
    head = verify_audit(tmp_path, OPTIONS).head
    audit_files(tmp_path)[0].unlink()
    log.record(ENTRY)
    check = verify_audit(tmp_path, OPTIONS, expected=head)
    assert (check.has_removed_files, check.problems) == (True, ())
    audit_files(tmp_path)[1].unlink()
    assert "does not follow" in verify_audit(tmp_path, OPTIONS).problems[0]


@pytest.mark.parametrize("change", ["changed", "removed", "swapped", "cut off"])
def test_a_line_that_was_tampered_with_is_reported(tmp_path: Path, change: str) -> None:
    written(tmp_path, 6)
    head = verify_audit(tmp_path, OPTIONS).head
    [file] = audit_files(tmp_path)
    lines = file.read_bytes().splitlines()
    match change:
        case "changed":
            lines[2] = lines[2].replace(b'"ann"', b'"eve"')
        case "removed":
            del lines[2]
        case "swapped":
            lines[2], lines[3] = lines[3], lines[2]
        case _:
            del lines[-1]
    file.write_bytes(b"\n".join(lines) + b"\n")
    assert bool(verify_audit(tmp_path, OPTIONS).problems) == (change != "cut off")
    assert verify_audit(tmp_path, OPTIONS, expected=head).problems


def test_a_chain_that_was_computed_again_without_its_key_is_reported(tmp_path: Path) -> None:
    options = KeyOptions(master_key="1f" * 32)
    log = AuditLog(tmp_path, options, bytes_max=1_000_000)
    for _ in range(3):
        log.record(ENTRY)
    [file] = audit_files(tmp_path)
    lines = [orjson.loads(line) | {"namespace": "eve"} for line in file.read_bytes().splitlines()]
    # Who can write the files finds the wrapped key only.
    found, mac = (tmp_path / "chain.key").read_bytes()[1:33], None
    for line in lines:
        line["previous_mac"] = mac
        mac = hmac.digest(found, orjson.dumps(line), "sha256").hex()
    file.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    assert "does not follow" in verify_audit(tmp_path, options).problems[0]
    with pytest.raises(KeyMissing, match="RECOLLECT_MASTER_KEY"):
        verify_audit(tmp_path, KeyOptions())


def test_a_master_key_that_is_set_later_wraps_the_key_and_keeps_the_chain(tmp_path: Path) -> None:
    written(tmp_path, 2)
    plain = (tmp_path / "chain.key").read_bytes()[1:]
    options = KeyOptions(master_key="2e" * 32)
    AuditLog(tmp_path, options, bytes_max=1_000_000).record(ENTRY)
    assert plain not in (tmp_path / "chain.key").read_bytes()
    assert verify_audit(tmp_path, options).problems == ()


def test_commands_that_read_or_change_memories_and_tokens_are_lines(tmp_path: Path) -> None:
    recollect("add", "ann", "I live in Porto.", data=tmp_path)
    commands = (
        ("retrieve", "ann", "Where do I live?"),
        ("list", "ann", "episodes"),
        ("sql", "SELECT count(*) FROM events"),
        ("token", "create", "--name", "bot", "--namespace", "ann"),
        ("export", "--namespace", "ann"),
        ("context", "--namespace", "ann", "Where do I live?"),
    )
    for command in commands:
        assert recollect(*command, data=tmp_path).returncode == 0
    lines = [(line["route"], line["namespace"]) for line in read_audit(tmp_path / "audit")]
    assert lines == [
        ("recollect context", "ann"),
        ("recollect export", "ann"),
        ("recollect token create", None),
        ("recollect sql", None),
        ("recollect list", "ann"),
        ("recollect retrieve", "ann"),
    ]


def test_a_line_that_a_full_disk_cut_costs_no_other_line(tmp_path: Path) -> None:
    log = written(tmp_path, 2)
    [file] = audit_files(tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    log.record(ENTRY)
    assert len(list(read_audit(tmp_path))) == 2
    [problem] = verify_audit(tmp_path, OPTIONS).problems
    assert "line 2 cannot be read" in problem


def test_the_command_prints_the_head_and_fails_on_a_change(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    written(folder, 2)
    intact = recollect("audit", "--verify", data=tmp_path)
    assert intact.stdout == f"intact: 2 lines, from the first line on; head {verify_audit(folder, OPTIONS).head}\n"
    missing = recollect("audit", "--head", "00" * 32, data=tmp_path)
    assert (missing.returncode, missing.stdout.startswith("no line has the expected head")) == (1, True)
