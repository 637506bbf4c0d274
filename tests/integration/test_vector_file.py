"""Vector file: the cache of int8 vectors of `vectors.db` gives the same answers, whatever happens to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator
from pathlib import Path

import numpy as np
import pytest
from support.embedders import HashingEmbedder
from support.events import message

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.embeddings import vector_file, vector_pruning
from recollect.projections.embeddings.vector_index import VectorIndex, rounded
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models.layout import VECTORS_FILE, namespace_folder, vector_file_path
from recollect.projections.read_models.read_models import ReadModels

ROWS_MIN = 16
COUNT = 40

Open = Callable[[], Vectors]


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_file, "FILE_ROWS_MIN", ROWS_MIN)


@pytest.fixture
def open_vectors(tmp_path: Path, models: ReadModels) -> Generator[Open]:
    """Each call opens the folder as another process does."""
    opened: list[Vectors] = []

    def run() -> Vectors:
        opened.append(Vectors(tmp_path, models, HashingEmbedder()))
        return opened[-1]

    yield run
    for vectors in opened:
        vectors.close()


def say(log: SqliteLog, models: ReadModels, count: int, *, namespace: str = "a", word: str = "word") -> None:
    first = log.head(namespace).version
    texts = [f"{word}{first + number} said {number % 7}" for number in range(count)]
    log.append(namespace, drafts([message(text, session_id="s") for text in texts]))
    models.catch_up(namespace)


@pytest.fixture
def vectors(log: SqliteLog, models: ReadModels, open_vectors: Open) -> Vectors:
    """The vectors of a namespace of `COUNT` messages, without a file so far."""
    say(log, models, COUNT)
    vectors = open_vectors()
    vectors.embed_new("a")
    return vectors


def loaded(models: ReadModels, vectors: Vectors, namespace: str = "a") -> VectorIndex:
    with models.reading(namespace) as snapshot:
        return vectors.index(namespace, snapshot)


def answer(index: VectorIndex) -> list[bytes]:
    """Return all that a search of the index gives, bit for bit."""
    found = [index.cosines(HashingEmbedder().embed_query(f"word{number} said").vector) for number in (1, 20)]
    found += [index.cosines(HashingEmbedder().embed_query("word3 said").vector, until=version) for version in (5, 37)]
    keys = index.nearest_keys(range(1, 200), HashingEmbedder().embed_query("word2 said").vector, limit=1)
    return [array.tobytes() for pair in (*found, keys) for array in pair]


def privately_loaded(models: ReadModels, open_vectors: Open, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the answer of an index without a file."""
    with monkeypatch.context() as patched:
        patched.setattr(vector_file, "_CAN_MAP", False)
        return answer(loaded(models, open_vectors()))


def path_of(folder: Path, namespace: str = "a") -> Path:
    return vector_file_path(namespace_folder(folder, namespace) / VECTORS_FILE)


def is_mapped(index: VectorIndex) -> bool:
    return index.tail is not index


def test_a_small_namespace_gets_no_file(tmp_path: Path, log: SqliteLog, models: ReadModels, open_vectors: Open) -> None:
    say(log, models, ROWS_MIN - 1)
    vectors = open_vectors()
    vectors.embed_new("a")
    assert not is_mapped(loaded(models, vectors))
    assert not path_of(tmp_path).exists()


def test_a_mapped_index_answers_as_a_loaded_one(
    tmp_path: Path, log: SqliteLog, models: ReadModels, open_vectors: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(log, models, COUNT)
    first = open_vectors()
    first.embed_new("a")
    wanted = privately_loaded(models, open_vectors, monkeypatch)
    assert not path_of(tmp_path).exists()

    written = loaded(models, first)
    assert is_mapped(written)
    assert answer(written) == wanted
    assert path_of(tmp_path).stat().st_mode & 0o777 == 0o600

    opened = loaded(models, open_vectors())
    assert is_mapped(opened)
    assert answer(opened) == wanted
    # Only the room for later vectors is private.
    assert opened.size_bytes == VectorIndex(HashingEmbedder.dimensions).size_bytes


def _truncate(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1])


def _flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.unlink()
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated": _truncate,
    "empty": lambda path: path.write_bytes(b""),
    "short": lambda path: path.write_bytes(b"RCLVEC01"),
    "garbage": lambda path: path.write_bytes(b"garbage " * 2_000),
    "a flipped bit of the header": lambda path: _flip(path, 60),
    "a flipped bit of the codes": lambda path: _flip(path, 4_096 + 100),
    "a flipped bit at the end": lambda path: _flip(path, -1),
    "lost": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_costs_a_load_only(
    damage: Callable[[Path], object],
    tmp_path: Path,
    models: ReadModels,
    open_vectors: Open,
    monkeypatch: pytest.MonkeyPatch,
    vectors: Vectors,
) -> None:
    loaded(models, vectors)
    vectors.close()
    whole = path_of(tmp_path).read_bytes()
    wanted = privately_loaded(models, open_vectors, monkeypatch)

    damage(path_of(tmp_path))
    assert answer(loaded(models, open_vectors())) == wanted
    assert path_of(tmp_path).read_bytes() == whole


