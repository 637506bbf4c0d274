"""Imports in tests: what an import of `ann` appended, and a sample of each format.

A module ``tests/integration/importers/test_NAME_import.py`` has the samples of its formats in `SAMPLES`: functions that
write one into a folder.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from recollect.api.importers.file_import import import_path
from recollect.api.importers.imported_records import ImportReport
from recollect.api.settings import Settings
from recollect.events.envelope import RecordedEvent
from recollect.events.integrity.log_identity import open_log_of_folder

_TESTS = Path(__file__).parents[1] / "integration" / "importers"


def samples(folder: Path) -> dict[str, Path]:
    """Return an export of each format that has a test."""
    made: dict[str, Path] = {}
    for path in sorted(_TESTS.glob("test_*_import.py")):
        for name, write in import_module(f"integration.importers.{path.stem}").SAMPLES.items():
            (folder / name).mkdir(parents=True)
            made[name] = write(folder / name)
    return made


def run(path: Path, settings: Settings, **options: Any) -> ImportReport:
    given: dict[str, Any] = {"namespace": "ann"} | options
    return import_path(path, settings=settings, **given)


def events(settings: Settings, event_type: str | None = None) -> list[RecordedEvent]:
    storage = settings.storage
    log = open_log_of_folder(storage.data, storage.log_url, storage.key_options)
    try:
        return [event for event in log.read("ann") if event_type in (None, event.type)]
    finally:
        log.close()


def stated(settings: Settings, event_type: str) -> list[dict[str, Any]]:
    return [event.data() for event in events(settings, event_type)]


def texts(settings: Settings) -> list[str]:
    return [f"{event.data()['role']}: {event.data()['text']}" for event in events(settings, "message.added")]


def facts(settings: Settings) -> list[tuple[str, str, str]]:
    stated = (event.data() for event in events(settings, "fact.stated"))
    return [(fact["subject"], fact["predicate"], fact["object"]) for fact in stated]
