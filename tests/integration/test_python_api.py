from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from support.events import message

from recollect import AsyncRecollect, Recollect
from recollect.api.settings import Settings, load_settings
from recollect.events.catalogue import Message, MessageAdded


def settings(folder: Path) -> Settings:
    return load_settings(data=folder, embedding_model="none")


def test_a_memory_remembers_across_openings(tmp_path: Path) -> None:
    with Recollect(settings=settings(tmp_path)) as memory:
        memory.append("ann", MessageAdded(payload=Message(role="user", text="I love tea")))
        memory.append("ann", [message("and Biscuit the cat", session_id="s")])
    with Recollect(settings=settings(tmp_path)) as memory:
        assert "I love tea" in memory.retrieve("ann", "tea").context
        assert len(memory.events("ann", after=1)["items"]) == 1
        assert len(memory.episodes("ann")["items"]) == 2
        assert [item["id"] for item in memory.sessions("ann")["items"]] == ["s"]
        assert [item["name"] for item in memory.entities("ann")["items"]] == ["Biscuit"]
        assert memory.replay("ann") == 2
        assert memory.check("ann").is_equal
        assert memory.verify("ann").is_intact


def test_what_was_appended_is_found_at_once_without_workers(tmp_path: Path) -> None:
    with Recollect(settings=settings(tmp_path), workers=False) as memory:
        for number in range(10):
            memory.append("ann", message(f"swordfish{number}"))
            assert len(memory.retrieve("ann", f"swordfish{number}").items) == 1


def test_the_async_twin_does_the_same(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncRecollect(settings=settings(tmp_path)) as memory:
            await asyncio.gather(*(memory.append("ann", message(f"swordfish{n}")) for n in range(50)))
            result = await memory.retrieve("ann", "swordfish7")
            assert [item.text for item in result.items] == ["swordfish7"]
            assert len((await memory.episodes("ann"))["items"]) == 50
            assert (await memory.sessions("ann"))["items"] == (await memory.entities("ann"))["items"] == []
            assert len((await memory.events("ann"))["items"]) == 50
            assert len((await memory.namespaces())["items"]) == 1
            assert await memory.replay("ann") == 50
            assert (await memory.check("ann")).is_equal
            assert (await memory.verify("ann")).is_intact

    asyncio.run(run())


def test_importing_the_package_loads_no_model_library() -> None:
    code = "import sys, recollect; recollect.Recollect; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
