"""Changing the embedding model of a folder that is in use: real models, real processes."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest
from support.command_line import recollect
from support.events import message
from support.server import begin, recollect_process, serving
from support.waiting import eventually

from recollect import AsyncRecollect, Recollect
from recollect.api.folder_locks import model_change_lock
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.settings import load_settings
from recollect.events.errors import FolderInUse, ForeignFile, InvalidInput
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.model_files import model_fingerprint
from recollect.projections.embeddings.model_record import (
    ModelRecord,
    RecordedModel,
    model_record_path,
    read_model_record,
    write_model_record,
)
from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.embeddings.windows import SessionWindows
from recollect.projections.projection_settings import DEFAULT_MODEL
from recollect.projections.read_models.layout import namespace_folder

# What torch and transformers warn about among themselves is not ours to fix.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

_SECONDS_MAX = 60.0


def memory_of(data: Path, model: str, *, workers: bool = False) -> Recollect:
    # Without a time limit: what is asked here is what is found, not how fast on a busy machine.
    settings = load_settings(data=data, embedding_model=model, retrieval_budget_ms=30_000)
    return Recollect(settings=settings, workers=workers)


def say(memory: Recollect, count: int, *, namespace: str = "a", first: int = 0) -> None:
    memory.append(namespace, [message(f"message number {n} about tea", session_id="s") for n in range(first, count)])


def ask(memory: Recollect, namespace: str = "a") -> RetrieveResult:
    return memory.retrieve(namespace, f"which tea? {time.monotonic()}", wait=False)


def rows(data: Path, sql: str, *values: Any, namespace: str = "a") -> list[tuple[Any, ...]]:
    path = namespace_folder(data, namespace) / "vectors.db"
    if not path.exists():
        return []
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(10_000)
        return connection.execute(sql, values).fetchall()
    except (apsw.SQLError, apsw.SchemaChangeError):
        # The file is so new that it has no tables.
        return []
    finally:
        connection.close()


def tags(data: Path) -> set[str]:
    tables = "SELECT model FROM embedded UNION SELECT model FROM embeddings UNION SELECT model FROM vectors"
    return {row[0] for row in rows(data, tables)}


@contextmanager
def asking(once: Callable[[], list[str]]) -> Generator[list[str]]:
    """Ask again and again in another thread; what was degraded in any answer is in the list afterwards."""
    degraded: list[str] = []
    stop = threading.Event()
    asked = threading.Event()

    def run() -> None:
        while not stop.is_set():
            degraded.extend(once())
            asked.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert asked.wait(_SECONDS_MAX)
        yield degraded
    finally:
        stop.set()
        thread.join()


def test_retrieval_stays_whole_while_another_model_embeds_and_then_uses_that_one(
    tmp_path: Path, tiny_model: str
) -> None:
    with memory_of(tmp_path, DEFAULT_MODEL) as memory:
        say(memory, 400)
        assert memory.embed() == 400
        used: set[str] = set()
        answers = 0

        def note_model(*_: object) -> None:
            used.add(memory.parts.vectors.embedder.name)

        def once() -> list[str]:
            nonlocal answers
            answers += 1
            result = ask(memory)
            assert any("semantic" in name for item in result.items for name in item.matched_by)
            return list(result.degraded)

        with asking(once) as degraded:
            before = answers
            embedded = memory.embed(tiny_model, on_progress=note_model)
            eventually(lambda: answers > before + 2)
        assert embedded == 400
        assert degraded == []
        assert used == {DEFAULT_MODEL}
        assert (memory.parts.vectors.embedder.name, memory.parts.vectors.embedder.dimensions) == (tiny_model, 32)

    with memory_of(tmp_path, DEFAULT_MODEL) as memory:
        # The folder's own record goes before the setting.
        assert memory.embed() == 0
        assert (memory.parts.vectors.embedder.name, memory.parts.vectors.embedder.dimensions) == (tiny_model, 32)
        assert ask(memory).degraded == ()


def test_after_a_change_the_index_holds_vectors_of_the_new_model_only(
    tmp_path: Path, tiny_model: str, other_model: str
) -> None:
    with memory_of(tmp_path, other_model) as memory:
        say(memory, 300)
        memory.embed()
        ask(memory)
        memory.embed(tiny_model)
        texts = [f"user: message number {n} about tea" for n in range(300)]
        embedder = memory.parts.vectors.embedder
        with memory.parts.read_models.reading("a") as snapshot:
            index = memory.parts.vectors.index("a", snapshot)
            windows = SessionWindows(snapshot.episodes.spoken_after)
            stretches = [
                Stretch.after(windows.context(episode.version, episode.spoken, episode.previous), text)
                for episode, text in zip(snapshot.episodes.to_embed(0, limit=300), texts, strict=True)
            ]
        vectors = [embedding.vector for embedding in embedder.embed_tokens(stretches)]
        expected = dict(enumerate(vectors, start=1))
        for version, vector in expected.items():
            found = index.cosines(vector)
            assert len(found.versions) == 300
            # Each one's nearness is that of the new model's vectors: none is of another space.
            assert found.values[version - 1] == pytest.approx(1, abs=0.01)
            nearness = [float(expected[other] @ vector) for other in expected]
            assert found.values.tolist() == pytest.approx(nearness, abs=0.01)


def test_undo_goes_back_at_once_and_what_came_since_is_embedded_as_news(
    tmp_path: Path, tiny_model: str, other_model: str
) -> None:
    with memory_of(tmp_path, other_model) as memory:
        say(memory, 150)
        memory.embed()
        memory.embed(tiny_model)
        say(memory, 155, first=150)
        memory.embed()

        assert memory.undo_embed() == other_model
        eventually(lambda: memory.parts.vectors.embedder.name == other_model)
        assert ask(memory).degraded == ("semantic: 5 of 155 not embedded yet",)
        assert memory.embed() == 5
        assert ask(memory).degraded == ()

        # Undone twice, it is done again.
        assert memory.undo_embed() == tiny_model
        eventually(lambda: memory.parts.vectors.embedder.name == tiny_model)
        assert memory.embed() == 0


def test_a_change_that_was_killed_goes_on_where_it_was_and_embeds_no_text_twice(
    tmp_path: Path, tiny_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with memory_of(tmp_path, "none") as memory:
        say(memory, 900)
        for first in range(0, 3_000, 1_000):
            say(memory, first + 1_000, namespace="b", first=first)

    process = begin("embed", "--model", tiny_model, data=tmp_path)
    eventually(lambda: len(rows(tmp_path, "SELECT 1 FROM embedded")) > 0)
    process.kill()
    process.wait()
    known = {row[0] for row in rows(tmp_path, "SELECT digest FROM vectors")}
    [(checkpoint,)] = rows(tmp_path, "SELECT checkpoint FROM embedded")
    assert known
    assert read_model_record(tmp_path) is None

    embedded: list[Stretch] = []
    embed = SentenceEmbedder.embed_tokens

    def embed_and_note(self: SentenceEmbedder, stretches: list[Stretch]) -> Any:
        # The basis of token codes is made of words of the model, which nobody said.
        embedded.extend(stretch for stretch in stretches if ":" in stretch.text)
        return embed(self, stretches)

    # Notes what is embedded; the real model does the work.
    monkeypatch.setattr(SentenceEmbedder, "embed_tokens", embed_and_note)
    with memory_of(tmp_path, DEFAULT_MODEL) as memory:
        assert memory.embed(tiny_model) == 900 - checkpoint + 3_000
        assert ask(memory).degraded == ask(memory, "b").degraded == ()
    # The vectors of turns alone are parts of those that are stored, except that of the first turn.
    digests = [stretch.digest for stretch in embedded if stretch.start or " 0 " in stretch.text]
    of_a = {row[0] for row in rows(tmp_path, "SELECT digest FROM vectors")}
    of_b = {row[0] for row in rows(tmp_path, "SELECT digest FROM vectors", namespace="b")}
    # Each namespace remembers for itself: one may be erased without the other.
    assert sorted(digests) == sorted([*(of_a - known), *of_b])


def test_what_is_appended_meanwhile_is_embedded_with_both_models(
    tmp_path: Path, tiny_model: str, other_model: str
) -> None:
    with memory_of(tmp_path, other_model, workers=True) as memory:
        say(memory, 300)
        eventually(lambda: ask(memory).degraded == ())
        appended = False

        def append_once(what: str, _done: int, _total: int | None) -> None:
            nonlocal appended
            if what == "a" and not appended:
                appended = True
                say(memory, 320, first=300)
                eventually(lambda: ask(memory).degraded == ())
                assert memory.parts.vectors.embedder.name == other_model

        memory.embed(tiny_model, on_progress=append_once)
        assert appended
        assert memory.parts.vectors.embedder.name == tiny_model
        assert ask(memory).degraded == ()

        say(memory, 330, first=320)
        eventually(lambda: ask(memory).degraded == ())
        counts = rows(tmp_path, "SELECT count(DISTINCT version) FROM embeddings GROUP BY model ORDER BY 1")
        assert counts == [(320,), (330,)]


def test_vectors_of_a_model_that_nobody_can_go_back_to_are_removed_at_the_next_change(
    tmp_path: Path, tiny_model: str, other_model: str
) -> None:
    third = str(shutil.copytree(tiny_model, tmp_path / "third"))
    (tmp_path / "third" / "extra.txt").write_text("another space")
    data = tmp_path / "data"
    with memory_of(data, other_model) as memory:
        say(memory, 600)
        memory.embed()
        memory.embed(tiny_model)
        assert tags(data) == {model_fingerprint(other_model), model_fingerprint(tiny_model)}
        memory.embed(third)
        assert tags(data) == {model_fingerprint(tiny_model), model_fingerprint(third)}
        assert ask(memory).degraded == ()


@pytest.mark.long
def test_a_running_server_notices_the_change_and_is_whole_all_the_time(
    tmp_path: Path, tiny_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_RETRIEVAL_BUDGET_MS", "30000")
    with memory_of(tmp_path, DEFAULT_MODEL) as memory:
        say(memory, 300)
        memory.embed()
    with serving(tmp_path, model=DEFAULT_MODEL) as server, httpx.Client(base_url=server.base, timeout=60) as http:

        def degraded() -> list[str]:
            query = {"query": f"which tea? {time.monotonic()}"}
            return http.post("/v1/namespaces/a/retrieve", json=query).json()["degraded"]

        def embedding() -> dict[str, Any]:
            return http.get("/health").json()["embedding"]

        eventually(lambda: not degraded())
        runtime = "torch" if find_spec("openvino") is None else "openvino"
        ready = {"state": "ready", "reason": "", "runtime": runtime}
        with asking(degraded) as seen:
            changed = recollect("embed", "--model", tiny_model, data=tmp_path, model=DEFAULT_MODEL)
            assert changed.returncode == 0, changed.stderr
            assert "300 episodes embedded" in changed.stdout
            eventually(lambda: embedding() == {"model": tiny_model, **ready})
        assert seen == []

        http.post("/v1/namespaces/a/events", json=message("one more about tea", session_id="s"))
        eventually(lambda: not degraded())
        tag = model_fingerprint(tiny_model)
        [(checkpoint,)] = rows(tmp_path, "SELECT checkpoint FROM embedded WHERE model = ?", tag)
        # Behind the message come events that jobs derive.
        assert checkpoint >= 301

        undone = recollect("embed", "--undo", data=tmp_path, model=DEFAULT_MODEL)
        assert undone.stdout == f"{DEFAULT_MODEL} is in use again\n"
        eventually(lambda: embedding() == {"model": DEFAULT_MODEL, **ready})
        eventually(lambda: not degraded())

        # Whatever happens to the file now, the server goes on.
        model_record_path(tmp_path).write_text("{")
        assert degraded() == []
        assert embedding() == {"model": DEFAULT_MODEL, **ready}


def test_a_next_model_that_is_gone_is_named_in_health_and_the_one_before_serves(
    tmp_path: Path, tiny_model: str, other_model: str
) -> None:
    gone = shutil.copytree(tiny_model, tmp_path / "gone")
    data = tmp_path / "data"
    with memory_of(data, other_model) as serving_memory, memory_of(data, other_model) as memory:
        say(memory, 20)
        memory.embed()
        assert serving_memory.embed() == 0
        memory.embed(str(gone))
        shutil.rmtree(gone)
        eventually(lambda: serving_memory.parts.active_model.status().get("next", {}).get("state") == "failed")
        assert ask(serving_memory).degraded == ()
        assert serving_memory.parts.vectors.embedder.name == other_model


def test_a_model_that_cannot_be_loaded_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    with memory_of(tmp_path, "none") as memory:
        say(memory, 3)
        for model in ("none", "", None):
            with pytest.raises(InvalidInput):
                memory.embed(model)
        with pytest.raises(InvalidInput, match="all namespaces"):
            memory.embed("x", namespace="a")
        with pytest.raises(InvalidInput, match="never changed"):
            memory.undo_embed()
    refused = recollect("embed", "--model", str(tmp_path / "no-model"), data=tmp_path)
    assert refused.returncode == 2
    assert "could not be loaded" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert recollect("embed", "--undo", "--namespace", "a", data=tmp_path).returncode == 2
    assert not model_record_path(tmp_path).exists()
    assert not (namespace_folder(tmp_path, "a") / "vectors.db").exists()


def test_a_record_has_the_fields_of_released_files(tmp_path: Path) -> None:
    content = {"current": {"name": "x", "tag": "f1"}, "previous": {"name": "y", "tag": "f2"}}
    model_record_path(tmp_path).write_text(json.dumps(content))
    record = read_model_record(tmp_path)
    assert record is not None
    assert record == ModelRecord(RecordedModel("x", "f1"), RecordedModel("y", "f2"))
    write_model_record(tmp_path, record)
    assert json.loads(model_record_path(tmp_path).read_text()) == content


@pytest.mark.parametrize("content", ["", "{", "[]", '{"current": {"name": "x"}, "previous": null}', '"x"', "\0" * 100])
def test_a_damaged_record_is_a_clear_error(tmp_path: Path, content: str) -> None:
    model_record_path(tmp_path).write_text(content)
    with pytest.raises(ForeignFile, match="embedding.json is damaged"):
        memory_of(tmp_path, DEFAULT_MODEL)


def test_a_damaged_record_ends_a_command_with_2(tmp_path: Path) -> None:
    model_record_path(tmp_path).write_text("{")
    refusals = [recollect(*command, data=tmp_path, model=DEFAULT_MODEL) for command in (["embed"], ["embed", "--undo"])]
    refusals.append(recollect_process("serve", "--port", "0", data=tmp_path, model=DEFAULT_MODEL))
    for refused in refusals:
        assert refused.returncode == 2
        assert "embedding.json is damaged" in refused.stderr
        assert "Traceback" not in refused.stderr


@pytest.mark.long
def test_none_in_the_environment_turns_embeddings_off_whatever_is_recorded(tmp_path: Path, tiny_model: str) -> None:
    with memory_of(tmp_path, "none") as memory:
        say(memory, 3)
        assert memory.embed(tiny_model) == 3
        assert ask(memory).degraded == ("semantic: turned off; name a model in RECOLLECT_EMBEDDING_MODEL",)
        with pytest.raises(InvalidInput, match="no earlier model is recorded"):
            memory.undo_embed()
    with memory_of(tmp_path, DEFAULT_MODEL) as memory:
        assert memory.parts.vectors.embedder.name == tiny_model


def test_other_weights_at_the_same_path_are_another_space(tmp_path: Path, tiny_model: str, other_model: str) -> None:
    path = tmp_path / "model"
    shutil.copytree(tiny_model, path)
    data = tmp_path / "data"
    with memory_of(data, other_model) as memory:
        say(memory, 20)
        memory.embed()
        memory.embed(str(path))
        memory.embed(DEFAULT_MODEL)
    assert model_fingerprint(str(path)) == model_fingerprint(tiny_model) != model_fingerprint(other_model)
    shutil.copyfile(Path(other_model) / "model.safetensors", path / "model.safetensors")
    assert model_fingerprint(str(path)) != model_fingerprint(tiny_model)
    with memory_of(data, other_model) as memory:
        with pytest.raises(InvalidInput, match="have changed, so its vectors do not fit"):
            memory.undo_embed()
        assert memory.embed(str(path)) == 20


def test_a_model_that_moved_is_the_same_space(tmp_path: Path, tiny_model: str) -> None:
    moved = str(shutil.copytree(tiny_model, tmp_path / "moved"))
    data = tmp_path / "data"
    with memory_of(data, tiny_model) as memory:
        say(memory, 20)
        memory.embed()
        assert memory.embed(moved) == 0
        assert memory.parts.vectors.embedder.name == moved
        assert ask(memory).degraded == ()


def test_one_process_at_a_time_changes_the_model(tmp_path: Path, tiny_model: str) -> None:
    with memory_of(tmp_path, "none") as memory, model_change_lock(tmp_path):
        with pytest.raises(FolderInUse, match="changes the embedding model"):
            memory.embed(tiny_model)
        with pytest.raises(FolderInUse, match="changes the embedding model"):
            memory.undo_embed()


async def test_the_async_twin_changes_the_model_too(tmp_path: Path, tiny_model: str, other_model: str) -> None:
    async with AsyncRecollect(
        settings=load_settings(data=tmp_path, embedding_model=other_model), workers=False
    ) as memory:
        await memory.append("a", message("red apples"))
        assert await memory.embed(namespace="a") == 1
        assert await memory.embed(tiny_model) == 1
        assert await memory.undo_embed() == other_model
