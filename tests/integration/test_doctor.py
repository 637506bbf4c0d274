"""Doctor: what it finds in a folder, beside a server and without one, and what it never shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import orjson
import pytest
from support.command_line import recollect
from support.events import message
from support.server import recollect_process, serving

from recollect import Recollect
from recollect.api.settings import load_settings, unknown_variables


@pytest.fixture(autouse=True)
def without_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_EMBEDDING_MODEL", "none")


def diagnosis(data: Path, *options: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Return the exit code, and the last check of each name."""
    done = recollect("doctor", "--json", *options, data=data)
    answer: dict[str, Any] = orjson.loads(done.stdout)
    assert answer["ok"] == (done.returncode == 0)
    return done.returncode, {check["name"]: check for check in answer["checks"]}


def failed(checks: dict[str, dict[str, str]]) -> Iterator[str]:
    return (name for name, check in checks.items() if check["status"] == "failed")


def fill(data: Path) -> None:
    with Recollect(settings=load_settings(data=data), workers=False) as memory:
        memory.append("ann.canary", [message("my falcon"), message("my tea")])


def test_a_new_folder_has_no_fault_and_is_not_created(tmp_path: Path) -> None:
    code, checks = diagnosis(tmp_path / "new")
    assert (code, list(failed(checks))) == (0, [])
    assert not (tmp_path / "new").exists()


def test_a_folder_in_use_is_verified_and_every_line_is_one_of_text(tmp_path: Path) -> None:
    fill(tmp_path)
    code, checks = diagnosis(tmp_path)
    assert (code, checks["log"]["status"]) == (0, "ok")
    assert "last 2 events of 1 namespace" in checks["log"]["detail"]
    shown = recollect("doctor", data=tmp_path)
    assert shown.stdout.splitlines()[-1] == "no check failed"
    assert "canary" not in shown.stdout


def test_a_changed_log_a_full_disk_and_readable_keys_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_ENCRYPTION", "on")
    fill(tmp_path)
    connection = apsw.Connection(str(tmp_path / "log.db"))
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute("UPDATE events SET occurred_at_us = occurred_at_us + 1")
    connection.close()
    (tmp_path / "keys.db").chmod(0o644)
    monkeypatch.setenv("RECOLLECT_DISK_FREE_BYTES_MIN", str(1 << 60))
    code, checks = diagnosis(tmp_path)
    assert (code, set(failed(checks))) == (1, {"disk", "keys", "log"})
    assert "keys.db" in checks["folder"]["detail"]
    assert all(checks[name]["hint"] for name in ("disk", "keys", "log", "folder"))


def test_a_lost_log_and_a_wrong_setting_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)
    (tmp_path / "log.db").unlink()
    code, checks = diagnosis(tmp_path)
    assert code == 1
    assert "recollect restore" in checks["log"]["detail"]
    monkeypatch.setenv("RECOLLECT_PORT", "no port")
    assert list(failed(diagnosis(tmp_path)[1])) == ["settings"]


def test_servers_that_do_not_answer_are_named_without_their_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_LOG", "postgresql://ann:s3cret@127.0.0.1:1/memory")
    monkeypatch.setenv("RECOLLECT_BROKER", "redis://ann:s3cret@127.0.0.1:1/0")
    done = recollect("doctor", "--json", data=tmp_path)
    checks = {check["name"]: check for check in orjson.loads(done.stdout)["checks"]}
    assert {"postgresql", "broker"} <= set(failed(checks))
    assert "s3cret" not in done.stdout + done.stderr


def test_beside_a_server_its_health_is_asked(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        code, checks = diagnosis(tmp_path)
        assert (code, checks["server"]["detail"]) == (0, f"runs at {server.base}")
        assert checks["health"]["detail"].startswith("ok; model off; 0 events to project")
        assert checks["model"]["status"] == "skipped"
        server.kill()
    code, checks = diagnosis(tmp_path)
    assert (code, "was killed" in checks["server"]["detail"]) == (0, True)


def test_a_misspelt_variable_is_named_with_the_nearest_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_RETREIVAL_BUDGET_MS", "5")
    monkeypatch.setenv("RECOLLECT_NAMESPACE", "ann")
    monkeypatch.setenv("RECOLLECT_TEST_ANYTHING", "1")
    code, checks = diagnosis(tmp_path / "new")
    assert code == 0
    assert checks["settings"] == {
        "name": "settings",
        "status": "warning",
        "detail": "RECOLLECT_RETREIVAL_BUDGET_MS is not a setting and has no effect",
        "hint": "did you mean RECOLLECT_RETRIEVAL_BUDGET_MS?",
    }
    monkeypatch.setenv("RECOLLECT_BUDGET_TOKENS", "500")
    advice = unknown_variables()["RECOLLECT_BUDGET_TOKENS"].partition("did you mean ")[2]
    assert "RECOLLECT_CONTEXT_TOKENS" in advice.rstrip("?").split(" or ")
    monkeypatch.setenv("RECOLLECT_SOMETHING_ELSE", "5")
    assert unknown_variables()["RECOLLECT_SOMETHING_ELSE"].endswith("docs/reference/settings.md lists the settings")


def test_every_process_warns_once_of_a_misspelt_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RECOLLECT_PROT", "9000")
    for command in (("stats",), ("list", "ann", "facts")):
        done = recollect_process(*command, data=tmp_path)
        assert done.stderr.count("did you mean RECOLLECT_PORT?") == 1, command
        assert "RECOLLECT_PROT" not in done.stdout
    for _ in range(2):
        Recollect(tmp_path / "memory", workers=False).close()
    assert [record.getMessage() for record in caplog.records if "RECOLLECT_PROT" in record.getMessage()] == [
        "RECOLLECT_PROT is not a setting and has no effect; did you mean RECOLLECT_PORT?"
    ]


def test_a_wrong_option_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--port: " in recollect("serve", "--port", "80800", data=tmp_path).stderr
    monkeypatch.setenv("RECOLLECT_PORT", "80800")
    assert "RECOLLECT_PORT: " in recollect("serve", data=tmp_path).stderr


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only Linux has a /proc in which nothing can be created")
def test_a_data_folder_that_cannot_be_created_is_named_with_what_to_do() -> None:
    for command in (("serve",), ("append", "ann", '{"type":"message.added","payload":{"role":"user","text":"x"}}')):
        done = recollect(*command, data=Path("/proc/nope"))
        assert done.returncode == 2
        assert "/proc/nope" in done.stderr
        assert "name another with --data" in done.stderr
