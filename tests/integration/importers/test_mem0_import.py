from __future__ import annotations

from pathlib import Path

from support.exports import MEM0, write_json, write_mem0_history
from support.imports import facts, run, texts

from recollect import Recollect
from recollect.api.settings import Settings

MEM0_BLOCKS = """---
id: 9b1
created_at: 2026-01-05T10:00:00Z
type: preference
confidence: 0.9
---
User prefers window seats
---
id: 9b2
created_at: 2026-01-06T10:00:00Z
---
User has two dogs
"""


def sample(folder: Path) -> Path:
    return write_json(folder / "mem0.json", MEM0)


SAMPLES = {"mem0": sample}


def test_mem0_lists_blocks_and_databases_become_dated_facts(tmp_path: Path, settings_of_test: Settings) -> None:
    run(write_json(tmp_path / "list.json", MEM0), settings_of_test)
    (tmp_path / "plugin.md").write_text(MEM0_BLOCKS)
    run(tmp_path / "plugin.md", settings_of_test)
    run(write_mem0_history(tmp_path / "history.db"), settings_of_test)
    assert facts(settings_of_test) == [
        ("user", "favorite color is", "green"),
        ("user", "note", "Allergic to peanuts"),
        ("user", "prefers", "window seats"),
        ("user", "has", "two dogs"),
        ("user", "lives in", "Porto"),
        ("user", "lives in", "Lund"),
        ("user", "did", "smokes"),
    ]
    assert texts(settings_of_test) == ["user: hello there"]
    with Recollect(settings=settings_of_test, workers=False) as memory:
        listed = memory.facts("ann", filters={"status": "active"})["items"]
    valid = {fact["object"] for fact in listed if fact["valid_until"] is None}
    assert "Lund" in valid
    assert not {"Porto", "smokes"} & valid
