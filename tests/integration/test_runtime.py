"""The model on OpenVINO and on torch: one vector space, whichever runs."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from platformdirs import user_cache_path
from support.tiny_model import make_tiny_model

from recollect.api.settings import load_settings
from recollect.events.errors import InvalidInput
from recollect.projections.embeddings import model_cache, model_loading, openvino_runtime
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.int8_weights import has_fast_int8
from recollect.projections.embeddings.model_files import model_fingerprint
from recollect.projections.embeddings.model_loading import load_runtime
from recollect.projections.embeddings.model_runtime import Runtime
from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.projection_settings import DEFAULT_MODEL, DeviceChoice, RuntimeChoice

# What torch and transformers warn about among themselves is not ours to fix.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

needs_openvino = pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed here")

TEXTS = {
    "short": "tea",
    "sentence": "Ann moved to Lisbon and adopted a cat called Biscuit.",
    "long": "They planted tomatoes, basil and two lemon trees behind the old house. " * 60,
    "empty": "",
    "spaces": " \n\t ",
    "CJK": "彼女は猫を飼っていて、緑茶が好きです。",
    "emoji": "🎉 party at 8 👩‍👩‍👧 bring 🍰",
    "marks": "[CLS] what [SEP] is [UNK] this?",
}


@pytest.fixture(scope="module", params=["default", "tiny"])
def both(request: pytest.FixtureRequest, tiny_model: str) -> tuple[Runtime, Runtime]:
    """The same model on OpenVINO and on torch."""
    model = {"default": DEFAULT_MODEL, "tiny": tiny_model}[request.param]
    return load_runtime(model, "openvino"), load_runtime(model, "torch")


@pytest.fixture
def no_openvino(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where it is not installed."""

    def find_spec(name: str) -> None:
        return None

    # An environment without OpenVINO.
    monkeypatch.setattr(model_loading, "find_spec", find_spec)


