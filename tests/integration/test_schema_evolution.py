"""What earlier releases wrote is read for ever. `tests/released` holds their files; a release adds its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from support.events import PAYLOADS, histories, message_draft
from support.read_models import connection_of

from recollect.events import upcast
from recollect.events.backends.log import each_head
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.catalogue import EVENT_CLASSES
from recollect.events.envelope import EventDraft, RecordedEvent
from recollect.events.errors import NewerFile
from recollect.events.integrity.verify import verify
from recollect.events.storage.database import connect
from recollect.events.validation import draft
from recollect.projections.read_models.layout import generation_path, generations, namespace_folder
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.schema.row_differences import row_differences
from recollect.projections.schema.schema import SCHEMA_VERSION

RELEASED = Path(__file__).parent.parent / "released"
LOGS = sorted(RELEASED.glob("log-*.db"))


@pytest.fixture(params=LOGS, ids=lambda path: path.stem)
def released(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a log that an earlier release wrote."""
    path = tmp_path / "log.db"
    shutil.copy(request.param, path)
    return path


def events_of(log: SqliteLog) -> list[RecordedEvent]:
    return [event for head in each_head(log) for event in log.read(head.namespace)]


def test_a_log_of_an_earlier_release_is_migrated_and_keeps_every_byte_of_its_events(released: Path) -> None:
    columns = "position, id, type, schema_version, occurred_at_us, recorded_at_us, session_id, actor, causation_id"
    content = f"SELECT {columns}, correlation_id, encoding, payload, leaf, hash FROM events ORDER BY position"
    old = connect(released, readonly=True)
    before = old.execute(content).fetchall()
    old.close()

    log = SqliteLog(released)
    new = connect(released, readonly=True)
    assert new.execute(content).fetchall() == before
    new.close()
    assert all(verify(log, head.namespace).is_intact for head in each_head(log))
    [appended] = log.append("ann", [message_draft("after the migration")])
    assert appended.version == log.head("ann").version
    log.close()


def test_an_id_that_an_earlier_release_recorded_is_known(released: Path) -> None:
    log = SqliteLog(released)
    event = log.read("ann")[0]
    [again] = log.append("ann", [event_draft(event)])
    assert (again.version, again.duplicate) == (event.version, True)
    log.close()


def event_draft(event: RecordedEvent) -> Any:
    fields = event.as_json()
    return draft({name: fields[name] for name in fields.keys() - {"namespace", "version", "recorded_at", "hash"}})


def test_every_released_version_of_every_event_fits_todays_catalogue_and_folds(released: Path, tmp_path: Path) -> None:
    log = SqliteLog(released)
    for event in events_of(log):
        assert event_draft(event).type == event.type
    models = ReadModels(tmp_path / "data", log)
    for head in each_head(log):
        assert models.catch_up(head.namespace).behind == 0
        assert models.check(head.namespace).is_equal
    models.close()
    log.close()


