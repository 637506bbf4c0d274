from __future__ import annotations

import json
import shutil
from pathlib import Path

import duckdb
import orjson
import pytest
from support.command_line import recollect
from support.events import message

from recollect import Recollect
from recollect.api.analytics.tables import MEMORY_TABLES
from recollect.api.retrieval.answer.trace_store import TraceStore, trace_files
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.settings import load_settings


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with a sealed and pruned part, a tail, and traces of two retrievals."""
    folder = tmp_path_factory.mktemp("built")
    settings = load_settings(data=folder, embedding_model="none")
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("ann", [message(f"I like tea number {n}", occurred_at="2026-03-01T10:00:00Z") for n in range(30)])
        memory.append("bob", [message("It's 'quoted' 東京", id="b1")])
    assert recollect("archive", "--prune", "--min-events", "10", data=folder).returncode == 0
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("ann", message("I moved to Lisbon", actor="ann", occurred_at="2026-03-02T10:00:00Z"))
        memory.retrieve("ann", "tea?")
        memory.retrieve("ann", "half a pair \ud800")
    return folder


@pytest.fixture
def data(built: Path, tmp_path: Path) -> Path:
    """A copy of `built`."""
    return shutil.copytree(built, tmp_path / "data")


def ask(data: Path, query: str) -> list[dict[str, object]]:
    done = recollect("sql", query, "--format", "json", data=data)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_events_are_segments_and_tail_together(data: Path) -> None:
    assert ask(data, "SELECT namespace, count(*) AS n, max(version) AS v FROM events GROUP BY ALL ORDER BY ALL") == [
        {"namespace": "ann", "n": 31, "v": 31},
        {"namespace": "bob", "n": 1, "v": 1},
    ]
    rows = ask(data, "SELECT payload->>'$.text' AS text, occurred_at FROM events WHERE version > 29 ORDER BY version")
    assert [row["text"] for row in rows] == ["I like tea number 29", "I moved to Lisbon"]
    assert rows[1]["occurred_at"] == "2026-03-02T10:00:00"
    assert ask(data, "SELECT payload->>'$.text' AS t FROM events WHERE id = 'b1'") == [{"t": "It's 'quoted' 東京"}]


def test_episodes_and_traces_can_be_joined(data: Path) -> None:
    found = ask(
        data,
        "SELECT t.query, e.text FROM traces t, unnest(t.items::JSON[]) AS i(item) "
        "JOIN episodes e ON e.id = item->>'$.id' WHERE t.query = 'tea?'",
    )
    assert len(found) == 10
    assert all(row["query"] == "tea?" and "I like tea" in str(row["text"]) for row in found)
    assert ask(data, "SELECT tier, count(*) AS n FROM episodes GROUP BY tier") == [{"tier": "raw", "n": 32}]
    assert ask(data, "SELECT count(*) AS n FROM traces WHERE latency_ms > 0 AND namespace = 'ann'") == [{"n": 2}]


def test_what_is_known_can_be_queried_too(data: Path) -> None:
    assert {"facts", "entities", "sessions", "events"} <= {str(row["name"]) for row in ask(data, "SHOW TABLES")}
    assert ask(data, "SELECT count(*) AS n FROM facts") == [{"n": 0}]
    stated = {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "lives in", "object": "Lisbon"}}
    with Recollect(settings=load_settings(data=data, embedding_model="none"), workers=False) as memory:
        memory.append("ann", {**stated, "occurred_at": "2026-03-03T10:00:00Z"})
    facts = ask(
        data, "SELECT namespace, object, status, valid_until, updated_at FROM facts WHERE predicate = 'lives in'"
    )
    assert [(fact["namespace"], fact["object"], fact["status"], fact["valid_until"]) for fact in facts] == [
        ("ann", "Lisbon", "active", None)
    ]
    every_table = " UNION ALL ".join(f"SELECT count(*) AS n FROM {table}" for table in MEMORY_TABLES)
    assert len(ask(data, every_table)) == len(MEMORY_TABLES)


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE events",
        "SELECT 1; SELECT 2",
        "COPY (SELECT 1) TO '/tmp/out.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "ATTACH '/tmp/x.db'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELEC 1",
        "SELECT * FROM nothing",
        "",
    ],
)
def test_whatever_is_no_question_is_refused_in_one_line(data: Path, query: str) -> None:
    for output in ((), ("--format", "parquet", "--output", str(data / "out.parquet"))):
        done = recollect("sql", query, *output, data=data)
        assert done.returncode == 2, done.stdout
        assert done.stderr.startswith("recollect: sql: ")
        assert len(done.stderr.strip().splitlines()) == 1
    assert not (data / "out.parquet").exists()


def test_answers_come_as_table_csv_and_parquet(data: Path) -> None:
    query = "SELECT namespace, version, occurred_at, actor FROM events WHERE version > 30"
    assert "2026-03-02 10:00:00" in recollect("sql", query, data=data).stdout
    assert recollect("sql", query, "--format", "csv", data=data).stdout.splitlines() == [
        "namespace,version,occurred_at,actor",
        "ann,31,2026-03-02 10:00:00,ann",
    ]
    # No cell is a formula of a spreadsheet; numbers stay.
    cells = recollect("sql", "SELECT '=1+1' AS a, '@x' AS b, -5 AS c, 'a=b' AS d", "--format", "csv", data=data)
    assert cells.stdout.splitlines()[1] == "'=1+1,'@x,-5,a=b"
    file = data / "it's.parquet"
    done = recollect("sql", f"{query};", "--format", "parquet", "--output", str(file), data=data)
    assert done.returncode == 0, done.stderr
    assert duckdb.read_parquet(str(file)).fetchall()[0][:2] == ("ann", 31)
    assert recollect("sql", query, "--format", "parquet", data=data).returncode == 2
    assert recollect("sql", query, "--format", "yaml", data=data).returncode == 2


def test_a_table_has_a_line_for_each_row_and_no_longer_one(data: Path) -> None:
    few = recollect(
        "sql", "SELECT id, type, payload FROM events LIMIT 2", "--width", "60", data=data
    ).stdout.splitlines()
    assert max(map(len, few)) == 60
    # A border, the names, a line, two rows, a border.
    assert len(few) == 6
    many = recollect("sql", "SELECT * FROM events LIMIT 2", "--width", "80", data=data).stdout.splitlines()
    assert max(map(len, many)) <= 80
    assert [line for line in many if line.startswith("-- row")] == ["-- row 1", "-- row 2"]
    columns = [line.split()[0] for line in many if not line.startswith("--")]
    assert columns[: len(columns) // 2] == columns[len(columns) // 2 :]
    assert {"namespace", "version", "type", "payload"} <= set(columns)


def test_stats_count_what_is_there(data: Path) -> None:
    done = recollect("stats", "--json", data=data)
    assert done.returncode == 0, done.stderr
    found = orjson.loads(done.stdout)
    assert (found["events"], found["namespaces"]) == (32, 2)
    assert found["by_type"] == [{"type": "message.added", "events": 32}]
    assert {"day": "2026-03-01", "events": 30} in found["by_day"]
    assert found["by_namespace"][0]["namespace"] == "ann"
    assert found["tiers"][0]["episodes"] == 32
    assert found["knowledge"][0] == {"kind": "facts", "active": 0, "others": 0}
    assert found["lag"] == [{"namespace": "bob", "behind": 1, "problem": None}]
    assert found["sizes"]["sealed_events"] == 30
    assert found["sizes"]["sealed_bytes_an_event"] > 0
    text = recollect("stats", data=data).stdout
    assert "32 events in 2 namespaces" in text
    assert "none" in text


def test_an_empty_memory_has_empty_tables(tmp_path: Path) -> None:
    assert ask(tmp_path, "SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM episodes) AS n") == [{"n": 0}]
    assert ask(tmp_path, "SELECT * FROM traces") == []
    assert "0 events" in recollect("stats", data=tmp_path).stdout


def test_traces_stay_within_their_bound(tmp_path: Path) -> None:
    settings = load_settings(data=tmp_path, embedding_model="none")
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("a", message("tea " * 100))
        result = memory.retrieve("a", "tea")
    traces = TraceStore(tmp_path / "bounded", bytes_max=40_000)
    for number in range(400):
        traces.add("a", RetrieveRequest(query=f"tea {number}"), result)
        if number % 5 == 0:
            traces.close()
            traces = TraceStore(tmp_path / "bounded", bytes_max=40_000)
    traces.close()
    files = trace_files(tmp_path / "bounded")
    assert sum(file.stat().st_size for file in files) <= 40_000
    assert orjson.loads(files[-1].read_bytes().splitlines()[-1])["query"] == "tea 399"


def test_traces_that_cannot_be_written_cost_no_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "traces").write_text("a file where the folder should be")
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        memory.append("a", message("I like tea"))
        assert memory.retrieve("a", "tea").items
    assert "traces cannot be written" in caplog.text
    assert (tmp_path / "traces").is_file()


def test_a_setting_keeps_no_traces(tmp_path: Path) -> None:
    settings = load_settings(data=tmp_path, embedding_model="none", traces_bytes_max=0)
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("a", message("I like tea"))
        memory.retrieve("a", "tea")
    assert not (tmp_path / "traces").exists()
