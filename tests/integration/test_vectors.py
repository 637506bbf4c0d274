from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.embedders import HashingEmbedder
from support.events import message

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import RecollectError
from recollect.events.validation import drafts
from recollect.projections.embeddings.embedder import Embedder
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.embeddings.vectors import EmbeddingBacklog, Vectors
from recollect.projections.read_models.layout import namespace_folder
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.text.text_flags import QUESTION, text_flags

Open = Callable[[Embedder], Vectors]


@pytest.fixture
def open_vectors(tmp_path: Path, models: ReadModels) -> Generator[Open]:
    opened: list[Vectors] = []

    def run(embedder: Embedder) -> Vectors:
        opened.append(Vectors(tmp_path, models, embedder))
        return opened[-1]

    yield run
    for vectors in opened:
        vectors.close()


def say(log: SqliteLog, models: ReadModels, *texts: str) -> None:
    log.append("a", drafts([message(text, session_id="s") for text in texts]))
    models.catch_up("a")


def pending(models: ReadModels, vectors: Vectors) -> EmbeddingBacklog:
    with models.reading("a") as snapshot:
        return vectors.backlog("a", snapshot)


def nearest(models: ReadModels, vectors: Vectors, embedder: Embedder, query: str) -> list[int]:
    with models.reading("a") as snapshot:
        index = vectors.index("a", snapshot)
    versions, cosines = index.cosines(embedder.embed_query(query).vector)
    return [int(versions[place]) for place in np.argsort(-cosines, kind="stable")[:3]]


def test_as_many_files_of_vectors_stay_open_as_of_read_models(log: SqliteLog, tmp_path: Path) -> None:
    with ExitStack() as stack:
        models = stack.enter_context(closing(ReadModels(tmp_path, log, open_files_max=2)))
        vectors = stack.enter_context(closing(Vectors(tmp_path, models, HashingEmbedder())))
        for name in "abcd":
            log.append(name, drafts([message("red apples")]))
            models.catch_up(name)
            assert vectors.embed_new(name) == 1
        assert (models.live.count, vectors.open_count) == (2, 2)


def test_what_is_embedded_is_found_and_counted(log: SqliteLog, models: ReadModels, open_vectors: Open) -> None:
    embedder = HashingEmbedder()
    vectors = open_vectors(embedder)
    say(log, models, "red apples", "green pears", "blue plums")
    assert pending(models, vectors) == EmbeddingBacklog(3, 3)

    assert vectors.embed_new("a") == 3
    assert pending(models, vectors).missing == 0
    assert nearest(models, vectors, embedder, "user: green pears")[0] == 2
    # The model has read each turn once, after those before it.
    assert embedder.embedded == [
        "user: red apples",
        "user: red apples\nuser: green pears",
        "user: red apples\nuser: green pears\nuser: blue plums",
    ]


def test_the_flags_of_the_texts_are_stored_with_the_vectors_and_removed_with_them(
    log: SqliteLog, models: ReadModels, open_vectors: Open, tmp_path: Path
) -> None:
    vectors = open_vectors(HashingEmbedder())
    texts = ["When is the dentist?", "The dentist is on Friday at 9:30, it costs 80 euros.", "Thanks!"]
    say(log, models, *texts)
    with models.reading("a") as snapshot:
        assert vectors.text_flags("a", snapshot, [1, 2, 3]) == {}
    vectors.embed_new("a")
    with models.reading("a") as snapshot:
        stored = vectors.text_flags("a", snapshot, [1, 2, 3, 99])
    assert stored == {version: text_flags(text) for version, text in enumerate(texts, 1)}
    assert [flags & QUESTION for flags in stored.values()] == [QUESTION, 0, 0]
    vectors.prune("a", 4)
    with closing(apsw.Connection(str(namespace_folder(tmp_path, "a") / "vectors.db"))) as connection:
        assert connection.execute("SELECT count(*) FROM text_flags").fetchall() == [(0,)]


def test_the_index_is_extended_by_what_comes_later(log: SqliteLog, models: ReadModels, open_vectors: Open) -> None:
    embedder = HashingEmbedder()
    vectors = open_vectors(embedder)
    say(log, models, "red apples")
    vectors.embed_new("a")
    with models.reading("a") as snapshot:
        index = vectors.index("a", snapshot)
    say(log, models, "green pears")
    vectors.embed_new("a")
    with models.reading("a") as snapshot:
        assert vectors.index("a", snapshot) is index
    assert nearest(models, vectors, embedder, "green pears")[0] == 2


