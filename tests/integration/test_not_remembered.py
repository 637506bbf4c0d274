"""What a message asks not to remember is not shown, and what was said before it in the message stays."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from support.events import message

from recollect import Recollect
from recollect.api.settings import load_settings


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        memory.append("a", message("I own a red canoe."))
        yield memory


@pytest.mark.parametrize(
    "text", ["don't remember this: my pin is 4711", "Please do not save this:\nmy pin is 4711. It is new."]
)
def test_what_follows_the_request_is_not_shown_and_all_else_stays(memory: Recollect, text: str) -> None:
    memory.append("a", message(f"My dog is called Bo. {text}"))
    memory.settle("a")
    assert "4711" not in memory.retrieve("a", "What is my pin?", gate=False).context
    assert "4711" not in str([memory.list("a", name)["items"] for name in ("episodes", "facts")])
    assert "Bo" in memory.retrieve("a", "What is my dog called?").context
    assert "red" in memory.retrieve("a", "canoe").context


@pytest.mark.parametrize(
    "text", ["I don't remember this: was my salary 72,000?", "My salary: 72,000 a year.", "My salary: is it 72,000?"]
)
def test_what_is_no_request_stays(memory: Recollect, text: str) -> None:
    memory.append("a", message(text))
    assert "72,000" in memory.retrieve("a", "my salary", gate=False).context
