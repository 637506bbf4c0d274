"""The reading encoders: the default model with adapters, for the trained readers of messages and of dates."""

from __future__ import annotations

import threading

import pytest

from recollect.projections.embeddings import reading_encoder
from recollect.projections.embeddings.embedder import NoEmbedder, SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import Embed, reading_embed, wait_for_encoders
from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.projection_settings import READING_MODEL

_SENTENCE = "From now on, answer me in French."


def test_its_vectors_are_others_of_the_same_tokens(embedder: SentenceEmbedder, embed: Embed) -> None:
    [read], [plain] = embed([_SENTENCE]), embedder.embed_tokens([Stretch(_SENTENCE)])
    assert read.spans == plain.spans
    assert read.vector @ plain.vector < 0.95


def test_who_waits_for_an_answer_does_not_wait_for_it_to_load(
    embedder: SentenceEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_loaded(model: str, _: str) -> SentenceEmbedder:
        return SentenceEmbedder(model)

    def does_not_load(_: SentenceEmbedder) -> None: ...

    monkeypatch.setattr(reading_encoder, "_encoder", not_loaded)
    monkeypatch.setattr(SentenceEmbedder, "start", does_not_load)
    assert reading_embed(embedder, waits=False) is None


def test_a_job_that_has_to_stop_does_not_wait_for_it_to_load() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(InterruptedError, match="read again later"):
        wait_for_encoders(SentenceEmbedder(), [READING_MODEL], stop)


def test_a_job_waits_for_it_to_load(embedder: SentenceEmbedder) -> None:
    wait_for_encoders(embedder, [READING_MODEL], threading.Event())
    assert reading_embed(embedder, waits=False) is not None


def test_without_the_default_model_words_decide_alone() -> None:
    assert reading_embed(NoEmbedder()) is None