def test_the_same_text_is_embedded_once_even_after_a_rebuild(
    tmp_path: Path, log: SqliteLog, models: ReadModels, open_vectors: Open
) -> None:
    embedder = HashingEmbedder()
    say(log, models, "again", "again", "again", "again", "again")
    open_vectors(embedder).embed_new("a")
    assert embedder.embedded == ["\n".join(["user: again"] * count) for count in range(1, 6)]

    models.replay("a")
    fresh = HashingEmbedder()
    vectors = open_vectors(fresh)
    assert vectors.embed_new("a") == 0
    assert fresh.embedded == []


def test_spaces_of_two_models_do_not_mix(log: SqliteLog, models: ReadModels, open_vectors: Open) -> None:
    say(log, models, "red apples", "green pears")
    open_vectors(HashingEmbedder("one")).embed_new("a")
    second = HashingEmbedder("two")
    vectors = open_vectors(second)
    assert pending(models, vectors).missing == 2
    assert nearest(models, vectors, second, "green pears") == []
    vectors.embed_new("a")
    assert nearest(models, vectors, second, "green pears")[0] == 2


Step = tuple[str, str]
_MODELS = ("one", "two", "three")
_STEPS = st.lists(st.tuples(st.sampled_from(["say", "embed", "forget others than"]), st.sampled_from(_MODELS)))


@given(steps=_STEPS)
def test_an_index_holds_the_vectors_of_its_own_model_and_all_of_them(steps: list[Step]) -> None:
    with TemporaryDirectory() as folder, closing(SqliteLog(Path(folder) / "log.db")) as log, ExitStack() as stack:
        models = stack.enter_context(closing(ReadModels(Path(folder), log)))
        opened: dict[str, Vectors] = {}
        for dimensions, name in enumerate(_MODELS, start=60):
            embedder = HashingEmbedder(name)
            embedder.dimensions = dimensions
            opened[name] = stack.enter_context(closing(Vectors(Path(folder), models, embedder)))
        texts: list[str] = []
        embedded: dict[str, int] = dict.fromkeys(_MODELS, 0)
        for what, name in steps:
            if what == "say":
                texts += [f"{name} {len(texts)}", "again"]
                say(log, models, *texts[-2:])
            elif what == "embed":
                assert opened[name].embed_new("a") == len(texts) - embedded[name]
                embedded[name] = len(texts)
            else:
                opened[name].remove_other_models("a", {name})
                embedded = {other: embedded[other] if other == name else 0 for other in _MODELS}
            for other, vectors in opened.items():
                assert_holds(models, vectors, texts[: embedded[other]])


def assert_holds(models: ReadModels, vectors: Vectors, texts: list[str]) -> None:
    with models.reading("a") as snapshot:
        index = vectors.index("a", snapshot)
    assert index.dimensions == vectors.embedder.dimensions
    spoken = [vectors.embedder.embed_query(f"user: {text}").vector for text in texts]
    query = vectors.embedder.embed_query("again").vector
    expected = {version: float(vector @ query) for version, vector in enumerate(spoken, start=1)}
    found = index.cosines(query)
    assert dict(zip(found.versions.tolist(), found.values.tolist(), strict=True)) == pytest.approx(expected, abs=0.01)


