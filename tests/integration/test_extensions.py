"""Projections and jobs of other packages: found by entry points, up to date, replayed, parked, reset by erasures."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.command_line import recollect as command
from support.events import message
from support.waiting import eventually

import recollect
from recollect import Recollect
from recollect.api.operations.dead_letters import requeue_dead_letters
from recollect.api.settings import load_settings
from recollect.events.envelope import now_us
from recollect.events.errors import InvalidInput
from recollect.events.storage.namespace_folder import folder_name
from recollect.jobs.following import consumers
from recollect.jobs.following.extensions import installed_jobs, installed_projections
from recollect.jobs.queue.night_processes import run_job
from recollect.jobs.queue.registry import scheduled_jobs

EXAMPLE = Path(__file__).parents[2] / "ops" / "examples" / "own_read_models"

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Install]:
    """Install a package with one module, given its name and its source, as pip does."""
    site = tmp_path / "site"

    def install(name: str, source: str) -> None:
        info = site / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        groups = "\n".join(f"[recollect.{group}]\n{name} = {name}" for group in ("projections", "jobs"))
        (info / "entry_points.txt").write_text(groups)
        (site / f"{name}.py").write_text(source)
        installed_projections.cache_clear()
        installed_jobs.cache_clear()

    monkeypatch.syspath_prepend(str(site))  # pyright: ignore[reportUnknownMemberType]
    monkeypatch.setenv("OWN_READ_MODELS", str(tmp_path))
    before = set(sys.modules)
    yield install
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(site)):
            del sys.modules[name]
    installed_projections.cache_clear()
    installed_jobs.cache_clear()


#: A projection that keeps what it gets, in order, and fails at a text.
COUNTING = """
import recollect
seen, broken = [], ["poison"]

def clear(namespace):
    seen[:] = [item for item in seen if item[0] != namespace]

@recollect.projection("texts", types=["message.added"], reset=clear)
def texts(namespace, events):
    for event in events:
        text = event["payload"]["text"]
        if text in broken:
            raise ValueError("no")
        seen.append((namespace, event["version"], text))
"""


def seen() -> list[tuple[str, int, str]]:
    # A worker may be importing the module.
    return getattr(sys.modules.get("counting"), "seen", [])


def memory_of(folder: Path, *, workers: bool = True) -> Recollect:
    return Recollect(settings=load_settings(data=folder, embedding_model="none", sweep_seconds=0.3), workers=workers)


def rows(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows of the example's database; none until it has both tables."""
    with closing(sqlite3.connect(folder / "own.db")) as database:
        tables = database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table'").fetchall()
        return database.execute(statement).fetchall() if len(tables) >= 2 else []


def test_the_example_keeps_its_read_models_up_to_date_and_a_replay_makes_them_again(
    tmp_path: Path, install: Install
) -> None:
    install("own_read_models", (EXAMPLE / "own_read_models.py").read_text())
    contacts = "SELECT name, field, value FROM contacts WHERE field <> 'says' ORDER BY field"
    data = tmp_path / "data"
    with memory_of(data) as memory:
        memory.append("ann", message("I am so happy. I live in Porto.", name="Ann"))
        eventually(lambda: ("Ann", "lives in", "Porto") in rows(tmp_path, contacts))
        memory.append("ann", message("I moved to Graz, and I am tired.", name="Ann"))
        eventually(lambda: rows(tmp_path, contacts) == [("Ann", "lives in", "Graz")])
        eventually(lambda: rows(tmp_path, "SELECT mood FROM moods ORDER BY position") == [(1,), (-1,)])
        head = memory.parts.log.head("ann")
        assert run_job(memory.parts.job_context, "own contacts-csv", head, now_us()).error is None
    assert "Ann,lives in,Graz" in (tmp_path / "contacts.csv").read_text()
    moods = "SELECT * FROM moods"
    before = rows(tmp_path, moods), rows(tmp_path, contacts)
    with closing(sqlite3.connect(tmp_path / "own.db")) as database, database:
        database.execute("DELETE FROM moods")
        database.execute("INSERT INTO contacts VALUES ('ann', 'x', 'nobody', 'is', 'false')")
    done = command("replay", data=data)
    assert (done.returncode, done.stdout.count("replayed")) == (0, 3), done.stdout
    assert (rows(tmp_path, moods), rows(tmp_path, contacts)) == before


def test_a_projection_catches_up_with_what_was_there_and_goes_on_after_a_restart(
    tmp_path: Path, install: Install
) -> None:
    install("counting", COUNTING)
    with memory_of(tmp_path, workers=False) as memory:
        memory.append("a", [message(f"text {number}") for number in range(250)])
    with memory_of(tmp_path) as memory:
        eventually(lambda: len(seen()) == 250)
    with memory_of(tmp_path) as memory:
        memory.append("a", message("one more"))
        eventually(lambda: len(seen()) == 251)
    # Workers may have appended events of their own before the last one.
    assert [text for _, _, text in seen()] == [*(f"text {number}" for number in range(250)), "one more"]