def test_the_file_of_another_namespace_is_not_used(
    tmp_path: Path, log: SqliteLog, models: ReadModels, open_vectors: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(log, models, COUNT)
    say(log, models, COUNT, namespace="b", word="other")
    vectors = open_vectors()
    for namespace in ("a", "b"):
        vectors.embed_new(namespace)
        loaded(models, vectors, namespace)
    vectors.close()
    whole = path_of(tmp_path).read_bytes()
    wanted = privately_loaded(models, open_vectors, monkeypatch)

    # The same versions and keys, with other vectors.
    path_of(tmp_path).unlink()
    shutil.copy(path_of(tmp_path, "b"), path_of(tmp_path))
    assert answer(loaded(models, open_vectors())) == wanted
    assert path_of(tmp_path).read_bytes() == whole


def test_later_vectors_are_private_until_they_are_an_eighth(
    tmp_path: Path,
    log: SqliteLog,
    models: ReadModels,
    open_vectors: Open,
    monkeypatch: pytest.MonkeyPatch,
    vectors: Vectors,
) -> None:
    indexes = [loaded(models, vectors)]
    written = [path_of(tmp_path).read_bytes()]
    for _ in range(12):
        say(log, models, 1)
        vectors.embed_new("a")
        indexes.append(loaded(models, vectors))
        written.append(path_of(tmp_path).read_bytes())
        assert answer(indexes[-1]) == privately_loaded(models, open_vectors, monkeypatch)
        assert answer(loaded(models, open_vectors())) == answer(indexes[-1])
    # At 45 and at 50 vectors.
    assert len(set(written)) == 3
    assert indexes[4] is indexes[0]
    assert indexes[5] is not indexes[4]
    assert indexes[-1].rows == COUNT + 12


def test_two_processes_use_one_file(
    tmp_path: Path, log: SqliteLog, models: ReadModels, open_vectors: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(log, models, COUNT)
    one, two = open_vectors(), open_vectors()
    one.embed_new("a")
    indexes = [loaded(models, one), loaded(models, two)]
    whole = path_of(tmp_path).read_bytes()

    say(log, models, COUNT)
    two.embed_new("a")
    indexes = [*indexes, loaded(models, one)]
    grown = path_of(tmp_path)
    assert grown.read_bytes() != whole
    written_at_ns = grown.stat().st_mtime_ns
    after = loaded(models, two)
    # The second one maps what the first one has written.
    assert grown.stat().st_mtime_ns == written_at_ns
    assert all(is_mapped(index) for index in indexes)
    assert answer(indexes[-1]) == answer(after) == privately_loaded(models, open_vectors, monkeypatch)
    assert is_mapped(after)


def test_without_a_place_for_the_file_the_vectors_are_private(
    tmp_path: Path, models: ReadModels, open_vectors: Open, monkeypatch: pytest.MonkeyPatch, vectors: Vectors
) -> None:
    database = namespace_folder(tmp_path, "a") / VECTORS_FILE
    # No file can be made there, not even by root.
    vector_file_path(database, is_temporary=True).mkdir()
    index = loaded(models, vectors)
    assert not is_mapped(index)
    assert answer(index) == privately_loaded(models, open_vectors, monkeypatch)
    assert loaded(models, vectors) is index


def test_a_full_disk_leaves_no_part_of_a_file(
    tmp_path: Path, log: SqliteLog, models: ReadModels, monkeypatch: pytest.MonkeyPatch, vectors: Vectors
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(vector_file.zlib, "crc32", fail)
        assert not is_mapped(loaded(models, vectors))
    assert not [*tmp_path.rglob("*-int8")]
    # With more vectors it tries again.
    say(log, models, COUNT)
    vectors.embed_new("a")
    assert is_mapped(loaded(models, vectors))


def test_an_erasure_removes_the_file_also_after_a_crash(
    tmp_path: Path, log: SqliteLog, models: ReadModels, open_vectors: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(log, models, COUNT)
    one, two, opened_before = open_vectors(), open_vectors(), open_vectors()
    one.embed_new("a")
    loaded(models, one)
    held = loaded(models, two)
    with models.reading("a") as snapshot:
        assert not opened_before.backlog("a", snapshot).missing
    database = namespace_folder(tmp_path, "a") / VECTORS_FILE
    vector_file_path(database, is_temporary=True).write_bytes(b"a part")
    before = answer(held)

    def crash(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(vector_pruning, "remove_vector_file", crash)
        with pytest.raises(KeyboardInterrupt):
            one.prune("a", 1)
    # The file of before the erasure is used no more, and the purge is done again.
    assert path_of(tmp_path).exists()
    assert not is_mapped(loaded(models, open_vectors()))
    one.prune("a", 1)
    assert not [*tmp_path.rglob("*-int8")]

    # Processes of before the erasure can still read what they have mapped, and do not write it again.
    assert answer(held) == before
    one.embed_new("a")
    assert not is_mapped(loaded(models, opened_before))
    assert not path_of(tmp_path).exists()
    assert is_mapped(loaded(models, one))
    assert answer(loaded(models, one)) == privately_loaded(models, open_vectors, monkeypatch)


def test_the_file_goes_with_the_vectors(tmp_path: Path, models: ReadModels, vectors: Vectors) -> None:
    loaded(models, vectors)
    vectors.remove_other_models("a", {"hashing"})
    assert path_of(tmp_path).exists()
    vectors.remove_other_models("a", {"another"})
    assert not path_of(tmp_path).exists()


def test_codes_are_those_of_the_vectors(models: ReadModels, vectors: Vectors) -> None:
    [mapped, tail] = loaded(models, vectors).arrays()
    with models.reading("a") as snapshot:
        floats = vectors.vectors_of_episodes("a", snapshot, mapped.versions.tolist())
    codes, scales = rounded(np.stack([floats[version] for version in mapped.versions.tolist()]))
    assert np.array_equal(codes, mapped.codes)
    assert np.array_equal(scales, mapped.scales)
    assert not len(tail.keys)
