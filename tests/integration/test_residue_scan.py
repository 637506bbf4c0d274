"""A receipt names as residue what a file has of the erased texts, and nothing that stays with the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace
from support.events import message

from recollect import Recollect
from recollect.api.receipt_types import Receipt
from recollect.api.retrieval.answer.trace_store import traces_of
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.settings import load_settings


def opened(folder: Path) -> Recollect:
    return Recollect(settings=load_settings(data=folder, embedding_model="none"), workers=False)


def scans_of(receipt: Receipt) -> list[dict[str, Any]]:
    return [target for target in receipt["targets"] if "residue_windows" in target]


def test_a_text_that_a_file_still_has_is_a_residue_unless_a_kept_message_has_the_same_words(tmp_path: Path) -> None:
    texts = {name: f"The {name} of the garden gate is four four seven one." for name in ("code", "lock")}
    with opened(tmp_path) as memory:
        memory.append("a", [message(text, id=name) for name, text in texts.items()])
        memory.append("a", message(f"I repeat: {texts['lock']}"))
        (tmp_path / "notes.txt").write_text(f"a forgotten copy: {texts['code']}")
        code, lock = (scans_of(memory.erase("a", event_ids=[name]))[1] for name in texts)
    assert code["files_with_hits"] == ["notes.txt"]
    assert code["residue_hits"] > 0
    # "of the garden gate is four …" is in the messages that stay.
    assert code["windows_in_kept_events"] > 0
    assert lock["residue_hits"] == 0
    assert lock["windows_in_kept_events"] > 0


def test_retrievals_beside_an_erasure_leave_no_residue(tmp_path: Path) -> None:
    text = "The code of the garden gate is four four seven one."
    with opened(tmp_path) as memory:
        memory.append("a", [message(text, id="code"), message(f"I repeat: {text[:31]}")])
        memory.settle("a")
        request = RetrieveRequest(query="garden gate")
        slow = memory.parts.retriever.retrieve("a", request)
        assert "seven one" in slow.context

        def ask(*_: object) -> list[Any]:
            # One that began before the erasure has the text; one after it has only what its user types.
            memory.parts.trace_store.add("a", request, replace(slow, latency_ms=60_000))
            memory.retrieve("a", "who said that the garden gate is four four")
            memory.parts.trace_store.flush()
            return []

        memory.parts.read_models.purges.listen(folder=ask)
        (tmp_path / "notes.txt").write_text(text)
        shared = scans_of(memory.erase("a", event_ids=["code"]))[1]
        traces = list(traces_of(tmp_path / "traces", "a"))
    assert len(traces) == 1
    assert shared["windows_in_later_texts"] > 0
    assert (shared["residue_hits"] > 0, shared["files_with_hits"]) == (True, ["notes.txt"])


def test_the_id_of_a_kept_message_in_an_erased_extraction_is_no_residue(tmp_path: Path) -> None:
    ids = ("message-of-the-first-session-1", "message-of-the-second-session-2")
    with opened(tmp_path) as memory:
        for text, id in zip(("I live in Porto.", "I moved to Graz."), ids, strict=True):
            memory.append("a", message(text, id=id, session_id=id))
            memory.settle("a")
        own, shared = scans_of(memory.erase("a", session_id=ids[0]))
    assert (own["residue_hits"], shared["residue_hits"]) == (0, 0)
    assert own["windows_in_kept_events"] > 0