def test_a_projection_that_fails_is_parked_and_neither_memory_nor_other_namespaces_stop(
    tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "_PAUSE_SECONDS", 0.01)
    install("counting", COUNTING)
    with memory_of(tmp_path) as memory:
        memory.append("a", message("poison"))
        eventually(lambda: len(memory.parts.run_store.dead_letters()) == 1)
        memory.append("a", message("I live in Porto.", name="Ann"))
        memory.append("b", message("fine"))
        eventually(lambda: seen() == [("b", 1, "fine")])
        assert memory.settle("a").is_settled
        assert memory.facts("a")["items"]
        [letter] = memory.parts.run_store.dead_letters()
        assert (letter.arguments, "ValueError: no" in letter.error) == (("projection texts", "a", 1), True)
        failed = requeue_dead_letters(memory.parts, letter.id)
        assert (failed["requeued"], len(failed["failed"])) == (0, 1)
        sys.modules["counting"].broken.clear()
        assert requeue_dead_letters(memory.parts, letter.id) == {"requeued": 1, "failed": []}
        eventually(lambda: [text for name, _, text in seen() if name == "a"] == ["poison", "I live in Porto."])
        assert memory.parts.run_store.dead_letters() == []


def test_an_erasure_resets_a_projection_also_one_that_is_parked(
    tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "_PAUSE_SECONDS", 0.01)
    install("counting", COUNTING)
    with memory_of(tmp_path) as memory:
        [first] = memory.append("a", message("secret"))
        eventually(lambda: len(seen()) == 1)
        [poison] = memory.append("a", message("poison"))
        eventually(lambda: len(memory.parts.run_store.dead_letters()) == 1)
        memory.append("a", message("rest"))
        memory.erase("a", event_ids=[first.id, poison.id])
        eventually(lambda: seen() == [("a", 3, "rest")])


def test_a_projection_gets_the_same_items_again_after_a_crash(tmp_path: Path, install: Install) -> None:
    install("counting", COUNTING)
    with memory_of(tmp_path, workers=False) as memory:
        memory.append("a", [message("x"), message("y")])
        [projection] = installed_projections().values()
        parts = memory.parts
        runs = consumers.ConsumerRuns(parts.log, parts.read_models, parts.run_store, parts.job_context.stop)

        def die(namespace: str, events: Sequence[Mapping[str, Any]]) -> None:
            projection.apply(namespace, events)
            raise KeyboardInterrupt

        consumer = consumers.consumer_of(projection)
        dying = consumers.Consumer(
            name=consumer.name,
            handle=die,
            reset=consumer.reset,
            types=consumer.types,
            knowledge=False,
            attempts_max=4,
        )
        with pytest.raises(KeyboardInterrupt):
            runs.run(dying, "a", seconds_max=1)
        cursor = parts.run_store.cursor(consumer.name, folder_name("a"))
        assert cursor is not None
        # A crash counts as a failure, so that items that end the process are not tried for ever.
        assert (cursor.position, cursor.failures) == (0, 1)
        assert not runs.run(consumer, "a", seconds_max=1, again=True)
        assert [version for _, version, _ in seen()] == [1, 2, 1, 2]


def test_a_module_that_cannot_be_loaded_stops_no_other(install: Install) -> None:
    install("broken", "raise ImportError('no')")
    install("counting", COUNTING)
    assert list(installed_projections()) == ["texts"]


JOB = """
import recollect

@recollect.job("digest", cron="0 4 * * *")
def digest(run):
    count = sum(1 for _ in run.follow(types=["message.added"]))
    text = f"{count} messages, the key is sk-ant-api03-" + "a1B2" * 20
    run.append([{"type": "document.added", "id": f"digest-{run.namespace}-{count}",
                 "payload": {"document_id": "digest", "title": "Digest", "text": text}}])

@recollect.job("failing")
def failing(run):
    raise RuntimeError("no")
"""


def test_a_job_reads_and_appends_and_its_error_is_that_of_its_run(tmp_path: Path, install: Install) -> None:
    install("digests", JOB)
    assert scheduled_jobs()["own digest"].cron == "0 4 * * *"
    with memory_of(tmp_path, workers=False) as memory:
        memory.append("a", [message("x"), message("y")])
        context, head = memory.parts.job_context, memory.parts.log.head("a")
        assert [run_job(context, "own digest", head, now_us()).events for _ in range(2)] == [1, 0]
        text = memory.parts.log.read("a", after=2)[0].data()["text"]
        assert text.startswith("2 messages")
        assert "a1B2" not in text
        assert run_job(context, "own failing", head, now_us()).error == "the job failing failed: RuntimeError: no"


@pytest.mark.parametrize("name", ["", "Mood", "a b", "x" * 41])
def test_names_that_fit_no_key_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        recollect.projection(name, reset=lambda _: None)
    with pytest.raises(InvalidInput):
        recollect.job(name)
