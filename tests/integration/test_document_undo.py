"""Undo of documents: a removed one and the earlier text of a replaced one are back as they were."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from support.events import Event, message
from support.imports import run

from recollect import Recollect
from recollect.api.settings import Settings, load_settings
from recollect.events.errors import InvalidInput

_LONG = "Be kind. " * 300


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(data=tmp_path / "data", embedding_model="none")


@pytest.fixture
def memory(settings: Settings) -> Generator[Recollect]:
    with Recollect(settings=settings, workers=False) as memory:
        yield memory


def _rules(text: str, title: str = "Rules") -> Event:
    relations = [{"type": "governs", "target": "Ann"}]
    payload = {"document_id": "rules", "title": title, "text": text, "relations": relations}
    return {"type": "document.added", "payload": payload}


def test_a_replaced_document_is_back_as_it_was_and_is_found_again(memory: Recollect) -> None:
    memory.append("a", [message("Hello", name="Ann"), _rules(_LONG)])
    before = memory.list("a", "documents")["items"]
    [replacing] = memory.append("a", _rules("Be brief.", title="House rules"))
    after = memory.list("a", "documents")["items"]
    undone = memory.undo("a", replacing.id)
    assert memory.list("a", "documents")["items"] == before
    assert (before[0]["edit_id"], after[0]["edit_id"]) == (None, replacing.id)
    assert "Be kind." in memory.retrieve("a", "Who is kind?").context
    memory.undo("a", undone["id"])
    assert memory.list("a", "documents")["items"] == after
    assert memory.check("a").is_equal


def test_a_document_that_replaced_no_other_one_is_removed_and_not_undone(memory: Recollect) -> None:
    [first] = memory.append("a", _rules("Be kind."))
    with pytest.raises(InvalidInput, match="cannot be undone"):
        memory.undo("a", first.id)


def test_a_removed_document_is_back_as_it_was_and_takes_the_place_of_no_newer_one(memory: Recollect) -> None:
    memory.append("a", [message("Hello", name="Ann"), _rules(_LONG)])
    before = memory.list("a", "documents")["items"]
    [removed] = memory.append("a", {"type": "document.removed", "payload": {"document_id": "rules"}})
    assert memory.list("a", "documents")["items"] == []
    undone = memory.undo("a", removed.id)
    assert memory.list("a", "documents")["items"] == before
    assert "Be kind" in memory.retrieve("a", "What are the rules?", gate=False).context
    memory.undo("a", undone["id"])
    memory.append("a", _rules("Be brief."))
    newer = memory.list("a", "documents")["items"]
    memory.undo("a", removed.id)
    assert memory.list("a", "documents")["items"] == newer
    assert memory.check("a").is_equal


def test_an_import_does_not_replace_a_text_again_that_a_user_brought_back(tmp_path: Path, settings: Settings) -> None:
    note = tmp_path / "notes" / "rules.md"
    note.parent.mkdir()
    for text in ("Be kind.", "Be brief."):
        note.write_text(f"# Rules\n{text}", encoding="utf-8")
        assert run(note.parent, settings).added == 1
    with Recollect(settings=settings, workers=False) as memory:
        [shown] = memory.list("ann", "documents")["items"]
        memory.undo("ann", str(shown["edit_id"]))
    assert run(note.parent, settings).added == 0
    note.write_text("# Rules\nBe slow.", encoding="utf-8")
    assert run(note.parent, settings).added == 1
