"""What was erased is gone from every file, and the rest answers as if it had never been said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from integration.test_log_contract import BACKENDS, new_log
from integration.test_residue_scan import scans_of
from support.embedders import HashingEmbedder
from support.events import Event, message

from recollect import Recollect
from recollect.api.importers.formats.jsonl_import import import_jsonl
from recollect.api.pages.export import export_lines
from recollect.api.settings import load_settings
from recollect.events.errors import Erased, InvalidEvent, InvalidInput, NotFound
from recollect.events.integrity.backup import backup, restore
from recollect.events.integrity.receipt import verify_receipt
from recollect.jobs.erasure import eraser as eraser_module
from recollect.jobs.queue.run_store import DeadLetter
from recollect.projections.embeddings import vector_file
from recollect.projections.embeddings.stored_vectors import SCALE_BYTES
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.read_models.layout import VECTORS_FILE, namespace_folder

#: A word that is in no other file; `number` makes it one of many.
WORD = "Zqcanary"


def opened(folder: Path, url: str | None = None, **settings: Any) -> Recollect:
    """Open a memory without a model and without workers."""
    values = {"data": folder, "embedding_model": "none", **({} if url is None else {"log": url}), **settings}
    return Recollect(settings=load_settings(**values), workers=False)


def talk(prefix: str, *, canaries: Iterable[int]) -> list[Event]:
    """Twelve messages by two people in two sessions; the messages in `canaries` have words of their own everywhere."""
    chosen = set(canaries)
    events: list[Event] = []
    for number in range(12):
        speaker = "Ann" if number % 2 else "Bob"
        marked = number in chosen
        word = f"{WORD}{number}" if marked else f"Plain{number}"
        events.append(
            message(
                f"My sister {word} lives in {word}town. I love {word} cakes and I always want short answers.",
                name=speaker,
                id=f"{prefix}-{word}-{number}",
                session_id=f"{prefix}-s{number // 6}{WORD if chosen >= set(range(6)) and number < 6 else ''}",
                occurred_at=f"2026-01-0{1 + number // 6}T10:{number:02}:00Z",
                correlation_id=word,
            )
        )
    return events


def live(memory: Recollect, namespace: str, events: list[Event]) -> None:
    """Let a memory do all it does with `events`: extract, embed, summarise, retrieve, look back, archive."""
    memory.append(namespace, events[:7])
    memory.compact(namespace, now="2026-01-02T11:00:00Z")
    memory.append(namespace, events[7:])
    memory.compact(namespace, now="2026-01-20T11:00:00Z")
    with closing(memory.parts.active_model.open_vectors(HashingEmbedder())) as vectors:
        vectors.embed_new(namespace)
        with memory.parts.read_models.reading(namespace) as snapshot:
            assert vectors.index(namespace, snapshot).rows
    memory.retrieve(namespace, f"Who lives in {WORD}3town?")
    memory.retrieve(namespace, "What about my sister?", as_of=9)
    died = DeadLetter(
        id=namespace, queue="think", actor="think", arguments=(namespace,), failed_at_us=1, error=f"cannot read {WORD}"
    )
    memory.parts.run_store.add_dead_letter(died)
    archive = memory.parts.log.archive
    if archive is not None:
        archive.seal(memory.parts.log, namespace)
        memory.parts.log.prune(namespace)
        memory.append(namespace, message("Good night.", id=f"{namespace}-night"))


def bytes_of(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


#: Each scope: the canaries that it erases, and the parameters of the erasure.
SCOPES: dict[str, tuple[list[int], dict[str, Any]]] = {
    "namespace": (list(range(12)), {"everything": True}),
    "subject": (list(range(1, 12, 2)), {"subject": "ann"}),
    "session": (list(range(6)), {"session_id": f"session-s0{WORD}"}),
    "message": ([3, 8], {"event_ids": [f"message-{WORD}3-3", f"message-{WORD}8-8"]}),
}


@pytest.fixture(params=BACKENDS, scope="module")
def erased(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[tuple[Recollect, Path]]:
    """A memory with four namespaces, each of which one scope was erased from."""
    folder = tmp_path_factory.mktemp("erased")
    # All namespaces of this process get a vector file.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(vector_file, "FILE_ROWS_MIN", 1)
        yield from _erased(folder, request)


def _erased(folder: Path, request: pytest.FixtureRequest) -> Generator[tuple[Recollect, Path]]:
    with opened(folder, new_log(request.param, request, folder)) as memory:
        for scope, (canaries, _) in SCOPES.items():
            live(memory, scope, talk(scope, canaries=canaries))
        assert WORD.encode() in bytes_of(folder)
        vectors = stored_vectors(folder)
        assert vectors
        assert [*folder.rglob("*-int8")]
        for scope, (_, names) in SCOPES.items():
            memory.erase(scope, **names)
        yield memory, folder


def stored_vectors(folder: Path) -> set[bytes]:
    """Return the bytes of all vectors, also as the int8 file has them, and of all token codes."""
    found: set[bytes] = set()
    for path in folder.rglob("vectors.db"):
        with closing(apsw.Connection(str(path))) as connection:
            for table, column in (("vectors", "vector"), ("token_codes", "codes")):
                found |= {row[0] for row in connection.execute(f"SELECT {column} FROM {table}")}
            for (vector,) in connection.execute("SELECT vector FROM vectors"):
                found.add(vector[:-SCALE_BYTES])
    return found


def test_no_file_has_a_word_of_what_was_erased(erased: tuple[Recollect, Path], request: pytest.FixtureRequest) -> None:
    memory, folder = erased
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert WORD.encode() not in content, path
            assert WORD.lower().encode() not in content, path
    if memory.parts.log.archive is None and "shared_postgres" in request.fixturenames:
        # Payloads were never plain there; headers stay in dead rows until the server reuses them.
        server = request.getfixturevalue("shared_postgres")
        assert b"I love Zqcanary" not in bytes_of(server.data)


def test_what_is_left_is_served_and_consistent(erased: tuple[Recollect, Path]) -> None:
    memory, _ = erased
    for scope in SCOPES:
        assert memory.verify(scope).is_intact
        assert memory.check(scope).is_equal
        assert WORD not in json.dumps([memory.list(scope, name) for name in ("facts", "entities", "episodes")])
    assert memory.facts("message")["items"]
    assert not memory.episodes("namespace")["items"]


def test_vectors_of_erased_texts_are_gone(tmp_path: Path) -> None:
    with opened(tmp_path / "a") as memory, opened(tmp_path / "b") as control:
        events = talk("message", canaries=[3, 8])
        live(memory, "message", events)
        live(control, "message", [event for event in events if WORD not in event["id"]])
        others = stored_vectors(tmp_path / "a") - stored_vectors(tmp_path / "b")
        assert others
        memory.erase("message", **SCOPES["message"][1])
    content = bytes_of(tmp_path / "a")
    assert not any(vector in content for vector in others)


def test_erased_ids_stay_known_and_an_erased_person_stays_gone(erased: tuple[Recollect, Path]) -> None:
    memory, _ = erased
    again = talk("message", canaries=[3, 8])[3]
    with pytest.raises(Erased):
        memory.append("message", again)
    with pytest.raises(Erased):
        memory.append("subject", message("a late message", name=" ANN "))
    with pytest.raises(Erased):
        memory.append("namespace", message("anything"))
    memory.append("subject", message("still here", name="Bob"))
    assert memory.readmit("subject", subject="Ann")
    memory.append("subject", message("a new beginning", name="Ann"))


def test_receipts_are_signed_chained_and_fit_the_log(erased: tuple[Recollect, Path]) -> None:
    memory, _ = erased
    receipts = memory.receipts()
    assert [receipt["scope"]["kind"] for receipt in receipts] == list(SCOPES)
    assert [receipt["prev_receipt_sha256"] is None for receipt in receipts] == [True, False, False, False]
    # As they are stored and printed: keys in order, no spaces.
    stored = [json.dumps(receipt, sort_keys=True, separators=(",", ":")).encode() for receipt in receipts]
    assert verify_receipt(stored[1], previous=stored[0]) == []
    assert "missing" in verify_receipt(stored[2], previous=stored[0])[0]
    for receipt in receipts:
        content = json.dumps(receipt).encode()
        assert verify_receipt(content, log=memory.parts.log, public_key=receipts[0]["sig"]["public_key"]) == []
        assert verify_receipt(content, public_key="00" * 32)
        assert receipt["exclusions"]
        receipt["log"]["count"] += 1
        assert "signature" in verify_receipt(json.dumps(receipt).encode())[0]
        assert WORD not in content.decode()
    assert receipts[0]["keys"]
    with pytest.raises(InvalidInput):
        verify_receipt(b"{}")


def test_the_files_are_searched_for_the_erased_texts(erased: tuple[Recollect, Path]) -> None:
    memory, _ = erased
    for receipt in memory.receipts():
        own, shared = scans_of(receipt)
        assert own["residue_windows"] >= 10
        assert (own["residue_hits"], own["is_complete"], shared["is_complete"]) == (0, True, True)
        assert own["bytes"] > 100_000


def test_an_erasure_without_workers_loads_the_model_and_extracts_again(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.append("a", [message("I live in Porto.", id="m1"), message("I work at Helio.", id="m2", name="Ann")])
        memory.settle("a")
    with Recollect(settings=load_settings(data=tmp_path), workers=False) as memory:
        memory.erase("a", event_ids=["m1"])
        assert memory.parts.vectors.embedder.wait_ready(0)
        assert [fact["object"] for fact in memory.facts("a")["items"]] == ["Helio"]


def test_a_dry_run_counts_and_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        live(memory, "a", talk("a", canaries=[]))
        head = memory.parts.log.head("a")
        plan = memory.erase("a", subject="Ann", dry_run=True)
        assert plan["by_type"]["message.added"] == 6
        assert plan["derived"] == plan["events"] - 6 > 0
        assert memory.parts.log.head("a") == head
        assert memory.receipts() == []


def test_a_forgotten_fact_stays_forgotten_and_a_pin_stays_when_a_neighbour_is_erased(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        said = ("I live in Porto.", "My dog is called Rex.", "I work at Acme.")
        memory.append("a", [message(text, name="Ann", id=f"m{number}") for number, text in enumerate(said)])
        memory.compact("a")
        facts = {fact["object"]: fact["id"] for fact in memory.facts("a")["items"]}
        assert {"Porto", "Acme"} <= facts.keys()
        memory.forget("a", facts["Porto"], reason="private")
        memory.pin("a", facts["Acme"])
        memory.erase("a", event_ids=["m1"])
        after = {fact["object"]: fact for fact in memory.facts("a")["items"]}
        assert "Porto" not in after
        assert after["Acme"]["pinned"]
        assert after["Acme"]["id"] != facts["Acme"]
        assert memory.check("a").is_equal


def test_a_correction_goes_with_the_fact_that_it_corrects(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.append("a", [message("I live in Porto.", name="Ann", session_id="s1")])
        memory.append("a", [message("I live in Braga.", name="Bob", session_id="s2")])
        memory.compact("a")
        facts = {fact["object"]: fact["id"] for fact in memory.facts("a")["items"]}
        memory.update("a", facts["Porto"], text=f"{WORD}ville")
        memory.update("a", facts["Braga"], text="Faro")
        memory.erase("a", session_id="s1")
        assert [fact["object"] for fact in memory.list("a", "facts", filters={"status": "active"})["items"]] == ["Faro"]
    assert WORD.encode() not in bytes_of(tmp_path)


@pytest.mark.parametrize("which", ["first", "last"])
def test_all_versions_of_an_updated_message_go_together(tmp_path: Path, which: str) -> None:
    with opened(tmp_path) as memory:
        memory.append("a", [message(f"my {WORD} code is 4471", id="m1"), message("hello", causation_id="m1")])
        updated = memory.update("a", "m1", text=f"my {WORD} code is 4472")
        memory.erase("a", event_ids=["m1" if which == "first" else str(updated["id"])])
        assert [item["text"] for item in memory.episodes("a")["items"]] == ["hello"]
    assert WORD.encode() not in bytes_of(tmp_path)


def test_a_message_that_repeats_a_recalled_one_goes_with_it(tmp_path: Path) -> None:
    secret = f"the {WORD} code of my garden gate is four four seven one"
    with opened(tmp_path) as memory:
        memory.append("a", [message(f"Remember that {secret}.", id="m1", session_id="s"), message("I like tea.")])
        memory.retrieve("a", "What is the code of my garden gate?", session_id="s")
        memory.append("a", message(f"You said that {secret}.", role="assistant", session_id="s", id="echo"))
        memory.erase("a", event_ids=["m1"])
        assert [item["text"] for item in memory.episodes("a")["items"]] == ["I like tea."]
    assert WORD.encode() not in bytes_of(tmp_path)


def test_wrong_requests_are_refused(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.append("a", message("hello", id="m1"))
        wrongs: list[dict[str, Any]] = [
            {},
            {"everything": True, "subject": "Ann"},
            {"subject": " "},
            {"event_ids": []},
        ]
        for wrong in wrongs:
            with pytest.raises(InvalidInput):
                memory.erase("a", **wrong)
        missings: list[dict[str, Any]] = [{"event_ids": ["nothing"]}, {"session_id": "none"}]
        for missing in missings:
            with pytest.raises(NotFound):
                memory.erase("a", **missing)
        with pytest.raises(NotFound):
            memory.erase("unknown", everything=True)
        for name in ("namespace.erased", "events.erased"):
            with pytest.raises(InvalidEvent, match="recorded by an erasure"):
                memory.append("a", {"type": name, "payload": {}})


class KilledError(BaseException):
    """The process is gone."""


STEPS = ("before the log", "after the log", "after the purge", "after the keys")


@pytest.mark.parametrize("step", STEPS)
def test_an_erasure_that_was_killed_is_completed_when_the_memory_is_opened_again(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(tmp_path / "a")
    live(memory, "a", talk("a", canaries=range(1, 12, 2)))

    def kill(*_: Any, **__: Any) -> None:
        # A kill leaves the files as they are: they are copied while the program holds them.
        shutil.copytree(tmp_path / "a", tmp_path / "b", ignore=shutil.ignore_patterns("*-shm"))
        raise KilledError

    eraser = memory.parts.eraser
    with monkeypatch.context() as patch:
        match step:
            case "before the log":
                patch.setattr(memory.parts.log, "erase", kill)
            case "after the log":
                patch.setattr(memory.parts.read_models.purges, "follow", kill)
            case "after the purge":
                patch.setattr(memory.parts.log.keys, "destroy", kill)
            case _:
                patch.setattr(eraser_module, "signed", kill)
        with pytest.raises(KilledError):
            eraser.erase("a", "subject", ["Ann"])
    memory.close()
    with opened(tmp_path / "b") as after:
        assert after.parts.eraser.resumed == 1
        [receipt] = after.receipts()
        assert verify_receipt(json.dumps(receipt).encode(), log=after.parts.log) == []
        assert receipt["log"]["count"] >= 6
        assert len(receipt["keys"]) == 1
        assert after.verify("a").is_intact
    assert WORD.encode() not in bytes_of(tmp_path / "b")
    with opened(tmp_path / "b") as again:
        assert again.parts.eraser.resumed == 0


def test_erasures_are_repeated_on_a_log_restored_from_an_older_backup(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "backup"
    with opened(home) as memory:
        live(memory, "a", talk("a", canaries=[3, 8, 9]))
        backup(home / "log.db", copy)
        memory.erase("a", event_ids=[f"a-{WORD}3-3", f"a-{WORD}8-8"])
        memory.erase("a", subject="Ann")
    restore(copy, home / "log.db")
    for replaced in home.glob("*replaced-*"):
        shutil.rmtree(replaced) if replaced.is_dir() else replaced.unlink()
    with opened(home) as memory:
        assert memory.parts.eraser.resumed == 2
        assert memory.verify("a").is_intact
        memory.replay("a")
        assert WORD not in json.dumps(memory.episodes("a"))
        assert all("Ann" not in str(item) for item in memory.events("a")["items"])
    assert WORD.encode() not in bytes_of(home)


def test_a_log_of_an_earlier_release_is_erased_with_its_free_space(tmp_path: Path) -> None:
    released = sorted((Path(__file__).parents[1] / "released").glob("log-*.db"))[-1]
    (tmp_path / "home").mkdir()
    shutil.copy(released, tmp_path / "home" / "log.db")
    assert b"Porto" in released.read_bytes()
    with opened(tmp_path / "home") as memory:
        for namespace in [item["namespace"] for item in memory.namespaces()["items"]]:
            memory.erase(namespace, everything=True)
            assert memory.verify(namespace).is_intact
    assert b"Porto" not in bytes_of(tmp_path)


def test_an_import_of_an_old_export_leaves_erased_events_out(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.append("a", [message(f"text {number}", id=f"m{number}") for number in range(3)])
        exported = list(export_lines(memory.parts.log, "a"))
        memory.erase("a", event_ids=["m1"])
        imported = import_jsonl(memory.parts.log, exported, namespace=None, on_progress=lambda _: None)
        assert (imported.added, imported.duplicates, imported.erased) == (0, 2, 1)
        assert len(list(export_lines(memory.parts.log, "a"))) == 3


def test_another_machine_on_the_log_purges_its_own_files(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    url = new_log("postgres", request, tmp_path)
    keys = tmp_path / "keys"
    with opened(tmp_path / "one", url, keys=keys) as one, opened(tmp_path / "two", url, keys=keys) as two:
        live(one, "a", talk("a", canaries=[3]))
        for memory in (two, one):
            memory.retrieve("a", f"{WORD}3")
            memory.retrieve("a", f"{WORD}3", as_of=9)
        for machine in ("one", "two"):
            assert WORD.encode() in bytes_of(tmp_path / machine)
        one.erase("a", event_ids=[f"a-{WORD}3-3"])
        # A retrieval purges too, and leaves the rest to the background when its time is over.
        two.parts.read_models.catch_up("a")
        assert "Plain5" in two.retrieve("a", "Who lives in Plain5town?").context
    assert WORD.encode() not in bytes_of(tmp_path / "one")
    assert WORD.encode() not in bytes_of(tmp_path / "two")


class _Interrupted(HashingEmbedder):
    """Embeds, but another process erases something while it is at its first batch."""

    def __init__(self, erase: Callable[[], object]) -> None:
        super().__init__()
        self.erase: Callable[[], object] | None = erase

    def embed_tokens(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        erase, self.erase = self.erase, None
        if erase is not None:
            erase()
        return super().embed_tokens(stretches)


def test_what_another_process_erases_while_it_is_embedded_gets_no_vector(tmp_path: Path) -> None:
    with opened(tmp_path) as memory, opened(tmp_path) as other:
        memory.append("a", [message(text, id=text, session_id="s") for text in ("apples", "pears")])
        memory.parts.read_models.catch_up("a")
        embedder = _Interrupted(lambda: other.erase("a", event_ids=["apples"]))
        with closing(memory.parts.active_model.open_vectors(embedder)) as vectors:
            vectors.embed_new("a")
        assert embedder.embedded[-1] == "user: pears"
        file = namespace_folder(tmp_path, "a") / VECTORS_FILE
        with closing(apsw.Connection(str(file))) as connection:
            assert connection.execute("SELECT count(*) FROM vectors").fetchall() == [(1,)]
