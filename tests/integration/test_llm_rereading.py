"""Reading again: another model's reading is shown, switched on and back; what users changed stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.events import message
from support.llm_chat import LATER_US, START, Chat, llm_chat
from support.openai_server import sensible
from typer.testing import CliRunner

from recollect import Recollect
from recollect.api.cli.main import app
from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput
from recollect.jobs.extraction import statements
from recollect.jobs.extraction.extraction_job import extract


@pytest.fixture(autouse=True)
def rules_keep_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the model reads is compared here: what the rules kept in words would be the same statements."""
    monkeypatch.setattr(statements, "KEEP_BY_WORDS_MIN", 1.1)


_TURNS = [
    "Ann: I am restoring a wooden boat",
    "Ann: my neighbour Ilse keeps three geese",
    "Ann: our roof has leaked since the storm",
    "Ann: I collect old maps of Frisia",
]
_FIRST = {
    "boat": ["Ann is restoring a wooden boat. | I am restoring a wooden boat | habit"],
    "geese": ["Ilse keeps three geese. | Ilse keeps three geese | possession"],
    "roof": ["The roof of Ann's house has leaked since the storm. | our roof has leaked since the storm | problem"],
    "maps": ["Ann collects old maps of Frisia. | I collect old maps of Frisia | habit"],
}
_SECOND = {
    "boat": ["Ann is restoring a wooden boat. | I am restoring a wooden boat | habit"],
    "geese": ["Ann's neighbour Ilse keeps three geese. | my neighbour Ilse keeps three geese | relation"],
    "maps": ["Ann collects old maps of Frisia. | I collect old maps of Frisia | habit"],
}


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    with llm_chat(tmp_path) as chat:
        chat.read(_TURNS, _FIRST)
        chat.server.behaviour = sensible(_SECOND)
        yield chat


def _model_made(chat: Chat) -> dict[str, str]:
    """Return the ids of the active facts that the model has read, by their sentence."""
    items = chat.memory.facts("a")["items"]
    return {
        str(item.get("statement")): item["id"]
        for item in items
        if item["status"] == "active" and item["id"].startswith("llm:")
    }


def test_the_difference_is_shown_and_nothing_is_stored(chat: Chat) -> None:
    before, head = _model_made(chat), chat.memory.parts.log.head("a")
    found = chat.memory.read_again("a", model="other")
    assert [one["text"] for one in found.removed] == ["The roof of Ann's house has leaked since the storm."]
    assert [(one["before"], one["text"]) for one in found.changed] == [
        ("Ilse keeps three geese.", "Ann's neighbour Ilse keeps three geese.")
    ]
    assert (found.added, found.same, found.messages, found.events) == ([], 2, 4, 0)
    assert (_model_made(chat), chat.memory.parts.log.head("a")) == (before, head)


def test_a_switch_is_replayed_and_can_be_switched_back(chat: Chat) -> None:
    before = _model_made(chat)
    assert chat.memory.read_again("a", model="other", switch=True).events
    switched = _model_made(chat)
    assert sorted(switched) == [
        "Ann collects old maps of Frisia.",
        "Ann is restoring a wooden boat.",
        "Ann's neighbour Ilse keeps three geese.",
    ]
    chat.memory.replay("a")
    assert _model_made(chat) == switched
    again = chat.memory.read_again("a", model="other", switch=True)
    assert (again.added, again.removed, again.changed, again.same) == ([], [], [], 3)
    chat.server.behaviour = sensible(_FIRST)
    chat.memory.read_again("a", switch=True)
    assert _model_made(chat).keys() == before.keys()


def test_what_users_corrected_pinned_or_forgot_stays(chat: Chat) -> None:
    ids = _model_made(chat)
    chat.memory.pin("a", ids["The roof of Ann's house has leaked since the storm."])
    chat.memory.forget("a", ids["Ann collects old maps of Frisia."])
    chat.memory.update("a", ids["Ilse keeps three geese."], text="four geese")
    shown = chat.memory.facts("a")["items"]
    found = chat.memory.read_again("a", model="other", switch=True)
    assert (found.added, found.removed, found.changed, found.events) == ([], [], [], 0)
    assert chat.memory.facts("a")["items"] == shown


def test_a_failed_reading_leaves_nothing(chat: Chat) -> None:
    before, head = _model_made(chat), chat.memory.parts.log.head("a")
    chat.server.behaviour = lambda _: "Sure, I can help!"
    with pytest.raises(InvalidInput, match="no usable answer"):
        chat.memory.read_again("a", model="other", switch=True)
    assert (_model_made(chat), chat.memory.parts.log.head("a")) == (before, head)


def test_the_command_prints_the_difference_and_needs_one_of_diff_and_switch(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_LLM", "tiny")
    monkeypatch.setenv("RECOLLECT_LLM_BASE_URL", chat.server.url)
    monkeypatch.setenv("RECOLLECT_EMBEDDING_MODEL", "none")
    command = ["read", "a", "--again", "--with", "other", "--data", str(chat.memory.parts.settings.storage.data)]
    result = CliRunner().invoke(app, [*command, "--diff"])
    assert "~ relation   Ilse keeps three geese. -> Ann's neighbour Ilse keeps three geese." in result.output
    assert "- 1: 1 problem" in result.output
    assert "Nothing was stored" in result.output
    assert isinstance(CliRunner().invoke(app, command).exception, InvalidInput)
    CliRunner().invoke(app, [*command, "--switch"])
    assert len(_model_made(chat)) == 3


@pytest.mark.skipif("RECOLLECT_TEST_LLM_URL" not in os.environ, reason="no model: `ops/llm serve` says how to have one")
def test_a_real_model_reads_again_and_changes_nothing_before_the_switch(tmp_path: Path) -> None:
    model = {"llm": "qwen2.5-coder:1.5b", "llm_base_url": os.environ["RECOLLECT_TEST_LLM_URL"]}
    settings = load_settings(data=tmp_path, embedding_model="none", llm_timeout_seconds=280, **model)
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("a", [message("I live in Porto with my cat Biscuit.", name="Ann", occurred_at=START)])
        extract(memory.parts.job_context, "a", LATER_US)
        before, head = memory.facts("a")["items"], memory.parts.log.head("a")
        found = memory.read_again("a")
        assert (found.messages, found.removed, found.changed) == (1, [], [])
        assert (memory.facts("a")["items"], memory.parts.log.head("a")) == (before, head)
