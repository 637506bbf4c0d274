"""The forget model: what a sentence asks, and which earlier sentences a request names."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recollect.jobs.forgetting import forget_matches
from recollect.jobs.forgetting.forget_model import FEATURES, Encoders, gaps, model, pair_features
from recollect.jobs.forgetting.forget_requests import forget_requests, may_request, stays
from recollect.projections.embeddings.stretches import TokenEmbedding


@pytest.mark.parametrize(
    "text",
    [
        "Please forget my salary.",
        "I'd rather you didn't keep my diagnosis.",
        "get my weight out of your memory",
        "don't hold on to my address",
    ],
)
def test_a_request_in_any_words_is_read(text: str) -> None:
    assert [request.text for request in forget_requests(text, "Ann")] == [text]


@pytest.mark.parametrize(
    "text",
    [
        "I always forget my keys.",
        "Forget it, I'll manage.",
        "Don't forget the milk!",
        "Delete the last paragraph.",
        "How do I delete my browser history?",
        "Did you forget my salary?",
        "Don't mention it to my wife.",
        "My doctor forgot my test results.",
        "Vergiss nicht, dass ich vegan bin.",
        "No te olvides de mi alergia.",
    ],
)
def test_what_only_sounds_like_a_request_is_not_one(text: str) -> None:
    assert forget_requests(text, "Ann") == []


@pytest.mark.parametrize(
    "text",
    [
        "the Volvo's gone, scrapped it.",
        "the Nokia broke, threw it away",
        "the billing service is gone, deleted it",
        "got sick of Duolingo, deleted it",
        "uninstalled Slack, never looked back",
        "you can keep my birthday",
    ],
)
def test_a_report_without_a_subject_is_no_request(text: str) -> None:
    assert forget_requests(text, "Ann") == []


@pytest.mark.parametrize("text", ["delete that", "scrap what I said about the loan", "erase my phone number"])
def test_a_short_request_with_the_verb_of_a_report_is_one(text: str) -> None:
    assert len(forget_requests(text, "Ann")) == 1


def test_a_sentence_with_some_words_of_a_name_is_not_meant_by_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ["The alarm code is 7714.", "The garage code is 3360.", "We put a siren above the door."]
    sure = [4.0, 9.0, 1.0, 0.9, 0.3]

    def leader(*_: object) -> tuple[list[float], list[float], int]:
        return [9.0, 1.0, 1.0], sure, 0

    monkeypatch.setattr(forget_matches, "leader", leader)
    places = forget_matches.named_texts(
        "forget the alarm code", 4.0, said, ["a", "b", "c"], Encoders(embed, read_pairs)
    )
    assert places == [0, 2]


def test_what_was_just_said_is_told_from_what_is_named() -> None:
    [request] = forget_requests("Please forget what I just said.", "Ann")
    assert request.previous
    [request] = forget_requests("Please forget what I earn.", "Ann")
    assert not request.previous


def test_the_sentences_around_a_request_may_name_what_it_means() -> None:
    *_, request = forget_requests("It is about my test results. Please delete that from your memory.", "Ann")
    assert request.around == ("It is about my test results. Please delete that from your memory.",)


def test_a_request_has_what_is_said_before_it_in_its_message() -> None:
    [alone] = forget_requests("Hi! Please forget my salary.", "Ann")
    assert alone.said == ""
    [request] = forget_requests("We moved to Rome with three cats. Please forget that.", "Ann")
    assert request.said == "We moved to Rome with three cats."


def test_a_statement_next_to_a_request_stays() -> None:
    [request] = forget_requests("Hi! Please forget my salary. Thanks.", "Ann")
    assert [it for it in ("Hi!", "Please forget my salary.", "Thanks.") if stays(it, [request], None)] == []
    assert stays("My sister moved to Rome with three cats.", [request], None)


@given(st.text(max_size=300))
def test_the_probabilities_of_any_text_add_up_to_one(text: str) -> None:
    assert model().asks([text]).sum() == pytest.approx(1, abs=1e-5)


def embed(sentences: Sequence[str]) -> list[TokenEmbedding]:
    """Return random vectors of sentences of four words."""
    rows = np.random.default_rng(1).normal(size=(5, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return [TokenEmbedding(rows[0], rows[1:]) for _ in sentences]


def read_pairs(pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
    """Return random vectors of pairs."""
    return np.random.default_rng(2).normal(size=(len(pairs), 768)).astype(np.float32)


@given(st.text(max_size=100), st.lists(st.text(max_size=100), min_size=1, max_size=5))
def test_each_sentence_has_finite_log_odds(request_: str, said: list[str]) -> None:
    assert pair_features(request_, said, frozenset()).shape == (len(said), FEATURES)
    for scores in model().named(request_, said, Encoders(embed, read_pairs)):
        assert scores.shape == (len(said),)
        assert np.isfinite(scores).all()


def test_a_gap_is_the_lead_before_the_best_other_sentence() -> None:
    assert gaps(np.array([[0.5], [0.2], [0.1]], np.float32))[:, 0] == pytest.approx([0.3, -0.3, -0.4])


def test_a_long_text_is_read_in_linear_time() -> None:
    started = time.process_time()
    assert not may_request("forget " * 100_000)
    assert not may_request(("I went to the market and bought a pear. " * 5_000)[:100_000])
    assert time.process_time() - started < 1
