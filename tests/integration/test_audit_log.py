"""Audit lines are chained: a change shows, and a restart or a removed oldest file does not break the chain."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.command_line import recollect

from recollect.api.access.audit_log import AuditLog, audit_files, command_entry, read_audit, verify_audit

ENTRY = command_entry("recollect export", "ann", ("export",), count=3)


def written(folder: Path, lines: int, *, bytes_max: int = 1_000_000) -> AuditLog:
    log = AuditLog(folder, bytes_max=bytes_max)
    for _ in range(lines):
        log.record(ENTRY)
    return log


def test_two_processes_and_a_restart_continue_one_chain(tmp_path: Path) -> None:
    first, second = written(tmp_path, 3), written(tmp_path, 3)
    with ThreadPoolExecutor(4) as pool:
        for log in (first, second) * 20:
            pool.submit(log.record, ENTRY)
    written(tmp_path, 1)
    check = verify_audit(tmp_path)
    assert (check.lines, check.problems, check.has_removed_files) == (47, (), False)
    assert verify_audit(tmp_path, expected=check.head).problems == ()


def test_a_removed_oldest_file_is_allowed_and_visible(tmp_path: Path) -> None:
    log = written(tmp_path, 90, bytes_max=40_000)
    assert len(audit_files(tmp_path)) > 2
    head = verify_audit(tmp_path).head
    audit_files(tmp_path)[0].unlink()
    log.record(ENTRY)
    check = verify_audit(tmp_path, expected=head)
    assert (check.has_removed_files, check.problems) == (True, ())
    audit_files(tmp_path)[1].unlink()
    assert "does not follow" in verify_audit(tmp_path).problems[0]


@pytest.mark.parametrize("change", ["changed", "removed", "swapped", "cut off"])
def test_a_line_that_was_tampered_with_is_reported(tmp_path: Path, change: str) -> None:
    written(tmp_path, 6)
    head = verify_audit(tmp_path).head
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
    assert bool(verify_audit(tmp_path).problems) == (change != "cut off")
    assert verify_audit(tmp_path, expected=head).problems


def test_a_line_that_a_full_disk_cut_costs_no_other_line(tmp_path: Path) -> None:
    log = written(tmp_path, 2)
    [file] = audit_files(tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    log.record(ENTRY)
    assert len(list(read_audit(tmp_path))) == 2
    [problem] = verify_audit(tmp_path).problems
    assert "line 2 cannot be read" in problem


def test_the_command_prints_the_head_and_fails_on_a_change(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    written(folder, 2)
    intact = recollect("audit", "--verify", data=tmp_path)
    assert intact.stdout == f"intact: 2 lines, from the first line on; head {verify_audit(folder).head}\n"
    missing = recollect("audit", "--head", "00" * 32, data=tmp_path)
    assert (missing.returncode, missing.stdout.startswith("no line has the expected head")) == (1, True)