class Interrupted(HashingEmbedder):
    """Embeds, but another process does something while it is at the batch with the number `at`."""

    def __init__(self, meanwhile: Callable[[], object], at: int) -> None:
        super().__init__("interrupted")
        self.meanwhile = meanwhile
        self.batches_left = at

    def embed_tokens(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        self.batches_left -= 1
        if self.batches_left == 0:
            self.meanwhile()
        return super().embed_tokens(stretches)


def test_what_another_process_removes_while_more_is_embedded_is_embedded_again(
    log: SqliteLog, models: ReadModels, open_vectors: Open
) -> None:
    other = open_vectors(HashingEmbedder("other"))
    vectors = open_vectors(Interrupted(lambda: other.remove_other_models("a", {"other"}), at=3))
    texts = [f"text {number}" for number in range(500)]
    say(log, models, *texts)
    vectors.embed_new("a")
    assert_holds(models, vectors, texts)


@pytest.mark.parametrize("at", [1, 2])
def test_while_another_process_erases_the_work_begins_again_with_what_is_left(
    log: SqliteLog, models: ReadModels, open_vectors: Open, at: int
) -> None:
    texts = [f"text {number}" for number in range(500)]
    say(log, models, *texts)
    other = open_vectors(HashingEmbedder("interrupted"))
    interrupted = Interrupted(lambda: other.prune("a", 501), at=at)
    vectors = open_vectors(interrupted)
    vectors.embed_new("a")
    assert interrupted.batches_left <= 0
    assert_holds(models, vectors, texts)


def test_who_embeds_the_same_more_slowly_does_not_take_back_what_is_done(
    log: SqliteLog, models: ReadModels, open_vectors: Open
) -> None:
    texts = [f"text {number}" for number in range(500)]
    say(log, models, *texts)
    faster = open_vectors(HashingEmbedder("interrupted"))
    slower = open_vectors(Interrupted(lambda: faster.embed_new("a"), at=1))
    assert slower.embed_new("a") < 500
    assert_holds(models, slower, texts)


def test_remembered_vectors_that_another_process_removes_are_embedded_again(
    tmp_path: Path, log: SqliteLog, models: ReadModels, open_vectors: Open
) -> None:
    texts = [f"text {number}" for number in range(50)]
    say(log, models, *texts)
    open_vectors(HashingEmbedder("interrupted")).embed_new("a")
    # As after a change of the passages: begun anew, with the vectors of before remembered.
    file = apsw.Connection(str(namespace_folder(tmp_path, "a") / "vectors.db"))
    file.execute("DELETE FROM embedded")
    file.close()
    other = open_vectors(HashingEmbedder("other"))
    vectors = open_vectors(Interrupted(lambda: other.remove_other_models("a", {"other"}), at=1))
    say(log, models, "one more")
    vectors.embed_new("a")
    assert_holds(models, vectors, [*texts, "one more"])


def test_nothing_is_embedded_until_the_model_is_ready(log: SqliteLog, models: ReadModels, open_vectors: Open) -> None:
    say(log, models, "red apples")
    assert open_vectors(HashingEmbedder(state="loading")).embed_new("a") == 0
    assert open_vectors(HashingEmbedder(state="failed")).embed_new("a") == 0


def test_a_stop_ends_the_work_between_batches_and_the_rest_is_done_later(
    log: SqliteLog, models: ReadModels, open_vectors: Open
) -> None:
    vectors = open_vectors(HashingEmbedder())
    say(log, models, *(f"text {number}" for number in range(400)))
    stop = threading.Event()
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        stop.set()

    first = vectors.embed_new("a", on_progress=progress, stop=stop)
    assert 0 < first < 400
    assert seen == [(first, 400)]
    assert vectors.embed_new("a") == 400 - first


def test_of_a_backlog_the_newest_messages_are_found_first(
    log: SqliteLog, models: ReadModels, open_vectors: Open
) -> None:
    embedder = HashingEmbedder()
    vectors = open_vectors(embedder)
    texts = [f"text {number}" for number in range(900)]
    say(log, models, *texts)
    seen: list[tuple[int, int]] = []
    stop = threading.Event()

    def progress(_done: int, _total: int) -> None:
        with models.reading("a") as snapshot:
            versions = vectors.index("a", snapshot).cosines(embedder.embed_query("text").vector).versions.tolist()
            seen.append((versions[-1], vectors.backlog("a", snapshot).missing))
        assert versions == sorted(set(versions))
        if len(seen) == 1:
            say(log, models, "the newest of all")
        else:
            stop.set()

    vectors.embed_new("a", on_progress=progress, stop=stop)
    # After the first batch the last messages are not found yet; after the second one they are.
    assert seen == [(256, 644), (901, 389)]
    assert vectors.embed_new("a") == 389
    assert_holds(models, vectors, [*texts, "the newest of all"])
    again = open_vectors(HashingEmbedder())
    assert_holds(models, again, [*texts, "the newest of all"])


def test_namespaces_take_turns_when_both_have_a_backlog(log: SqliteLog, models: ReadModels, open_vectors: Open) -> None:
    vectors = open_vectors(HashingEmbedder())
    for namespace in ("a", "b"):
        for start in range(0, 1_500, 500):
            log.append(namespace, drafts([message(f"text {number}") for number in range(start, start + 500)]))
        models.catch_up(namespace)
    threads: list[threading.Thread] = []
    order: list[str] = []

    def progress(_done: int, _total: int) -> None:
        order.append("a")
        if not threads:
            threads.append(threading.Thread(target=vectors.embed_new, args=("b",), kwargs={"on_progress": other}))
            threads[0].start()

    def other(_done: int, _total: int) -> None:
        order.append("b")

    vectors.embed_new("a", on_progress=progress)
    threads[0].join()
    # Six batches each; the second one begins before the first one is done.
    assert order.index("b") < max(place for place, namespace in enumerate(order) if namespace == "a")


def test_a_damaged_file_of_vectors_is_made_anew(
    tmp_path: Path, log: SqliteLog, models: ReadModels, open_vectors: Open
) -> None:
    say(log, models, "red apples")
    vectors = open_vectors(HashingEmbedder())
    vectors.embed_new("a")
    vectors.close()
    (namespace_folder(tmp_path, "a") / "vectors.db").write_bytes(b"garbage " * 1_000)
    assert open_vectors(HashingEmbedder()).embed_new("a") == 1


@pytest.mark.parametrize("kept_bytes", [0, 20, 200])
def test_a_damaged_basis_of_token_codes_is_made_anew(tmp_path: Path, open_vectors: Open, kept_bytes: int) -> None:
    basis = open_vectors(HashingEmbedder()).basis()
    [path] = tmp_path.glob("basis-*.npy")
    path.write_bytes(path.read_bytes()[:kept_bytes] + b"garbage")
    assert np.array_equal(open_vectors(HashingEmbedder()).basis(), basis)
    assert np.array_equal(open_vectors(HashingEmbedder()).basis(), basis)


def test_vectors_of_an_earlier_release_are_dropped_once_and_embedded_again(
    tmp_path: Path, log: SqliteLog, models: ReadModels, open_vectors: Open
) -> None:
    say(log, models, "red apples")
    vectors = open_vectors(HashingEmbedder())
    vectors.embed_new("a")
    vectors.close()
    path = namespace_folder(tmp_path, "a") / "vectors.db"

    def change(sql: str) -> None:
        with closing(apsw.Connection(str(path))) as file:
            file.execute(sql)

    def tables() -> set[str]:
        with closing(apsw.Connection(str(path))) as file:
            assert file.pragma("user_version") == 5
            return {name for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}

    # As the first release left it: a table of progress, and no number.
    change("CREATE TABLE progress (model TEXT PRIMARY KEY, checkpoint INTEGER); PRAGMA user_version = 0")
    embedder = HashingEmbedder()
    reopened = open_vectors(embedder)
    assert nearest(models, reopened, embedder, "red apples") == []
    assert reopened.embed_new("a") == 1
    assert nearest(models, reopened, embedder, "red apples") == [1]
    assert tables() == {"vectors", "token_codes", "embeddings", "text_flags", "embedded", "purges"}
    reopened.close()

    # The migrations do not run a second time.
    change("CREATE TABLE progress (model TEXT PRIMARY KEY)")
    assert nearest(models, open_vectors(HashingEmbedder()), embedder, "red apples") == [1]
    assert "progress" in tables()


def test_an_unknown_namespace_has_an_empty_index_and_no_file(
    tmp_path: Path, models: ReadModels, open_vectors: Open
) -> None:
    vectors = open_vectors(HashingEmbedder())
    assert vectors.embed_new("a") == 0
    assert nearest(models, vectors, HashingEmbedder(), "x") == []
    assert not (tmp_path / "namespaces").exists()


def test_vectors_are_not_opened_before_the_model_is_ready(
    open_vectors: Open, log: SqliteLog, models: ReadModels
) -> None:
    log.append("a", drafts([message("hello")]))
    models.catch_up("a")
    with pytest.raises(RecollectError, match="is not ready"):
        open_vectors(HashingEmbedder(tag="")).embed_new("a")
