"""An erasure is planned as a whole before anything is stored or erased."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from integration.test_erasure import opened
from support.events import message

from recollect.events.errors import KeyMissing
from recollect.events.integrity.receipt import verify_receipt
from recollect.jobs.erasure import eraser as eraser_module


@pytest.mark.parametrize("is_overtaken", [False, True])
def test_many_ranges_are_erased_in_parts_also_when_an_append_overtakes_them(
    tmp_path: Path, is_overtaken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eraser_module, "_RANGES_MAX", 2)
    with opened(tmp_path) as memory:
        memory.append("a", [message(f"text {n}", session_id="s" if n % 2 else "t") for n in range(12)])
        if is_overtaken:
            erase, late = memory.parts.log.erase, [message("said late", session_id="s")]

            def overtaken(*arguments: Any, **options: Any) -> Any:
                recorded = erase(*arguments, **options)
                if late:
                    memory.append("a", late.pop())
                return recorded

            monkeypatch.setattr(memory.parts.log, "erase", overtaken)
        receipt = memory.erase("a", session_id="s")
        # Two events went with the overtaken plan; the counts are those of the plan after it.
        assert receipt["log"]["count"] == (7 if is_overtaken else 6)
        assert receipt["events"]["by_type"] == {"message.added": 5 if is_overtaken else 6}
        types = [item["type"] for item in memory.events("a")["items"]]
        assert types.count("events.erased") == (4 if is_overtaken else 3)
        assert verify_receipt(json.dumps(receipt).encode(), log=memory.parts.log) == []
        assert [item["text"] for item in memory.episodes("a")["items"]] == [f"text {n}" for n in range(0, 12, 2)]


def test_an_erasure_that_cannot_be_planned_is_not_stored(tmp_path: Path) -> None:
    with opened(tmp_path, master_key="00" * 32) as memory:
        memory.append("a", message("the code is 4471"))
    with opened(tmp_path) as memory:
        with pytest.raises(KeyMissing):
            memory.erase("a", everything=True)
        assert memory.parts.log.head("a").version == 1
    # A stored request would be carried out first, and fail.
    with opened(tmp_path, master_key="00" * 32) as memory:
        assert memory.parts.eraser.resumed == 0
        assert memory.erase("a", everything=True)["log"]["count"] == 1
