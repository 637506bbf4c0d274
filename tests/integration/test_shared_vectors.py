"""Machines on one log in PostgreSQL embed each text once, and an erasure reaches the vectors that they share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import psycopg
import pytest
from integration.test_erasure import SCOPES, WORD, opened, stored_vectors, talk
from support.embedders import HashingEmbedder
from support.events import message
from support.postgres import new_database

from recollect import Recollect
from recollect.api.receipt_types import Receipt
from recollect.projections.embeddings.shared_vectors import SharedKey, SharedVectors
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.embeddings.vector_store import StoredEmbedding

Row = tuple[Any, ...]
KEY = SharedKey("a model", 64)
SAID = ("I live in Porto.", "We painted the kitchen green.", "My dog is called Rex.")


@pytest.fixture
def url(postgres_url: str) -> str:
    return new_database(postgres_url)


def rows_of(url: str, columns: str = "digest, content") -> list[Row]:
    with psycopg.connect(url) as connection:
        query = f"SELECT {columns} FROM recollect_cache.vectors_1 ORDER BY digest"
        return connection.execute(query.encode()).fetchall()


def embed(memory: Recollect, namespace: str, embedder: HashingEmbedder | None = None) -> list[str]:
    """Bring the read model and the vectors of a namespace up to date; return the texts that the model read for it."""
    embedder = embedder or HashingEmbedder()
    memory.parts.read_models.catch_up(namespace)
    with closing(memory.parts.active_model.open_vectors(embedder)) as vectors:
        vectors.embed_new(namespace)
    return embedder.embedded


def facts_and_messages(namespace: str) -> list[dict[str, Any]]:
    fact = {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "lives in", "object": "Porto"}}
    return [*(message(text, id=f"{namespace}-{text}") for text in SAID), fact]


@pytest.mark.parametrize("encryption", ["on", "off"])
def test_a_text_is_embedded_by_one_machine_and_read_by_the_others(url: str, tmp_path: Path, encryption: str) -> None:
    options = {"keys": tmp_path / "keys", "encryption": encryption}
    with opened(tmp_path / "one", url, **options) as one, opened(tmp_path / "two", url, **options) as two:
        for event in facts_and_messages("a"):
            one.append("a", event)
        assert embed(one, "a")
        assert embed(two, "a") == []
    vectors = stored_vectors(tmp_path / "one")
    assert stored_vectors(tmp_path / "two") == vectors
    is_plain = any(content.startswith(vector) for vector in vectors for _, content in rows_of(url))
    is_guessable = any(digest == Stretch(f"Ann: {SAID[0]}").digest for digest, _ in rows_of(url))
    assert (is_plain or is_guessable) == (encryption == "off")


def test_a_machine_without_the_keys_of_an_encrypted_log_embeds_for_itself(url: str, tmp_path: Path) -> None:
    with opened(tmp_path / "one", url, encryption="on") as one:
        one.append("a", message(SAID[0]))
        embed(one, "a")
        digests = {b"d" * 32: StoredEmbedding(np.ones(64, np.float32))}
        with closing(SharedVectors(url, None, bytes_max=1 << 30, days_max=30)) as keyless:
            keyless.write("a", KEY, digests, erasure_version=0)
            assert keyless.read("a", KEY, digests, with_codes=False) == {}


def test_machines_that_embed_at_the_same_time_embed_each_text_once(url: str, tmp_path: Path) -> None:
    both = threading.Barrier(2)
    embedders = [HashingEmbedder(), HashingEmbedder()]

    def work(memory: Recollect, embedder: HashingEmbedder) -> None:
        both.wait()
        embed(memory, "a", embedder)

    options = {"encryption": "off"}
    with opened(tmp_path / "one", url, **options) as one, opened(tmp_path / "two", url, **options) as two:
        one.append("a", [message(f"Sentence {number} is about trams.") for number in range(300)])
        threads = [threading.Thread(target=work, args=pair) for pair in zip((one, two), embedders, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    texts = [text for embedder in embedders for text in embedder.embedded]
    with opened(tmp_path / "alone", url, shared_vectors_bytes_max=0, **options) as alone:
        assert sorted(texts) == sorted(embed(alone, "a"))
    assert stored_vectors(tmp_path / "one") == stored_vectors(tmp_path / "two") == stored_vectors(tmp_path / "alone")


class CanaryEmbedder(HashingEmbedder):
    """Remembers the digests of the texts, and their contexts, with a word that will be erased."""

    def __init__(self) -> None:
        super().__init__()
        self.canaries: set[bytes] = set()

    def embed_tokens(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        self.canaries |= {stretch.digest for stretch in stretches if WORD in stretch.text}
        return super().embed_tokens(stretches)


@pytest.mark.parametrize(("scope", "encryption"), [("message", "on"), ("message", "off"), ("namespace", "on")])
def test_shared_vectors_of_erased_texts_are_gone_and_the_receipt_counts_them(
    url: str, tmp_path: Path, scope: str, encryption: str
) -> None:
    canaries, names = SCOPES[scope]
    options = {"keys": tmp_path / "keys", "encryption": encryption}
    with opened(tmp_path / "one", url, **options) as one, opened(tmp_path / "two", url, **options) as two:
        one.append(scope, talk(scope, canaries=canaries))
        embedder = CanaryEmbedder()
        embed(one, scope, embedder)
        assert embed(two, scope) == []
        before = rows_of(url)
        keys = one.parts.log.keys
        assert keys is not None
        named = {keys.pseudonym("vector", scope, digest.hex()) for digest in embedder.canaries} | embedder.canaries
        assert named & {digest for digest, _ in before}

        erase = cast("Callable[..., Receipt]", one.erase)
        receipt = erase(scope, **names)
        after = rows_of(url)
        [target] = [target for target in receipt["targets"] if "shared" in target["store"]]
        assert target["rows"] == len(before) - len(after) > 0
        # The other machine follows; what it had embedded before does not come back, and nor does what it embeds now.
        embed(two, scope)
        assert not named & {digest for digest, _ in rows_of(url)}
        assert bool(after) == (scope == "message")


def test_vectors_of_texts_that_were_erased_while_they_were_embedded_are_not_stored(url: str, tmp_path: Path) -> None:
    new = {b"d" * 32: StoredEmbedding(np.ones(64, np.float32))}
    with (
        opened(tmp_path, url, encryption="on") as memory,
        closing(SharedVectors(url, memory.parts.log.keys, bytes_max=1 << 30, days_max=30)) as shared,
    ):
        memory.append("a", [message("x", id="e1"), message("y", id="e2")])
        shared.write("a", KEY, new, erasure_version=0)
        assert len(rows_of(url)) == 1
        memory.erase("a", event_ids=["e1"])
        assert rows_of(url) == []
        shared.write("a", KEY, new, erasure_version=0)
        assert rows_of(url) == []
        shared.write("a", KEY, new, erasure_version=3)
        assert len(rows_of(url)) == 1


def test_old_vectors_and_the_oldest_over_the_limit_are_removed(url: str, tmp_path: Path) -> None:
    with (
        opened(tmp_path, url, encryption="off") as memory,
        closing(SharedVectors(url, memory.parts.log.keys, bytes_max=1_000, days_max=30)) as shared,
        psycopg.connect(url, autocommit=True) as database,
    ):
        memory.append("a", message("x"))
        for number in range(6):
            new = {bytes([number]) * 32: StoredEmbedding(np.ones(254, np.float32))}
            shared.write("a", KEY, new, erasure_version=0)
        database.execute(
            b"UPDATE recollect_cache.vectors_1 SET saved_on = current_date - 10 * (5 - get_byte(digest, 0))"
        )
        # Two are over 30 days old; of four with 256 bytes each, three have at most 900.
        assert shared.trim() == 3
        assert [digest[0] for digest, _ in rows_of(url)] == [3, 4, 5]


def test_without_the_database_a_machine_embeds_by_itself(tmp_path: Path) -> None:
    new = {b"d" * 32: StoredEmbedding(np.ones(64, np.float32))}
    nowhere = f"postgresql:///none?host={tmp_path}"
    with closing(SharedVectors(nowhere, None, bytes_max=1, days_max=1, wait_seconds=0.2)) as shared:
        assert shared.read("a", KEY, new, with_codes=True) == {}
        shared.write("a", KEY, new, erasure_version=0)
        with shared.embedding("a"):
            pass
        assert shared.basis("a model", lambda: np.eye(2, dtype=np.float32)).shape == (2, 2)
