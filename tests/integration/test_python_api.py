from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from support.embedders import HashingEmbedder
from support.events import message

from recollect import AsyncClient, AsyncRecollect, Client, Recollect
from recollect.api.memory.embedding_wait import EmbeddingWait
from recollect.api.settings import Settings, load_settings
from recollect.events.catalogue import Message, MessageAdded
from recollect.events.errors import InvalidInput, InvalidNamespace, MemoryClosed
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.embeddings.vectors import Vectors


def settings(folder: Path) -> Settings:
    return load_settings(data=folder, embedding_model="none")


def test_a_memory_remembers_across_openings(tmp_path: Path) -> None:
    # Workers would append what they derive while the events are counted.
    with Recollect(settings=settings(tmp_path), workers=False) as memory:
        memory.append("ann", MessageAdded(payload=Message(role="user", text="I love tea")))
        memory.append("ann", [message("and Biscuit the cat", session_id="s")])
    with Recollect(settings=settings(tmp_path), workers=False) as memory:
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


@pytest.mark.parametrize("workers", [True, False])
def test_the_first_retrieval_finds_by_meaning_what_was_just_appended(
    tmp_path: Path, tiny_model: str, workers: bool
) -> None:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model=tiny_model), workers=workers) as memory:
        for number in range(3):
            memory.append("ann", message(f"swordfish {number}"))
            result = memory.retrieve("ann", "swordfish")
            assert result.degraded == ()
            assert len(result.items) == number + 1
        _, turn = memory.append_and_retrieve("ann", message("swordfish again", session_id="s"))
        assert turn is not None
        assert turn.degraded == ()


def test_a_retrieval_that_does_not_wait_names_what_is_missing(tmp_path: Path, tiny_model: str) -> None:
    for number, wait in enumerate((False, True)):
        patient = 0.0 if wait else 60.0
        one = load_settings(data=tmp_path / str(number), embedding_model=tiny_model, model_wait_seconds=patient)
        with Recollect(settings=one, workers=False) as memory:
            memory.append("ann", message("swordfish"))
            result = memory.retrieve("ann", "swordfish", wait=wait)
            assert [item.text for item in result.items] == ["swordfish"]
            assert [part.partition(":")[0] for part in result.degraded] == ["semantic"]


def test_a_model_that_does_not_become_ready_is_waited_for_once(tmp_path: Path) -> None:
    class LoadingEmbedder(HashingEmbedder):
        def __init__(self) -> None:
            super().__init__(state="loading")
            self.waits: list[float] = []

        def wait_ready(self, timeout_seconds: float) -> bool:
            self.waits.append(timeout_seconds)
            threading.Event().wait(timeout_seconds)
            return False

    embedder = LoadingEmbedder()
    one = load_settings(data=tmp_path, embedding_model="none", model_wait_seconds=0.05)
    with Recollect(settings=one, workers=False) as memory:
        vectors = Vectors(tmp_path, memory.parts.read_models, embedder)
        loading: Any = SimpleNamespace(vectors=lambda: vectors)
        waiting = EmbeddingWait(replace(memory.parts, active_model=loading))
        waiting.wait(["ann"])
        waiting.wait(["ann"])
    first, second = embedder.waits
    # The rounding of a clock that counts from the start of the machine is about a nanosecond.
    assert 0 < first <= 0.05 + 1e-6
    assert second == 0


@pytest.mark.parametrize(("model_wait_seconds", "waits"), [(60.0, True), (0.001, False)])
def test_the_first_batch_of_another_thread_is_waited_for_as_long_as_the_model(
    tmp_path: Path, model_wait_seconds: float, waits: bool
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class SlowEmbedder(HashingEmbedder):
        def embed_tokens(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
            if threading.current_thread() is not threading.main_thread():
                begun.set()
                assert go_on.wait(30)
            return super().embed_tokens(stretches)

    one = load_settings(
        data=tmp_path, embedding_model="none", model_wait_seconds=model_wait_seconds, retrieval_budget_ms=50
    )
    with Recollect(settings=one, workers=False) as memory:
        memory.append("ann", message("swordfish"))
        memory.parts.read_models.catch_up("ann")
        vectors = Vectors(tmp_path, memory.parts.read_models, SlowEmbedder())
        ready: Any = SimpleNamespace(vectors=lambda: vectors)
        other = threading.Thread(target=vectors.embed_new, args=("ann",))
        other.start()
        assert begun.wait(30)
        if waits:
            threading.Timer(0.3, go_on.set).start()
        EmbeddingWait(replace(memory.parts, active_model=ready)).wait(["ann"])
        assert go_on.is_set() == waits
        go_on.set()
        other.join()


def test_a_list_that_does_not_exist_is_refused_with_the_names_of_those_that_do(tmp_path: Path) -> None:
    with (
        Recollect(settings=settings(tmp_path), workers=False) as memory,
        pytest.raises(InvalidInput, match="'memories'.*episodes.*facts.*preferences"),
    ):
        memory.list("ann", "memories")


@pytest.mark.parametrize("owner", [Recollect, AsyncRecollect, Client, AsyncClient])
@pytest.mark.parametrize(
    ("name", "meant"),
    [("search", "retrieve"), ("add_memory", "add"), ("get_all", "list"), ("delete", "forget or erase")],
)
def test_a_method_of_another_library_is_answered_with_ours(owner: type[Recollect], name: str, meant: str) -> None:
    memory = owner.__new__(owner)
    with pytest.raises(AttributeError, match=f"has no attribute {name!r}; did you mean {meant}\\?"):
        getattr(memory, name)
    assert not hasattr(memory, "__deepcopy__")


def test_a_number_is_not_a_namespace(tmp_path: Path) -> None:
    wrong: Any = 42
    with Recollect(settings=settings(tmp_path), workers=False) as memory:
        for call in (lambda: memory.add(wrong, "I love tea"), lambda: memory.retrieve(wrong, "tea")):
            with pytest.raises(InvalidNamespace, match=r"give text, such as str\(user_id\), not int"):
                call()


def test_a_closed_memory_says_so_in_every_call(tmp_path: Path) -> None:
    memory = Recollect(settings=settings(tmp_path), workers=False)
    memory.add("ann", "I love tea")
    memory.close()
    memory.close()
    for call in (
        lambda: memory.add("ann", "I love coffee"),
        lambda: memory.retrieve("ann", "tea"),
        lambda: memory.facts("ann"),
        lambda: memory.traces("ann"),
        lambda: memory.settle("ann"),
        lambda: next(memory.follow("ann")),
    ):
        with pytest.raises(MemoryClosed, match=r"closed; open it again with recollect\.Recollect"):
            call()


def test_a_closed_client_says_so() -> None:
    with Client("http://127.0.0.1:1") as client:
        pass
    with pytest.raises(MemoryClosed, match=r"closed; open another with recollect\.Client"):
        client.retrieve("ann", "tea")


def test_importing_the_package_loads_no_model_library() -> None:
    code = "import sys, recollect; recollect.Recollect; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
