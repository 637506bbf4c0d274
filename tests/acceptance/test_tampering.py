"""Random changes to the stored log, made behind its back: every one is found.

`pytest tests/acceptance/test_tampering.py --seed 2 -s` makes another thousand.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, Literal

import apsw
import psycopg
import pytest
from support.postgres import new_database
from support.tampering import COLUMNS, Key, RawText, Stored, fill, tamper

from recollect.events.backends.log import EventLog, each_head
from recollect.events.backends.postgres_log import PostgresLog
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.envelope import Head
from recollect.events.errors import StorageError
from recollect.events.integrity.verify import verify

_SQLITE_CHANGES = 1_000
_SQLITE_BYTES = 200
_POSTGRES_CHANGES = 100

Found = Literal["verify", "error", "anchor"]


class Thief(ABC):
    """A foreign connection, with the triggers and constraints out of its way."""

    def __init__(self, heads: list[Head]) -> None:
        self.before = self.read(heads)

    @abstractmethod
    def read(self, heads: list[Head]) -> Stored: ...

    @abstractmethod
    def remove(self, keys: Sequence[Key]) -> None: ...

    @abstractmethod
    def put(self, key: Key, event: dict[str, Any]) -> None: ...

    @abstractmethod
    def set_head(self, namespace: str, head: tuple[int, bytes] | None) -> None: ...

    def change(self, old: Stored, new: Stored) -> None:
        """Make `new` out of `old`."""
        self.remove([key for key, event in old.events.items() if new.events.get(key) != event])
        for key, event in new.events.items():
            if old.events.get(key) != event:
                self.put(key, event)
        for namespace in old.heads.keys() | new.heads.keys():
            if old.heads.get(namespace) != new.heads.get(namespace):
                self.set_head(namespace, new.heads.get(namespace))


class SqliteThief(Thief):
    def __init__(self, path: Path, log: EventLog) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.pragma("synchronous", "OFF")
        for name in ("TRIGGER events_refuse_update", "TRIGGER events_refuse_delete", "INDEX events_by_id"):
            self._connection.execute(f"DROP {name}")
        heads = self._connection.execute("SELECT namespace, key, recorded_at_us FROM heads").fetchall()
        self._keys: dict[str, int] = {str(name): int(str(key)) for name, key, _ in heads}
        super().__init__([*each_head(log)])

    def read(self, heads: list[Head]) -> Stored:
        stored = Stored(heads={head.namespace: (head.version, head.hash) for head in heads})
        names = {key: name for name, key in self._keys.items()}
        for position, *values in self._connection.execute(f"SELECT position, {', '.join(COLUMNS)} FROM events"):
            place = int(str(position))
            stored.events[names[place >> 36], place & (1 << 36) - 1] = dict(zip(COLUMNS, values, strict=True))
        return stored

    def remove(self, keys: Sequence[Key]) -> None:
        positions = [(self._position(key),) for key in keys]
        self._connection.executemany("DELETE FROM events WHERE position = ?", positions)

    def put(self, key: Key, event: dict[str, Any]) -> None:
        marks = ", ".join("CAST(? AS TEXT)" if isinstance(value, RawText) else "?" for value in event.values())
        values = [value.content if isinstance(value, RawText) else value for value in event.values()]
        columns = ", ".join(COLUMNS)
        statement = f"INSERT INTO events (position, {columns}) VALUES (?, {marks})"
        self._connection.execute(statement, (self._position(key), *values))

    def set_head(self, namespace: str, head: tuple[int, bytes] | None) -> None:
        self._connection.execute("DELETE FROM heads WHERE namespace = ?", (namespace,))
        if head is not None:
            values = (self._keys[namespace], namespace, *head)
            columns = "key, namespace, version, hash, recorded_at_us"
            self._connection.execute(f"INSERT INTO heads ({columns}) VALUES (?, ?, ?, ?, 0)", values)

    def close(self) -> None:
        self._connection.close()

    def _position(self, key: Key) -> int:
        return (self._keys[key[0]] << 36) + key[1]


class PostgresThief(Thief):
    def __init__(self, url: str, log: EventLog) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("SET session_replication_role = replica")
        self._connection.execute("ALTER TABLE recollect.events DROP CONSTRAINT events_namespace_id_key")
        super().__init__([*each_head(log)])

    def read(self, heads: list[Head]) -> Stored:
        stored = Stored(heads={head.namespace: (head.version, head.hash) for head in heads})
        query = f"SELECT namespace, version, {', '.join(COLUMNS)} FROM recollect.events"
        for namespace, version, *values in self._connection.execute(query.encode()):
            stored.events[namespace, version] = dict(zip(COLUMNS, values, strict=True))
        return stored

    def remove(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self._connection.execute("DELETE FROM recollect.events WHERE namespace = %s AND version = %s", key)

    def put(self, key: Key, event: dict[str, Any]) -> None:
        marks = ", ".join(["%s"] * (2 + len(COLUMNS)))
        statement = f"INSERT INTO recollect.events (namespace, version, {', '.join(COLUMNS)}) VALUES ({marks})"
        self._connection.execute(statement.encode(), (*key, *event.values()))

    def set_head(self, namespace: str, head: tuple[int, bytes] | None) -> None:
        self._connection.execute("DELETE FROM recollect.heads WHERE namespace = %s", (namespace,))
        if head is not None:
            self._connection.execute("INSERT INTO recollect.heads VALUES (%s, %s, %s, 0)", (namespace, *head))

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def sqlite_log(tmp_path: Path, seed: int) -> Generator[SqliteLog]:
    log = SqliteLog(tmp_path / "log.db")
    fill(log, random.Random(seed))
    yield log
    log.close()


@pytest.fixture
def postgres_log(postgres_url: str, seed: int) -> Generator[tuple[str, PostgresLog]]:
    url = new_database(postgres_url)
    log = PostgresLog(url)
    fill(log, random.Random(seed))
    yield url, log
    log.close()


@pytest.mark.long
def test_a_thousand_changes_to_the_rows_in_sqlite_are_all_found(
    tmp_path: Path, sqlite_log: SqliteLog, seed: int
) -> None:
    thief = SqliteThief(tmp_path / "log.db", sqlite_log)
    assert_all_found(sqlite_log, thief, random.Random(seed), _SQLITE_CHANGES, place="log.db")
    thief.close()


def test_changes_to_the_rows_in_postgresql_are_all_found(postgres_log: tuple[str, PostgresLog], seed: int) -> None:
    url, log = postgres_log
    thief = PostgresThief(url, log)
    assert_all_found(log, thief, random.Random(seed), _POSTGRES_CHANGES, place="postgresql://")
    thief.close()


def assert_all_found(log: EventLog, thief: Thief, chance: random.Random, count: int, *, place: str) -> None:
    anchors = {head.namespace: head for head in each_head(log)}
    assert found(log, anchors, place) is None
    kinds: Counter[tuple[str, Found]] = Counter()
    for number in range(count):
        change = tamper(thief.before, chance, raw_text=isinstance(thief, SqliteThief))
        thief.change(thief.before, change.stored)
        how = found(log, anchors, place)
        assert how is not None, f"change {number}, {change.what}, was not found"
        assert change.consistent or how != "anchor", f"change {number}, {change.what}, was found by the anchor alone"
        kinds[change.what, how] += 1
        thief.change(change.stored, thief.before)
    assert found(log, anchors, place) is None
    print(f"{count} changes, all found:")
    for (what, how), times in sorted(kinds.items()):
        print(f"  {times:4} {what}: {how}")


def found(log: EventLog, anchors: dict[str, Head], place: str) -> Found | None:
    """Return how a change is detected: by verify, an error that names the place, or a head hash kept elsewhere."""
    try:
        names = {head.namespace for head in each_head(log)}
        verdicts = [verify(log, namespace) for namespace in sorted(names | anchors.keys())]
    except StorageError as error:
        if place not in str(error):
            raise
        return "error"
    if not all(verdict.is_intact for verdict in verdicts):
        return "verify"
    if {verdict.namespace: (verdict.version, verdict.hash) for verdict in verdicts} != {
        name: (anchor.version, anchor.hash) for name, anchor in anchors.items()
    }:
        return "anchor"
    return None


def test_any_flipped_bit_of_the_sqlite_file_is_found_or_changes_no_stored_value(tmp_path: Path, seed: int) -> None:
    log = SqliteLog(tmp_path / "log.db")
    fill(log, random.Random(seed))
    anchors = {head.namespace: head for head in each_head(log)}
    log.close()
    content = (tmp_path / "log.db").read_bytes()
    values = dump(tmp_path / "log.db")
    chance = random.Random(seed)
    kinds: Counter[str] = Counter()
    for number in range(_SQLITE_BYTES):
        at, bit = chance.randrange(len(content)), chance.randrange(8)
        path = tmp_path / f"{number}.db"
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        how = found_in_file(path, anchors)
        if how is None:
            assert dump(path) == values, f"bit {bit} of byte {at} changed a value, and nobody noticed"
        kinds[how or without_effect(path)] += 1
        for left in tmp_path.glob(f"{number}.db*"):
            left.unlink()
    print(f"{_SQLITE_BYTES} flipped bits of {len(content)} bytes: {dict(kinds)}")
    assert kinds["verify"] > _SQLITE_BYTES / 4


def found_in_file(path: Path, anchors: dict[str, Head]) -> Found | None:
    try:
        log = SqliteLog(path)
    except StorageError as error:
        if path.name not in str(error):
            raise
        return "error"
    try:
        return found(log, anchors, path.name)
    finally:
        log.close()


def without_effect(path: Path) -> str:
    """Return what was hit: the index of ids, which holds no data of its own, or unused space."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        whole = connection.pragma("integrity_check") == "ok"
    except apsw.CorruptError:
        whole = False
    finally:
        connection.close()
    return "no value changed" if whole else "no value changed, but SQLite's own structures"


def dump(path: Path) -> list[tuple[Any, ...]]:
    """Return every stored value of events and heads, by the tables themselves and not by an index."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        queries = ("SELECT * FROM events NOT INDEXED ORDER BY position", "SELECT key, version, hash FROM heads")
        return [tuple(row) for query in queries for row in connection.execute(query)]
    finally:
        connection.close()