def test_every_released_type_is_still_in_the_catalogue() -> None:
    for path in LOGS:
        connection = apsw.Connection(f"file:{path}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        types = {row[0] for row in connection.execute("SELECT DISTINCT type FROM events")}
        connection.close()
        assert types <= EVENT_CLASSES.keys()
        assert types == PAYLOADS.keys() or path.stem != LOGS[-1].stem, "a new type belongs into a new released log"


def test_events_are_recorded_with_the_newest_schema_version_of_their_type() -> None:
    for name, event_class in EVENT_CLASSES.items():
        assert event_class.model_fields["schema_version"].default == upcast.newest_version(name)


def test_upcasters_run_in_order_from_the_version_that_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def rename(payload: dict[str, Any]) -> dict[str, Any]:
        return {"role": payload["who"], "text": payload["text"]}

    def shout(payload: dict[str, Any]) -> dict[str, Any]:
        return payload | {"text": payload["text"].upper()}

    upcasters = {"message.added": (rename, shout)}
    # No released type has a second version yet: these are of releases to come.
    monkeypatch.setattr("recollect.events.upcast.UPCASTERS", upcasters)
    monkeypatch.setattr("recollect.events.envelope.UPCASTERS", upcasters)

    assert recorded(1, b'{"who": "user", "text": "hello"}').data() == {"role": "user", "text": "HELLO"}
    assert recorded(2, b'{"role": "user", "text": "hello"}').data() == {"role": "user", "text": "HELLO"}
    assert recorded(3, b'{"role": "user", "text": "hello"}').data() == {"role": "user", "text": "hello"}
    assert recorded(1, b'{"who": "user", "text": "hello"}').as_json()["schema_version"] == 3
    with pytest.raises(NewerFile, match="schema version 4"):
        recorded(4, b"{}").data()


def test_an_event_of_a_newer_program_parks_its_namespace_and_says_why(tmp_path: Path, log: SqliteLog) -> None:
    log.append("a", [message_draft("known")])
    log.append("a", [message_draft("of the future")._replace(schema_version=7)])
    models = ReadModels(tmp_path, log)
    progress = models.catch_up("a")
    assert progress.version == 1
    assert progress.parked is not None
    assert "install the version" in progress.parked.error
    models.close()


def test_an_encoding_of_a_newer_program_is_named(log: SqliteLog) -> None:
    log.append("a", [message_draft("x")._replace(encoding="aes-gcm", payload=b"\x00\x01")])
    assert verify(log, "a").is_intact
    with pytest.raises(NewerFile, match="aes-gcm"):
        log.read("a")[0].data()


def recorded(schema_version: int, payload: bytes) -> RecordedEvent:
    return RecordedEvent(
        "a", 1, "e", "message.added", schema_version, 0, 0, None, None, None, None, "json", payload, b"", b""
    )


def test_a_read_model_of_an_earlier_release_is_built_anew_beside_it_without_being_asked(
    released: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    folder = namespace_folder(data, "ann")
    folder.mkdir(parents=True)
    shutil.copy(RELEASED / "ann-1.db", generation_path(folder, 1))
    log = SqliteLog(released)
    models = ReadModels(data, log)

    assert models.catch_up("ann").behind == 0
    assert generations(folder) == [1, 2]
    with models.reading("ann") as snapshot:
        assert connection_of(snapshot).execute("SELECT schema_version FROM read_model").fetchall() == [
            (SCHEMA_VERSION,)
        ]
    assert models.check("ann").is_equal
    # Nothing that reads like damage, and one line for all namespaces.
    assert [record.getMessage() for record in caplog.records] == [
        "read models are built again from the log for this version of Recollect"
    ]
    models.close()
    log.close()


def test_an_upgrade_of_many_namespaces_says_one_calm_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = SqliteLog(tmp_path / "log.db")
    models = ReadModels(tmp_path, log)
    harms = {"ann": f"UPDATE read_model SET schema_version = {SCHEMA_VERSION - 1}"}
    # The first versions had this table by another name.
    harms |= {"bob": "ALTER TABLE read_model RENAME TO model", "eve": harms["ann"]}
    for name, harm in harms.items():
        log.append(name, [message_draft("a red kite")])
        models.catch_up(name)
        with models.reading(name) as snapshot:
            assert snapshot.version == 1
        connection = connect(generation_path(namespace_folder(tmp_path, name), 1))
        connection.execute(harm)
        connection.close()
    models.close()
    models = ReadModels(tmp_path, log)
    for name in harms:
        assert models.catch_up(name).version == 1
    assert [record.getMessage() for record in caplog.records] == [
        "read models are built again from the log for this version of Recollect"
    ]
    models.close()
    log.close()


#: Fields that had another name in a version 1 of these types.
_RENAMED = {"message.added": ("text", "body"), "fact.stated": ("object", "value")}


def _renames_back(new: str, old: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda payload: {new if name == old else name: value for name, value in payload.items()}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories())
def test_events_of_an_old_version_make_the_rows_of_events_that_were_written_new(
    history: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        upcasters = {name: (_renames_back(new, old),) for name, (new, old) in _RENAMED.items()}
        patched.setattr("recollect.events.upcast.UPCASTERS", upcasters)
        patched.setattr("recollect.events.envelope.UPCASTERS", upcasters)
        files: list[Path] = []
        for version in (1, 2):
            folder = tmp_path_factory.mktemp(f"version-{version}")
            times = count(1)
            log = SqliteLog(folder / "log.db", clock=lambda times=times: next(times))
            for number, event in enumerate(history):
                log.append("a", [_of_version(draft({**event, "id": f"e{number}"}), version)])
            with closing(ReadModels(folder, log)) as models:
                assert models.catch_up("a").parked is None
                assert models.check("a").is_equal
            log.close()
            [file] = (folder / "namespaces").rglob("[0-9]*.db")
            files.append(file)
        assert row_differences(*files) == []


def _of_version(event: EventDraft, version: int) -> EventDraft:
    """Return an event as a program that knows its type in this version records it."""
    if event.type not in _RENAMED:
        return event
    new, old = _RENAMED[event.type]
    payload: dict[str, Any] = orjson.loads(event.payload)
    if version == 1:
        payload = {old if name == new else name: value for name, value in payload.items()}
    return event._replace(schema_version=version, payload=orjson.dumps(payload))
