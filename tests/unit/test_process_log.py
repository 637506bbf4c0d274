"""The log and the terminal show no secret, no text of a user and no control character."""

from __future__ import annotations

import logging
import re
import sys
from pathlib import Path
from queue import Queue

import orjson
import pytest

from recollect.api.cli.process_log import PrivateFormatter, WaitingLines
from recollect.api.cli.terminal import echo, visible
from recollect.events.errors import VersionConflict
from recollect.events.log_context import log_context, note

CLI = Path(__file__).parents[2] / "api" / "cli"


def logged(message: str, *arguments: object, error: BaseException | None = None) -> str:
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("recollect", logging.WARNING, __file__, 1, message, arguments, info)
    return PrivateFormatter(Path("/var/lib/memory")).format(record)


def test_a_traceback_has_types_and_places_but_not_the_texts_of_errors() -> None:
    try:
        try:
            raise KeyError("my diary")
        except KeyError as cause:
            raise ValueError("invalid: my diary") from cause
    except ValueError as error:
        shown = logged("a job failed", error=error)
    assert "my diary" not in shown.replace('raise KeyError("my diary")', "").replace('"invalid: my diary"', "")
    assert re.search(r"ValueError at\n.*test_process_log\.py.*raised from KeyError at\n", shown, re.DOTALL)


def test_namespaces_are_shown_as_their_folders() -> None:
    shown = logged("%s", VersionConflict("ann@example.org", 1, 2))
    assert "ann@example.org" not in shown
    assert re.search(r"namespace [0-9a-f]{12} is at version 2", shown)
    requested = logged("HTTP Request: GET %s", "http://127.0.0.1:8787/v1/namespaces/ann%40example.org/facts")
    assert re.search(r"8787/v1/namespaces/[0-9a-f]{12}/facts", requested)


def test_a_line_of_json_has_the_fields_of_its_request() -> None:
    lines: Queue[logging.LogRecord] = Queue(2)
    handler = WaitingLines(lines)
    with log_context({"request_id": "r1"}):
        note("event_version", 7)
        for number in range(4):
            handler.handle(logging.LogRecord("recollect", logging.WARNING, __file__, 1, "late %d", (number,), None))
    formatter = PrivateFormatter(Path("/var/lib/memory"), as_json=True)
    first = orjson.loads(formatter.format(lines.get()))
    assert (first["event"], first["level"], first["request_id"], first["event_version"]) == (
        "late 0",
        "warning",
        "r1",
        7,
    )
    lines.get()
    # Two lines did not fit; the next one says so.
    handler.handle(logging.LogRecord("recollect", logging.WARNING, __file__, 1, "again", (), None))
    assert orjson.loads(formatter.format(lines.get()))["dropped_lines"] == 2


def test_a_broker_that_is_away_is_one_line_a_minute_and_not_one_of_each_thread() -> None:
    lines: Queue[logging.LogRecord] = Queue(100)
    handler = WaitingLines(lines)
    for second in range(0, 90, 3):
        for queue in ("embed", "project", "think"):
            name = f"dramatiq.worker.ConsumerThread({queue})"
            record = logging.LogRecord(name, logging.CRITICAL, __file__, 1, "no connection", (), None)
            record.created = 1_000.0 + second
            handler.handle(record)
    assert [lines.get().created for _ in range(lines.qsize())] == [1_000.0, 1_060.0]


def test_the_messages_of_queues_are_shown_without_their_namespaces() -> None:
    record = logging.LogRecord(
        "dramatiq.worker", logging.ERROR, __file__, 1, "Failed: project('ann') run('a', 1)", (), None
    )
    shown = PrivateFormatter(Path("/var/lib/memory")).format(record)
    assert "project(…) run(…)" in shown
    assert "ann" not in shown


def test_the_data_folder_and_passwords_in_addresses_are_not_shown() -> None:
    shown = logged("%s", OSError("sqlite:////var/lib/memory/log.db: postgresql://ann:secret@db/x and amqp://:pw@host"))
    assert "/var/lib" not in shown
    assert "secret" not in shown
    assert "pw" not in shown
    assert "<data>/log.db" in shown


def test_a_short_name_of_the_data_folder_is_hidden_in_paths_alone() -> None:
    record = logging.LogRecord("a", logging.INFO, __file__, 1, "embedding by default, d/log.db, 'd'", (), None)
    assert "embedding by default, <data>/log.db, '<data>'" in PrivateFormatter(Path("d")).format(record)


@pytest.mark.parametrize(
    "hostile", ["\x1b[31mred", "\x1b]0;title\x07", "\x9b2J", "a\rb", "\u202egnp.exe", "\U000e0041", "\x00", "\u2028x"]
)
def test_control_characters_are_written_out(hostile: str) -> None:
    shown = visible(hostile)
    assert shown.isprintable()
    assert orjson.loads(f'"{shown}"') == hostile
    assert "\x1b" not in logged("%s", hostile)


def test_ordinary_text_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = "Zoë 👩‍👩‍👧 می‌خواهم\n日本\ttab"
    echo(text)
    assert capsys.readouterr().out == f"{text}\n"
    assert sys.stdout is not None


def test_every_command_prints_through_it() -> None:
    for path in CLI.glob("*.py"):
        if path.name != "terminal.py":
            assert "typer.echo" not in path.read_text(encoding="utf-8"), path
