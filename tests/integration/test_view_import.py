"""View import into another memory: a memory-md export comes back with its dates, confidence, sources and pins, once."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import recollect
from support.events import message

from recollect import Recollect
from recollect.api.exporters.bundle_files import write_bundle
from recollect.api.importers.source_files import open_source
from recollect.api.memory.file_export import export_files
from recollect.api.memory.view_import import import_view
from recollect.api.settings import load_settings

_DAY = "2026-03-01T09:00:00Z"


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path / "data", embedding_model="none"), workers=False) as memory:
        yield memory


def _fact(subject: str, predicate: str, object: str, *, id: str | None = None, **fields: Any) -> dict[str, Any]:
    payload = {"subject": subject, "predicate": predicate, "object": object, **fields}
    return {"type": "fact.stated", "occurred_at": _DAY, "payload": payload} | ({} if id is None else {"id": id})


def fill(memory: Recollect) -> None:
    observed: dict[str, Any] = {"confidence": 0.625, "source_type": "observed", "valid_from": "2026-02-01T00:00:00Z"}
    liking = {"key": "phone calls", "value": "hates", "subject": "ann", "category": "communication", "strength": 0.75}
    memory.append(
        "ann",
        [
            message("Hello there", id="m1", session_id="s1", occurred_at=_DAY),
            message("We adopted a cat", id="m2", name="Ann", session_id="s1", occurred_at=_DAY),
            _fact("user", "lives in", "Porto", id="f1"),
            _fact("Biscuit", "is", "a cat"),
            _fact("Biscuit", "likes", "fish & chips", id="f3"),
            _fact("Ann", "age is", "40", **observed),
            {"type": "preference.stated", "payload": {"key": "tone", "value": "short"}},
            {"type": "preference.stated", "payload": liking},
            {"type": "fact.corrected", "payload": {"subject": "user", "predicate": "lives in", "object": "Lund"}},
            {"type": "memory.pinned", "payload": {"memory_id": "f3"}},
            {"type": "observation.recorded", "occurred_at": _DAY, "payload": {"text": "Morning: rain"}},
        ],
    )


def view_of(memory: Recollect, folder: Path) -> Path:
    write_bundle(folder, export_files(memory, "ann", "memory-md"), overwrite=True)
    return folder


def _shown(memory: Recollect, namespace: str) -> list[tuple[Any, ...]]:
    """Return what a reader sees of the facts and preferences that hold, with their dates and pins."""
    facts = memory.facts(namespace, filters={"status": "active"})["items"]
    names = (
        "subject",
        "predicate",
        "object",
        "type",
        "confidence",
        "source_type",
        "valid_from",
        "created_at",
        "pinned",
    )
    preferences = memory.list(namespace, "preferences", filters={"status": "active"})["items"]
    own = ("subject", "category", "name", "value", "strength", "source_type", "created_at", "pinned")
    return sorted(
        [tuple(row[name] for name in names) for row in facts]
        + [tuple(row[name] for name in own) for row in preferences],
        key=repr,
    )


@pytest.mark.parametrize("namespace", ["ann", "copy"])
def test_a_view_comes_back_in_a_fresh_folder_as_it_was_and_once(
    memory: Recollect, tmp_path: Path, namespace: str
) -> None:
    fill(memory)
    folder = view_of(memory, tmp_path / "view")
    fresh = load_settings(data=tmp_path / "fresh", embedding_model="none")
    with Recollect(settings=fresh, workers=False) as other, open_source(folder) as files:
        assert import_view(other, files, namespace, dry_run=True).added == 10
        report = import_view(other, files, namespace)
        assert (report.failed, report.skipped, report.duplicates) == ([], {}, 0)
        assert _shown(other, namespace) == _shown(memory, "ann")
        assert [row["text"] for row in other.episodes(namespace)["items"]] == [
            "user: Hello there", "Ann: We adopted a cat", "Morning: rain"
        ]  # fmt: skip
        assert import_view(other, files, namespace).added == 0
        again = tmp_path / "again"
        write_bundle(again, export_files(other, namespace, "memory-md"), overwrite=True)
        assert _bullets(again) == _bullets(folder)


def test_a_dry_run_of_the_command_creates_no_data_folder(memory: Recollect, tmp_path: Path) -> None:
    fill(memory)
    folder = str(view_of(memory, tmp_path / "view"))
    planned = recollect("import", folder, "--namespace", "new", "--dry-run", data=tmp_path / "fresh")
    assert "would import: 10" in planned.stdout
    assert not (tmp_path / "fresh").exists()


def test_relationships_procedures_and_the_pin_of_a_message_come_back(memory: Recollect, tmp_path: Path) -> None:
    steps = ["mix flour: 500 g", "wait", "bake"]
    memory.append(
        "ann",
        [
            message("We adopted a cat", id="m1", name="Ann", session_id="s1", occurred_at=_DAY),
            {
                "type": "relationship.stated",
                "id": "r1",
                "occurred_at": _DAY,
                "payload": {"source": "Ann", "type": "works_for", "target": "Fern & Co", "confidence": 0.75},
            },
            {"type": "procedure.recorded", "payload": {"name": "bread", "trigger": "guests", "steps": steps}},
            *({"type": "memory.pinned", "payload": {"memory_id": id}} for id in ("m1", "r1")),
        ],
    )
    fresh = load_settings(data=tmp_path / "fresh", embedding_model="none")
    with Recollect(settings=fresh, workers=False) as other, open_source(view_of(memory, tmp_path / "view")) as files:
        assert (import_view(other, files, "bob").failed, import_view(other, files, "bob").added) == ([], 0)
        for name, fields in (
            ("relationships", ("source", "type", "target", "confidence", "created_at", "pinned")),
            ("procedures", ("name", "trigger", "steps", "confidence", "pinned")),
            ("episodes", ("pinned",)),
        ):
            shown = [[row[field] for field in fields] for row in other.list("bob", name)["items"]]
            assert shown == [[row[field] for field in fields] for row in memory.list("ann", name)["items"]]


def _bullets(folder: Path) -> list[str]:
    """Return the lines of MEMORY.md and USER.md as they are displayed."""
    lines = [line for name in ("MEMORY.md", "USER.md") for line in (folder / name).read_text().splitlines()]
    return sorted(line.partition(" <!--")[0] for line in lines if line.startswith("- "))


def test_a_view_of_another_namespace_of_this_memory_is_brought_as_new_facts(memory: Recollect, tmp_path: Path) -> None:
    fill(memory)
    before = memory.parts.log.head("ann").version
    with open_source(view_of(memory, tmp_path / "view")) as files:
        assert import_view(memory, files, "bob").added == 10
    assert memory.parts.log.head("ann").version == before


def test_a_forgotten_memory_does_not_come_back_with_the_files_of_its_own_log(memory: Recollect, tmp_path: Path) -> None:
    fill(memory)
    folder = view_of(memory, tmp_path / "view")
    memory.forget("ann", "f3")
    with open_source(folder) as files:
        assert import_view(memory, files, "ann").added == 0
