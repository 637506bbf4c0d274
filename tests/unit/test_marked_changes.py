"""The marks of changes, which `ops/train/changes` learns from, name messages and their words."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

_TRAIN = Path(__file__).parents[2] / "ops" / "train"
_RELATIONS = ("replaces", "ends", "corrects", "done")


@pytest.mark.parametrize("name", ["chats", "slips", "held-out-chats", "held-out-slips"])
def test_every_mark_has_the_words_of_two_messages_of_one_speaker(name: str) -> None:
    folder = _TRAIN / ("relevance/chats" if name == "chats" else f"changes/{name}")
    said = {event["id"]: event["payload"] for chat in _chats(folder) for event in chat.events}
    lines = (_TRAIN / "changes" / "marked" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 200
    for line in lines:
        chat, later, later_words, relation, earlier, earlier_words, _ = line.split(" | ")
        new, old = said[f"{chat}:{later}"], said[f"{chat}:{earlier}"]
        assert later_words in new["text"], line
        assert earlier_words in old["text"], line
        assert new.get("name") == old.get("name"), line
        assert relation in _RELATIONS, line


def _chats(folder: Path) -> Any:
    """Return the chats of a folder, as the training reads them."""
    sys.path.insert(0, str(_TRAIN / "relevance"))
    try:
        return import_module("labelled_chats").read_chats(folder)
    finally:
        sys.path.remove(str(_TRAIN / "relevance"))
