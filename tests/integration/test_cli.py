from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import apsw
import orjson
import pytest
import typer
import typer.main
from support.command_line import recollect
from support.events import message
from support.server import recollect_process
from typer.testing import CliRunner

from recollect.api.cli.main import app
from recollect.projections.read_models.layout import generation_path, namespace_folder


def append(data: Path, namespace: str, *texts: str) -> None:
    body = orjson.dumps({"events": [message(text) for text in texts]})
    assert recollect("append", namespace, data=data, stdin=body).returncode == 0


def test_append_prints_versions_and_ids_and_marks_duplicates(tmp_path: Path) -> None:
    event = orjson.dumps(message("x", id="e1")).decode()
    assert recollect("append", "a", event, data=tmp_path).stdout == "1\te1\n"
    assert recollect("append", "a", event, data=tmp_path).stdout == "1\te1\tduplicate\n"


def test_a_text_to_append_and_an_empty_list_say_which_command_is_meant(tmp_path: Path) -> None:
    refused = recollect("append", "a", "I love tea", data=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "`recollect add`" in refused.stderr
    append(tmp_path, "a", "I love tea")
    listed = recollect("list", "a", "facts", data=tmp_path)
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "nothing in facts; `recollect settle a`" in listed.stderr


@pytest.mark.parametrize(
    ("guess", "meant"), [("search", "retrieve"), ("remember", "add"), ("delete", "forget or erase"), ("users", "stats")]
)
def test_a_command_of_another_memory_is_answered_with_ours(guess: str, meant: str) -> None:
    refused = CliRunner().invoke(app, [guess, "ann", "tea"])
    assert refused.exit_code == 2
    assert f"Did you mean {meant}?" in refused.output


def test_retrieve_prints_the_context_or_json(tmp_path: Path) -> None:
    append(tmp_path, "a", "the password is swordfish")
    plain = recollect("retrieve", "a", "which password?", data=tmp_path)
    assert "swordfish" in plain.stdout
    assert "degraded: semantic: turned off" in plain.stderr
    answer = orjson.loads(recollect("retrieve", "a", "which password?", "--json", data=tmp_path).stdout)
    assert answer["items"][0]["text"] == "the password is swordfish"
    assert recollect("retrieve", "a", "who won the election?", data=tmp_path).stdout == "Nothing found.\n"


def test_a_namespace_without_events_is_wrong_input(tmp_path: Path) -> None:
    append(tmp_path, "a", "the password is swordfish")
    anchor = str(tmp_path / "anchor.json")
    assert recollect("verify", "--save-anchor", anchor, data=tmp_path).returncode == 0
    for command in (
        ("retrieve", "b", "which password?"),
        ("verify", "--namespace", "b"),
        ("verify", "--namespace", "b", "--anchor", anchor),
    ):
        refused = recollect(*command, data=tmp_path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "namespace: 'b' has no events" in refused.stderr
    # With --also, the namespace may be one whose first event is still to come.
    found = recollect("retrieve", "b", "which password?", "--also", "a", data=tmp_path)
    assert "swordfish" in found.stdout


def test_the_real_model_finds_what_words_do_not(tmp_path: Path) -> None:
    append(tmp_path, "a", "My kitten sleeps all day", "Tax returns are due in May", "The bridge was painted red")
    found = recollect("retrieve", "a", "what about the cat?", "--limit", "1", data=tmp_path, model="all-MiniLM-L6-v2")
    assert "kitten" in found.stdout
    assert found.stderr == ""


def test_export_and_import_give_the_same_log_again(tmp_path: Path) -> None:
    append(tmp_path / "one", "a", "x", "y")
    append(tmp_path / "one", "b", "z")
    lines = recollect("export", data=tmp_path / "one").stdout
    assert [orjson.loads(line)["namespace"] for line in lines.splitlines()] == ["a", "a", "b"]

    file = tmp_path / "all.jsonl"
    assert recollect("export", "--output", str(file), data=tmp_path / "one").returncode == 0
    assert file.read_text() == lines
    for expected in ("3 events imported, 0 there already\n", "0 events imported, 3 there already\n"):
        assert recollect("import", "jsonl", str(file), data=tmp_path / "two").stdout == expected
    copied = recollect("export", data=tmp_path / "two").stdout.splitlines()
    given = ("id", "namespace", "version", "type", "occurred_at", "payload")
    assert [[orjson.loads(line)[name] for name in given] for line in copied] == [
        [orjson.loads(line)[name] for name in given] for line in lines.splitlines()
    ]


def test_verify_is_exit_1_when_an_event_was_altered(tmp_path: Path) -> None:
    append(tmp_path, "a", "x", "y")
    append(tmp_path, "b", "z")
    assert recollect("verify", data=tmp_path).returncode == 0
    thief = apsw.Connection(str(tmp_path / "log.db"))
    thief.execute("DROP TRIGGER events_refuse_update; UPDATE events SET actor = 'bob' WHERE position & 255 = 2")
    thief.close()

    found = recollect("verify", data=tmp_path)
    assert found.returncode == 1
    assert "a: BROKEN" in found.stdout
    assert "version 2: altered" in found.stdout
    assert "b: intact" in found.stdout


def test_verify_of_a_mistyped_folder_says_that_nothing_was_verified(tmp_path: Path) -> None:
    assert "nothing was verified; --data" in recollect("verify", data=tmp_path / "mistyped").stdout


def test_replay_check_is_exit_1_on_a_difference_and_replay_mends_it(tmp_path: Path) -> None:
    append(tmp_path, "a", "x", "y")
    assert "a: equal at version 2" in recollect("replay", "--check", data=tmp_path).stdout
    model = apsw.Connection(str(generation_path(namespace_folder(tmp_path, "a"), 1)))
    model.execute("UPDATE episodes SET text = 'changed' WHERE version = 1")
    model.close()

    found = recollect("replay", "--check", data=tmp_path)
    assert (found.returncode, "a: DIFFERENT" in found.stdout) == (1, True)
    assert recollect("replay", "--namespace", "a", data=tmp_path).stdout == "a: 2 events replayed\n"
    assert recollect("replay", "--check", data=tmp_path).returncode == 0


def test_a_filter_without_its_option_and_a_list_of_events_are_refused_with_what_is_meant(tmp_path: Path) -> None:
    append(tmp_path, "a", "x")
    refused = recollect("list", "a", "facts", "type=task", data=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "a filter is given as --filter type=task" in refused.stderr
    assert "a filter is given as --filter name=value" in recollect("list", "a", "facts", "task", data=tmp_path).stderr
    assert "the log itself is read by export and follow" in recollect("list", "a", "events", data=tmp_path).stderr


def test_one_of_a_thing_is_counted_in_the_singular(tmp_path: Path) -> None:
    append(tmp_path, "a", "x")
    assert recollect("stats", data=tmp_path).stdout.startswith("1 event in 1 namespace\n")
    assert recollect("replay", data=tmp_path).stdout == "a: 1 event replayed\n"
    append(tmp_path, "b", "x", "y")
    assert recollect("stats", data=tmp_path).stdout.startswith("3 events in 2 namespaces\n")


def test_retrieve_answers_as_of_a_version_or_a_time(tmp_path: Path) -> None:
    append(tmp_path, "a", "the password is swordfish")
    recorded_at = orjson.loads(recollect("export", data=tmp_path).stdout)["recorded_at"]
    append(tmp_path, "a", "the password is tadpole")
    assert "tadpole" in recollect("retrieve", "a", "which password?", data=tmp_path).stdout
    for as_of in ("1", recorded_at):
        found = recollect("retrieve", "a", "which password?", "--as-of", as_of, data=tmp_path)
        assert "swordfish" in found.stdout
        assert "tadpole" not in found.stdout
    assert recollect("retrieve", "a", "which password?", "--as-of", "0", data=tmp_path).stdout == "Nothing found.\n"


def test_replay_as_of_builds_the_past_and_says_which_namespaces_have_none(tmp_path: Path) -> None:
    append(tmp_path, "a", "x", "y", "z")
    recorded_at = orjson.loads(recollect("export", data=tmp_path).stdout.splitlines()[-1])["recorded_at"]
    append(tmp_path, "b", "later")

    built = recollect("replay", "--namespace", "a", "--as-of", "2", data=tmp_path).stdout
    assert built.startswith("a: version 2, digest ")
    file = Path(built.rpartition(", ")[2].strip())
    assert apsw.Connection(str(file)).execute("SELECT text FROM episodes").fetchall() == [("x",), ("y",)]
    assert recollect("replay", "--namespace", "a", "--as-of", "2", data=tmp_path).stdout == built
    all_of_them = recollect("replay", "--as-of", "2", data=tmp_path).stdout
    assert all_of_them == built + "b: has no version 2, the newest is 1\n"
    by_time = recollect("replay", "--as-of", recorded_at, data=tmp_path).stdout.splitlines()
    assert by_time[0].startswith("a: version 3, digest ")
    assert by_time[1:] == ["b: nothing at that time"]


def test_a_moment_that_is_none_or_not_there_yet_is_exit_2_and_named(tmp_path: Path) -> None:
    append(tmp_path, "a", "x")
    for as_of in ("yesterday", "2", "2999-01-01T00:00:00Z", "2026-01-01"):
        for command in (("retrieve", "a", "x"), ("replay", "--namespace", "a")):
            refused = recollect(*command, "--as-of", as_of, data=tmp_path)
            assert (refused.returncode, refused.stdout) == (2, "")
            assert "as_of: " in refused.stderr
    assert recollect("replay", "--check", "--as-of", "1", data=tmp_path).returncode == 2


#: Every command with its options and arguments; a command that is added, removed or renamed is changed here too.
COMMANDS = {
    "diff-projections": "before after --namespace --limit --json",
    "follow": "namespace --cursor --types --knowledge --from-start",
    "webhook add": "namespace url --name --types --knowledge --from-start --allow-private",
    "webhook list": "",
    "webhook remove": "name",
    "webhook retry": "name",
    "read": "namespace --again --with --diff --switch",
    "token create": "--name --namespace --scope --days",
    "token list": "--json",
    "token rotate": "id --overlap-hours",
    "token revoke": "id",
    "audit": "--namespace --token --limit --verify --head --json",
    "mcp": "--namespace --connector --speaker",
    "context": "--namespace --stdin prompt --record --budget-tokens --seconds-max",
    "hook show": "agent --namespace --record",
    "hook install": "agent --namespace --record --user",
    "hook remove": "agent --user",
    "serve": "--host --port --processes --workers",
    "worker": "",
    "scheduler": "",
    "doctor": "--model --json",
    "append": "namespace event",
    "add": "namespace messages --session --occurred-at --metadata",
    "list": "namespace name --filter --after --limit --as-of",
    "get": "namespace memory_id --as-of",
    "update": "namespace memory_id text --set",
    "pin": "namespace memory_id --reason",
    "unpin": "namespace memory_id --reason",
    "end": "namespace memory_id --ended-at --reason",
    "forget": "namespace memory_id --reason",
    "separate": "namespace memory_id alias --reason",
    "undo": "namespace event_id --reason",
    "retrieve": "namespace query --limit --budget-tokens --as-of --also --speaker --timezone --format --explain "
    "--no-store --json --server",
    "settle": "namespace --timeout-seconds --server",
    "export": "--namespace --output --subject --format --force",
    "quarantine": "namespace --status --after",
    "review": "namespace memory_id decision --reason",
    "erase": "namespace --everything --subject --session --event --dry-run --reason --output --yes",
    "readmit": "namespace --subject",
    "receipts": "namespace",
    "verify-receipt": "file --public-key --previous --log",
    "embed": "--model --namespace --undo",
    "replay": "--namespace --check --park --as-of --processes",
    "compact": "--namespace --now --dry-run",
    "verify": "folder --namespace --processes --anchor --save-anchor",
    "backup": "folder --keys",
    "restore": "folder --keys --without-keys",
    "archive": "--namespace --min-events --prune",
    "stats": "--json",
    "sql": "query --format --output --width",
    "import file": "path --format --namespace --user --since --limit --dry-run --delete-missing --json",
    "import jsonl": "file --namespace",
    "jobs show": "letter_id",
    "jobs requeue": "letter_id --all",
    "jobs retry": "namespace",
    "jobs skip": "namespace version --reason",
    "init": "--new-log",
}


def commands(command: Any, *path: str) -> Iterator[tuple[str, str]]:
    """Yield every command below `command`, with its options and arguments."""
    for name, child in getattr(command, "commands", {}).items():
        if hasattr(child, "commands"):
            yield from commands(child, *path, name)
        else:
            options = [parameter.opts[0] for parameter in child.params]
            yield " ".join([*path, name]), " ".join(option for option in options if option != "--data")


def test_the_command_line_has_the_commands_that_are_written_down() -> None:
    assert dict(commands(typer.main.get_command(app))) == COMMANDS


def test_the_version_is_printed_and_nothing_is_opened(tmp_path: Path) -> None:
    printed = recollect("--version", data=tmp_path / "none")
    assert (printed.returncode, printed.stdout) == (0, f"recollect {version('recollect')}\n")
    assert not (tmp_path / "none").exists()


def test_help_names_every_command(tmp_path: Path) -> None:
    groups: dict[str, set[str]] = {}
    for command in COMMANDS:
        first, _, second = command.partition(" ")
        groups.setdefault("", set()).add(first)
        if second:
            groups.setdefault(first, set()).add(second)
    for group, names in groups.items():
        shown = recollect(*group.split(), "--help", data=tmp_path)
        assert shown.returncode == 0, shown.stderr
        assert set(re.findall(r"^│ (\w[\w-]*) ", shown.stdout, re.MULTILINE)) == names


def test_help_has_the_commands_in_groups_without_loading_what_they_use() -> None:
    code = "import sys; from recollect.api.cli.main import app; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert {"pydantic", "rich", "numpy", "fastapi", "apsw", "recollect.api.settings"}.isdisjoint(loaded)
    panels = re.findall(r"^╭─ ([\w ]+?) ─", CliRunner().invoke(app, ["--help"]).stdout, re.MULTILINE)
    assert panels[:4] == ["Options", "Memory", "Knowledge", "Moving in and out"]
    assert panels[4:] == ["Operating", "The log and its copies", "Privacy and access"]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_names_its_options_and_the_data_folder(tmp_path: Path, command: str) -> None:
    shown = recollect(*command.split(), "--help", data=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for parameter in ("--data", *COMMANDS[command].split()):
        assert parameter.lower() in shown.stdout.lower()
    assert list(tmp_path.iterdir()) == []


def test_a_process_of_the_command_reads_its_streams_and_exits_with_the_code(tmp_path: Path) -> None:
    event = orjson.dumps(message("x", id="e1"))
    assert recollect_process("append", "a", data=tmp_path, stdin=event).stdout == "1\te1\n"
    refused = recollect_process("append", "a", "{}", data=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("recollect: ")
    found = subprocess.run(
        [Path(sys.executable).with_name("recollect"), "--data", str(tmp_path), "export"],
        check=False,
        capture_output=True,
    )
    assert orjson.loads(found.stdout)["id"] == "e1"


@pytest.mark.parametrize("group", ["jobs", "import"])
def test_a_group_of_commands_takes_the_data_folder_after_its_name_too(tmp_path: Path, group: str) -> None:
    assert "--data" in recollect(group, "--help", data=tmp_path).stdout


def test_the_data_folder_after_the_command_wins_over_the_one_before_it(tmp_path: Path) -> None:
    append(tmp_path / "one", "a", "from one")
    append(tmp_path / "two", "a", "from two")
    for command, after in ((("export",), True), (("retrieve", "a", "from"), True), (("export",), False)):
        options = ("--data", str(tmp_path / "two")) if after else ()
        shown = recollect(*command, *options, data=tmp_path / "one").stdout
        assert ("from two" if after else "from one") in shown
    shown = recollect("jobs", "--data", str(tmp_path / "two"), "show", "nobody", data=tmp_path / "new")
    assert "no dead letter" in shown.stderr
    assert not (tmp_path / "new").exists()


def test_the_environment_names_the_data_folder_when_the_command_line_does_not(tmp_path: Path) -> None:
    append(tmp_path / "one", "a", "from one")
    append(tmp_path / "two", "a", "from two")
    environment = {"RECOLLECT_DATA": str(tmp_path / "one"), "RECOLLECT_EMBEDDING_MODEL": "none"}
    file = tmp_path / "lines.jsonl"
    for options, text in (((), "from one"), (("--data", str(tmp_path / "two")), "from two")):
        CliRunner().invoke(app, ["export", "--output", str(file), *options], env=environment)
        assert text in file.read_text()