@pytest.fixture
def first_token(tmp_path: Path, tiny_model: str) -> str:
    """A model that takes the first token's vector instead of the mean."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    (config,) = folder.glob("1_*/config.json")
    config.write_text(json.dumps(json.loads(config.read_text()) | {"pooling_mode": "cls"}))
    return str(folder)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of models, which no other test uses."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return user_cache_path("recollect")


def loaded(model: str, choice: RuntimeChoice, device: DeviceChoice = "auto") -> SentenceEmbedder:
    embedder = SentenceEmbedder(model, choice, device)
    embedder.start()
    embedder.wait_ready(300)
    return embedder


def installed_gpus() -> set[RuntimeChoice]:
    """Return the runtimes that find a GPU on this machine."""
    torch: Any = import_module("torch")
    found: set[RuntimeChoice] = set()
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        found |= {"auto", "torch"}
    if find_spec("openvino") is not None and openvino_runtime.has_openvino_gpu():
        found |= {"auto", "openvino"}
    return found


@needs_openvino
@pytest.mark.parametrize("batch", [1, len(TEXTS)])
def test_both_give_the_same_vectors(both: tuple[Runtime, Runtime], batch: int) -> None:
    texts = [Stretch(text) for text in TEXTS.values()]
    ours, theirs = (
        [one for at in range(0, len(texts), batch) for one in each.encode(texts[at : at + batch])] for each in both
    )
    for name, mine, other in zip(TEXTS, ours, theirs, strict=True):
        # Int8 weights, where the processor is fast with them, differ by 0.002.
        assert mine.vector @ other.vector >= 0.99, name
        assert mine.tokens.shape == other.tokens.shape, name
        assert np.all(np.sum(mine.tokens * other.tokens, axis=1) >= 0.98), name
        assert mine.vector.dtype == mine.tokens.dtype == np.float32
        assert np.allclose(np.linalg.norm(mine.tokens, axis=1), 1, atol=1e-5), name


@needs_openvino
def test_a_batch_of_any_size_is_encoded_in_order(both: tuple[Runtime, Runtime]) -> None:
    texts = [Stretch(text) for text in ("the cat and the kitten", "tea", "a bridge " * 30, "tax number 7")] * 5
    alone = {text: both[0].encode([text])[0].vector for text in set(texts)}
    for count in (0, 1, 3, 7, 8, 20):
        found = both[0].encode(texts[:count])
        assert len(found) == count
        assert all(one.vector @ alone[text] > 0.999 for one, text in zip(found, texts[:count], strict=True))


@needs_openvino
def test_both_read_a_part_in_its_context(both: tuple[Runtime, Runtime]) -> None:
    said, answer = "Ann: Where did you see the cat?", "Bob: on the old bridge 🍰"
    stretch = Stretch(f"{said}\n{answer}", len(said) + 1)
    alone = both[0].encode([Stretch(answer)])[0]
    embeddings = [each.encode([stretch, Stretch("another text")])[0] for each in both]
    for embedding in embeddings:
        assert embedding.tokens.shape == alone.tokens.shape
        assert np.linalg.norm(embedding.vector) == pytest.approx(1, abs=1e-5)
        # Read in a context the tokens are others, and yet those of the part.
        assert np.all(np.sum(embedding.tokens * alone.tokens, axis=1) < 0.9999)
        assert "".join(stretch.part[start:end] for start, end in embedding.spans).startswith("Bob:on")
    assert embeddings[0].vector @ embeddings[1].vector >= 0.995


@needs_openvino
def test_a_window_is_read_in_one_pass_and_each_turn_as_if_nothing_was_said_after_it(
    both: tuple[Runtime, Runtime],
) -> None:
    turns = ["Ann: Where did you see the cat?", "Bob: on the old bridge 🍰", "Ann: and the kitten?", "Bob: tea at nine"]
    stretches = [Stretch.after(turns[:count], turn) for count, turn in enumerate(turns)]
    passes: list[None] = []

    def counted() -> AbstractContextManager[None]:
        return nullcontext(passes.append(None))

    for number, each in enumerate(both, start=1):
        together = each.encode(stretches, counted)
        assert len(passes) == number
        for stretch, embedding in zip(stretches, together, strict=True):
            alone = each.encode([stretch])[0]
            assert embedding.vector @ alone.vector > 0.999
            assert np.all(np.sum(embedding.tokens * alone.tokens, axis=1) > 0.999)


@needs_openvino
def test_a_part_that_does_not_fit_with_its_context_is_read_alone(both: tuple[Runtime, Runtime]) -> None:
    context = "They planted tomatoes behind the old house. " * 60
    for each in both:
        in_context = each.encode([Stretch(f"{context}tea at nine", len(context))])[0]
        alone = each.encode([Stretch("tea at nine")])[0]
        assert in_context.vector @ alone.vector > 0.9999
        assert in_context.tokens.shape == alone.tokens.shape


def test_a_model_that_pools_otherwise_reads_a_part_alone(first_token: str) -> None:
    runtime = load_runtime(first_token, "torch")
    in_context, alone = (
        runtime.encode([stretch])[0] for stretch in (Stretch("Ann: tea?\nBob: at nine", 10), Stretch("Bob: at nine"))
    )
    assert in_context.vector @ alone.vector > 0.9999


@pytest.mark.parametrize("choice", ["auto", "torch"])
def test_a_model_of_static_vectors_gives_the_vectors_of_sentence_transformers(
    static_model: str, choice: RuntimeChoice
) -> None:
    runtime = load_runtime(static_model, choice)
    assert runtime.name == "static"
    sentence_transformers: Any = import_module("sentence_transformers")
    expected = sentence_transformers.SentenceTransformer(static_model).encode(
        [text for text in TEXTS.values() if text], normalize_embeddings=True
    )
    actual = runtime.encode([Stretch(text) for text in TEXTS.values() if text])
    for theirs, mine in zip(expected, actual, strict=True):
        assert mine.vector @ theirs > 0.999
        assert len(mine.tokens) == len(mine.spans) > 0


def test_a_static_model_reads_a_part_as_if_it_stood_alone_and_an_empty_text_as_nothing(static_model: str) -> None:
    runtime = load_runtime(static_model, "auto")
    in_context, alone, empty = runtime.encode(
        [Stretch("Ann: tea?\nBob: at nine", 10), Stretch("Bob: at nine"), Stretch("")]
    )
    assert in_context.vector @ alone.vector > 0.9999
    assert not empty.vector.any()
    assert len(empty.tokens) == 0


@needs_openvino
def test_a_static_model_on_openvino_is_refused(static_model: str) -> None:
    refused = loaded(static_model, "openvino")
    assert refused.state == "failed"
    assert "StaticEmbedding" in refused.reason


@needs_openvino
def test_pieces_have_their_places(both: tuple[Runtime, Runtime]) -> None:
    embedder = loaded(DEFAULT_MODEL, "auto")
    assert embedder.runtime == "openvino"
    found = embedder.embed_query("Biscuit drinks tea")
    assert len(found.spans) == len(found.tokens) > 0


@needs_openvino
def test_nobody_is_told_that_a_model_was_loaded(both: tuple[Runtime, Runtime]) -> None:
    assert sys.modules["openvino_telemetry"] is None


@needs_openvino
@pytest.mark.usefixtures("own_cache")
def test_loading_a_model_leaves_the_root_logger_alone(tiny_model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    levels: list[int | str] = []
    monkeypatch.setattr(root, "setLevel", levels.append)
    handlers, filters = root.handlers, root.filters
    load_runtime(tiny_model, "openvino")
    assert levels == []
    assert root.handlers is handlers
    assert root.filters is filters


@needs_openvino
def test_a_model_of_another_kind_runs_on_torch(first_token: str) -> None:
    embedder = loaded(first_token, "auto")
    assert (embedder.state, embedder.runtime) == ("ready", "torch")
    refused = loaded(first_token, "openvino")
    assert (refused.state, refused.runtime) == ("failed", "none")
    assert "pooling" in refused.reason
    assert "RECOLLECT_EMBEDDING_RUNTIME" in refused.reason


@needs_openvino
def test_vectors_that_differ_from_torchs_are_not_used(
    tiny_model: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # A faulty OpenVINO: no vectors are that alike. What an earlier start has kept is refused as well.
    monkeypatch.setattr(openvino_runtime, "_COSINE_MIN", 1.1)
    monkeypatch.setattr(openvino_runtime, "_INT8_COSINE_MIN", 1.1)
    assert loaded(tiny_model, "auto").runtime == "torch"
    assert "runs on torch, as OpenVINO cannot run it" in caplog.text


@needs_openvino
def test_the_default_model_has_int8_weights_where_they_are_fast(both: tuple[Runtime, Runtime]) -> None:
    assert isinstance(both[0], openvino_runtime.OpenVinoRuntime)
    assert both[0].converted.int8 == has_fast_int8()


@needs_openvino
@pytest.mark.parametrize("cosine_min", [-1.0, 1.1])
def test_int8_weights_are_used_where_they_keep_the_vectors(
    tiny_model: str, monkeypatch: pytest.MonkeyPatch, cosine_min: float
) -> None:
    # On any processor: OpenVINO computes in floats where it cannot multiply int8.
    monkeypatch.setattr(openvino_runtime, "has_fast_int8", lambda: True)
    monkeypatch.setattr(openvino_runtime, "_INT8_COSINE_MIN", cosine_min)
    texts = [Stretch(text) for text in TEXTS.values()]
    ours, theirs = (load_runtime(tiny_model, choice).encode(texts) for choice in ("openvino", "torch"))
    differences = [1 - mine.vector @ other.vector for mine, other in zip(ours, theirs, strict=True)]
    assert max(differences) < (0.01 if cosine_min < 0 else 0.001)


@pytest.mark.usefixtures("no_openvino")
def test_without_openvino_torch_runs_the_model(tiny_model: str) -> None:
    embedder = loaded(tiny_model, "auto")
    assert (embedder.state, embedder.runtime) == ("ready", "torch")


@pytest.mark.usefixtures("no_openvino")
def test_openvino_by_name_where_it_is_not_installed_fails_with_what_to_do(tiny_model: str) -> None:
    embedder = loaded(tiny_model, "openvino")
    assert (embedder.state, embedder.runtime) == ("failed", "none")
    assert "pip install" in embedder.reason
    assert "RECOLLECT_EMBEDDING_RUNTIME" in embedder.reason


@pytest.mark.parametrize("choice", ["auto", "torch", "openvino"])
def test_a_gpu_that_is_not_there_fails_with_what_to_do(tiny_model: str, choice: RuntimeChoice) -> None:
    if choice in installed_gpus():
        pytest.skip("a GPU is there")
    embedder = loaded(tiny_model, choice, "gpu")
    assert (embedder.state, embedder.runtime) == ("failed", "none")
    assert "RECOLLECT_EMBEDDING_DEVICE" in embedder.reason
    assert "auto or cpu" in embedder.reason


@pytest.mark.parametrize("choice", ["auto", "torch"])
def test_a_gpu_gives_the_vectors_of_the_cpu(tiny_model: str, choice: RuntimeChoice) -> None:
    if choice not in installed_gpus():
        pytest.skip("no GPU is there")
    texts = [Stretch(text) for text in TEXTS.values()]
    ours, theirs = (load_runtime(tiny_model, choice, device).encode(texts) for device in ("gpu", "cpu"))
    assert all(mine.vector @ other.vector >= 0.999 for mine, other in zip(ours, theirs, strict=True))


def test_a_device_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(InvalidInput, match=r"RECOLLECT_EMBEDDING_DEVICE.*'auto', 'cpu' or 'gpu'"):
        load_settings(embedding_device="tpu")


@needs_openvino
@pytest.mark.usefixtures("own_cache")
def test_a_converted_model_is_kept_and_gives_the_same_vectors_without_torch(tiny_model: str) -> None:
    texts = [Stretch(text) for text in TEXTS.values()]
    first = load_runtime(tiny_model, "auto").encode(texts)
    program = (
        "import sys, json\n"
        "from recollect.projections.embeddings.embedder import SentenceEmbedder\n"
        "embedder = SentenceEmbedder(sys.argv[1])\n"
        "embedder.start()\n"
        "assert embedder.wait_ready(60), embedder.reason\n"
        "vectors = embedder.embed(json.loads(sys.argv[2])).tolist()\n"
        "print(json.dumps([vectors, embedder.runtime, 'torch' in sys.modules]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, tiny_model, json.dumps(list(TEXTS.values()))],
        check=True,
        capture_output=True,
        timeout=60,
    )
    vectors, runtime, has_torch = json.loads(done.stdout)
    assert (runtime, has_torch) == ("openvino", False)
    for name, mine, theirs in zip(TEXTS, first, np.array(vectors, np.float32), strict=True):
        assert mine.vector @ theirs > 0.9999, name


@needs_openvino
@pytest.mark.parametrize("file", ["model.xml", "model.bin", "tokenizer.json", "probes.json"])
def test_a_damaged_cache_is_made_again(
    tiny_model: str, file: str, own_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    load_runtime(tiny_model, "auto")
    (path,) = own_cache.glob(f"models/*/{file}")
    damaged = b"\0" * 100
    path.write_bytes(damaged)
    vector = load_runtime(tiny_model, "auto").encode([Stretch("tea")])[0].vector
    assert vector @ load_runtime(tiny_model, "torch").encode([Stretch("tea")])[0].vector >= 0.999
    assert "again" in caplog.text
    assert path.read_bytes() != damaged


@needs_openvino
def test_int8_weights_are_kept_in_the_cache_and_give_the_same_vectors_bit_for_bit(
    tiny_model: str, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openvino_runtime, "_INT8_COSINE_MIN", -1.0)

    def set_fast_int8(*, is_fast: bool) -> None:
        for module in (openvino_runtime, model_loading):
            monkeypatch.setattr(module, "has_fast_int8", lambda: is_fast)

    def vectors() -> list[bytes]:
        texts = [Stretch(text) for text in TEXTS.values()]
        return [embedding.vector.tobytes() for embedding in load_runtime(tiny_model, "openvino").encode(texts)]

    set_fast_int8(is_fast=False)
    floats = vectors()
    set_fast_int8(is_fast=True)
    # Quantized from the floats in the cache, and read from it.
    int8 = vectors()
    assert int8 == vectors() != floats
    sizes = sorted(path.stat().st_size for path in own_cache.glob("models/*/model.bin"))
    assert len(sizes) == 2
    assert sizes[0] < sizes[1]
    set_fast_int8(is_fast=False)
    assert vectors() == floats


@needs_openvino
def test_a_cache_that_cannot_be_written_costs_only_the_cache(
    tiny_model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    embedder = loaded(tiny_model, "auto")
    assert embedder.runtime == "openvino"
    assert np.array_equal(embedder.basis(), embedder.basis())


@needs_openvino
def test_the_cache_keeps_the_models_that_were_used_last(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_cache, "_ENTRIES_MAX", 2)
    models = [str(make_tiny_model(tmp_path / str(seed), seed=seed)) for seed in range(3)]
    for used in (0, 1, 0, 2):
        load_runtime(models[used], "auto")
    assert len([*own_cache.glob("models/*/model.xml")]) == 2
    kinds = [
        [model_cache.read_converted(model_fingerprint(model), int8=int8) for int8 in (True, False)] for model in models
    ]
    assert [any(kind) for kind in kinds] == [True, False, True]


@needs_openvino
def test_the_end_of_a_program_does_not_wait_until_the_model_is_loaded() -> None:
    program = (
        "import atexit\n"
        "from recollect.projections.embeddings.embedder import SentenceEmbedder\n"
        "embedder = SentenceEmbedder()\n"
        "embedder.start()\n"
        "atexit.register(lambda: print(embedder.state))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=60)
    assert (done.stdout, done.stderr) == (b"loading\n", b"")
