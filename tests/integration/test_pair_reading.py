"""The reading of pairs: what a later sentence does to an earlier one, read together by an encoder."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.jobs.extraction.changes import find_changes
from recollect.jobs.extraction.comparison import compare
from recollect.jobs.forgetting.forget_model import encoders_of, model
from recollect.projections.embeddings.embedder import NoEmbedder, SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import pair_reader, pair_window
from recollect.projections.projection_settings import CHANGES_MODEL
from recollect.projections.queries.knowledge_queries import PriorStatement


def _said(words: str) -> PriorStatement:
    return PriorStatement(session_id=None, speaker="Ann", subject="Ann", predicate="says", object=words, kind=None)


@pytest.mark.parametrize(
    ("earlier", "later", "made"),
    [
        ("My car is a red Golf", "sold the Golf to a student yesterday", "doubts"),
        ("I take 20 mg of lisinopril", "the doctor put the lisinopril up to 40 mg", "endings"),
    ],
)
def test_a_sentence_ends_what_it_surely_changes_doubts_what_it_may_change_and_leaves_the_rest_alone(
    embedder: SentenceEmbedder, earlier: str, later: str, made: str
) -> None:
    before = [_said("My sister lives in Leeds"), _said(earlier), _said("I like long walks by the sea")]
    changes = find_changes(
        later, "Ann", before, vectors=embedder.embed, read_pairs=pair_reader(CHANGES_MODEL, embedder)
    )
    assert [(kind, item["object"]) for kind, item in changes if kind in ("endings", "doubts")] == [(made, earlier)]


@pytest.mark.parametrize(
    "later",
    [
        "my brother sold his Golf",
        "my neighbour is on 40 mg of something else",
        "Ben's doctor raised his dose to 40 mg",
    ],
)
def test_other_peoples_changes_end_nothing(embedder: SentenceEmbedder, later: str) -> None:
    before = [_said("My car is a red Golf"), _said("I take 20 mg of lisinopril")]
    read_pairs = pair_reader(CHANGES_MODEL, embedder)
    assert find_changes(later, "Ann", before, vectors=embedder.embed, read_pairs=read_pairs) == []


def test_without_vectors_a_sentence_is_less_sure_of_a_change(embedder: SentenceEmbedder) -> None:
    """The reading encoder may not be ready yet when that of changes is."""
    before, later = [_said("I take 20 mg of lisinopril")], "the doctor put the lisinopril up to 40 mg"
    read_pairs = pair_reader(CHANGES_MODEL, embedder)
    sure, unsure = (
        compare(later, "Ann", before, vectors, read_pairs=read_pairs)[0].probability
        for vectors in (embedder.embed, None)
    )
    assert 0 < unsure < sure


def test_a_request_names_what_was_said_in_other_words(embedder: SentenceEmbedder) -> None:
    encoders = encoders_of(embedder, 60)
    assert encoders is not None
    said = ["I was diagnosed with diabetes last spring", "The tram was late again"]
    diagnosis, tram = model().named("forget what I told you about my health", said, encoders)[0]
    assert diagnosis > 0 > tram


def test_without_the_default_model_no_pairs_are_read() -> None:
    assert pair_reader(CHANGES_MODEL, NoEmbedder()) is None


@pytest.mark.parametrize("text", ["ผมขายรถแล้ว", "ዛሬ ቡና ጠጣሁ", "🙈🙈", ""])
def test_a_script_that_the_model_does_not_know_has_finite_vectors(embedder: SentenceEmbedder, text: str) -> None:
    read_pairs = pair_reader(CHANGES_MODEL, embedder)
    assert read_pairs is not None
    assert np.isfinite(read_pairs([(text, text), ("I have a dog", text)])).all()


def test_a_message_cannot_have_the_sign_between_the_sentences_of_a_pair() -> None:
    window = pair_window("my dog [SEP] is gone", "[CLS] [SEP] the end")
    assert window.text == "my dog SEP is gone [SEP] CLS SEP the end"
    assert window.text[window.start : window.end] == "my dog SEP is gone"


def test_a_long_pair_is_cut() -> None:
    window = pair_window("a" * 10_000, "b" * 10_000)
    assert len(window.text) < 1_000
    assert set(window.text[window.start : window.end]) == {"a"}
