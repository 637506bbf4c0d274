from __future__ import annotations

from pathlib import Path

import pytest
from support.exports import write_folder
from support.imports import run

from recollect import Recollect
from recollect.api.settings import Settings
from recollect.events.errors import InvalidInput


def _vault(folder: Path, *names: str) -> Path:
    return write_folder(folder / "vault", {f"{name}.md": f"# {name}\n\nIt is {name}.\n" for name in names})


def _paths(settings: Settings) -> list[str]:
    with Recollect(settings=settings, workers=False) as memory:
        return sorted(item["metadata"]["path"] for item in memory.list("ann", "documents")["items"])


def test_the_document_of_a_deleted_note_is_named_and_removed_only_with_the_option(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    path = _vault(tmp_path, "A", "B", "C")
    run(path, settings_of_test)
    (path / "C.md").unlink()
    kept = run(path, settings_of_test)
    assert (kept.added, kept.missing, kept.removed) == (0, ["C.md"], {})
    assert "not in this folder: 1 document (C.md); --delete-missing" in kept.as_text()
    planned = run(path, settings_of_test, delete_missing=True, dry_run=True)
    assert ([*planned.removed], _paths(settings_of_test)) == (["C.md"], ["A.md", "B.md", "C.md"])
    removed = run(path, settings_of_test, delete_missing=True)
    assert removed.imported == {"document.removed": 1}
    assert (removed.removed, removed.missing) == (planned.removed, [])
    assert _paths(settings_of_test) == ["A.md", "B.md"]
    again = run(path, settings_of_test, delete_missing=True)
    assert (again.added, again.missing, again.removed) == (0, [], {})


def test_a_removed_document_comes_back_by_an_undo_and_by_its_note(tmp_path: Path, settings_of_test: Settings) -> None:
    path = _vault(tmp_path, "A", "B", "C")
    run(path, settings_of_test)
    for _ in range(2):
        (path / "C.md").unlink()
        assert [*run(path, settings_of_test, delete_missing=True).removed] == ["C.md"]
        _vault(tmp_path, "C")
        assert run(path, settings_of_test, dry_run=True).imported == {"document.added": 1}
        assert run(path, settings_of_test).imported == {"document.added": 1}
        assert run(path, settings_of_test).added == 0
        assert _paths(settings_of_test) == ["A.md", "B.md", "C.md"]
    (path / "C.md").unlink()
    [event_id] = run(path, settings_of_test, delete_missing=True).removed.values()
    with Recollect(settings=settings_of_test, workers=False) as memory:
        memory.undo("ann", event_id)
    # What a user brought back stays.
    assert run(path, settings_of_test, delete_missing=True).added == 0
    assert _paths(settings_of_test) == ["A.md", "B.md", "C.md"]


def test_a_renamed_note_leaves_one_document_also_when_it_is_renamed_back(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    path = _vault(tmp_path, "A", "B")
    run(path, settings_of_test)
    for before, after in (("A.md", "Z.md"), ("Z.md", "A.md"), ("A.md", "Z.md")):
        (path / before).rename(path / after)
        assert [*run(path, settings_of_test, dry_run=True).removed] == [before]
        report = run(path, settings_of_test)
        assert (report.imported, [*report.removed]) == ({"document.added": 1, "document.removed": 1}, [before])
        assert run(path, settings_of_test).added == 0
        assert _paths(settings_of_test) == sorted(["B.md", after])


def test_an_empty_a_wrong_or_an_unreadable_folder_removes_no_document(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    path = _vault(tmp_path, "A", "B", "C")
    run(path, settings_of_test)
    other = write_folder(tmp_path / "other" / "vault", {f"{name}.md": name for name in "UVWXYZ"})
    refused = run(other, settings_of_test, delete_missing=True)
    assert (refused.removed, refused.missing, refused.failures) == ({}, ["A.md", "B.md", "C.md"], 1)
    assert "3 documents would go and 0 would stay: is it the same folder?" in refused.as_text()
    named = write_folder(tmp_path / "notes", {f"{name}.md": name for name in "UVWXYZ"})
    assert run(named, settings_of_test, delete_missing=True).failures == 0
    empty = tmp_path / "empty" / "vault"
    empty.mkdir(parents=True)
    refused = run(empty, settings_of_test, delete_missing=True, form="markdown")
    assert (refused.removed, refused.failures) == ({}, 2)
    for options in ({"since": "2026-01-01"}, {"limit": 1}):
        with pytest.raises(InvalidInput, match="whole folder"):
            run(path, settings_of_test, delete_missing=True, **options)
    with pytest.raises(InvalidInput, match="whole folder"):
        run(path / "A.md", settings_of_test, delete_missing=True)
    assert {"A.md", "B.md", "C.md"} < {*_paths(settings_of_test)}


def test_documents_of_other_folders_and_changed_ones_are_not_removed(
    tmp_path: Path, settings_of_test: Settings
) -> None:
    path = _vault(tmp_path, "A", "B", "C")
    run(path, settings_of_test)
    run(write_folder(tmp_path / "boats", {"Skiff.md": "It is green.\n"}), settings_of_test)
    with Recollect(settings=settings_of_test, workers=False) as memory:
        memory.append(
            "ann",
            [
                {
                    "type": "document.added",
                    "payload": {"document_id": "d", "title": "D", "text": "Own.", "metadata": {"path": "D"}},
                }
            ],
        )
        [own] = [item["id"] for item in memory.list("ann", "documents")["items"] if item["title"] == "C"]
        memory.update("ann", own, text="Mine.")
    (path / "B.md").unlink()
    (path / "C.md").unlink()
    assert [*run(path, settings_of_test, delete_missing=True).removed] == ["B.md"]
    assert _paths(settings_of_test) == ["A.md", "C.md", "D", "Skiff.md"]


def test_a_note_that_is_set_back_has_its_earlier_text_again(tmp_path: Path, settings_of_test: Settings) -> None:
    path = write_folder(
        tmp_path / "vault", {"Boat.md": "# Boat\n\nIt is green.\n", "Shed.md": "# Shed\n\nIt is old.\n"}
    )
    green, blue = "# Boat\n\nIt is green.\n", "# Boat\n\nIt is blue.\n"
    run(path, settings_of_test)
    for text in (blue, green, blue, green):
        (path / "Boat.md").write_text(text, encoding="utf-8")
        assert run(path, settings_of_test, dry_run=True).imported == {"document.added": 1}
        again = run(path, settings_of_test)
        assert (again.imported, again.duplicates) == ({"document.added": 1}, 1)
        assert run(path, settings_of_test).added == 0
        with Recollect(settings=settings_of_test, workers=False) as memory:
            documents = {item["title"]: item["text"] for item in memory.list("ann", "documents")["items"]}
            assert documents == {"Boat": text.partition("\n\n")[2].strip(), "Shed": "It is old."}
    with Recollect(settings=settings_of_test, workers=False) as memory:
        [boat] = [item for item in memory.list("ann", "documents")["items"] if item["title"] == "Boat"]
        memory.forget("ann", boat["id"])
    assert run(path, settings_of_test).added == 0
