"""The statement reader: probabilities of each clause by words alone, and by words and vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.jobs.extraction.clause_features import BUCKETS, clause_features
from recollect.jobs.extraction.clauses import Clause, clauses
from recollect.jobs.extraction.statement_reader import (
    DIMENSIONS,
    HEADS,
    ReadClause,
    clause_vector,
    read_clauses,
    reader_weights,
)
from recollect.jobs.extraction.statements import Statement, read_sentences, statements
from recollect.projections.embeddings.stretches import TokenEmbedding


def embedding(sentence: str, dimensions: int = DIMENSIONS, *, seed: int = 1) -> TokenEmbedding:
    """Return random vectors of the words of a sentence."""
    spans: list[tuple[int, int]] = []
    end = 0
    for word in sentence.split():
        start = sentence.index(word, end)
        end = start + len(word)
        spans.append((start, end))
    rows = np.random.default_rng(seed).normal(size=(len(spans) + 1, dimensions)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return TokenEmbedding(rows[0], rows[1:], tuple(spans))


def test_the_weights_fit_the_features_and_the_heads() -> None:
    words, both = reader_weights()
    columns = sum(map(len, HEADS.values()))
    for weights in (words, both):
        assert (weights.words.shape, weights.words.dtype) == ((BUCKETS, columns), np.int8)
        assert weights.scale.shape == weights.bias.shape == (columns,)
        assert np.isfinite(weights.scale).all()
        assert np.isfinite(weights.bias).all()
    assert words.vectors is None
    assert both.vectors is not None
    assert both.vectors.shape == (2 * DIMENSIONS, columns)
    assert np.isfinite(both.vectors).all()


@given(st.text(max_size=300), st.booleans(), st.booleans())
def test_the_probabilities_of_each_head_add_up_to_one(sentence: str, to_assistant: bool, has_vectors: bool) -> None:
    vectors = embedding(sentence) if has_vectors else None
    read = read_clauses(sentence, to_assistant=to_assistant, embedding=vectors)
    assert [part.clause for part in read] == clauses(sentence)
    for part in read:
        assert {head: tuple(classes) for head, classes in part.probabilities.items()} == HEADS
        assert all(math.isclose(sum(classes.values()), 1, abs_tol=1e-5) for classes in part.probabilities.values())
        assert 0 <= part.keep <= 1


@given(st.text(max_size=300))
def test_the_same_words_have_the_same_features(text: str) -> None:
    rows = clause_features(text, "", "", to_assistant=True)
    assert rows == clause_features(text, "", "", to_assistant=True)
    assert len(rows) == len(set(rows))
    assert all(0 <= row < BUCKETS for row in rows)


def test_words_alone_and_words_with_vectors_are_two_models() -> None:
    sentence = "I moved to Oslo last year"
    alone = read_clauses(sentence, to_assistant=True)
    assert alone != read_clauses(sentence, to_assistant=True, embedding=embedding(sentence))


@pytest.mark.parametrize("dimensions", [32, 256, 768])
def test_vectors_of_another_model_are_ignored(dimensions: int) -> None:
    sentence = "I moved to Oslo last year, so can you help me?"
    other = embedding(sentence, dimensions)
    alone = read_clauses(sentence, to_assistant=True)
    assert read_clauses(sentence, to_assistant=True, embedding=other) == alone


def test_the_vector_of_a_clause_is_the_mean_of_its_tokens_and_that_of_its_sentence() -> None:
    sentence = "I moved to Oslo, so can you help me?"
    vectors = embedding(sentence)
    first, _ = clauses(sentence)
    expected = np.concatenate((vectors.tokens[:4].mean(axis=0), vectors.vector))
    vector = clause_vector(vectors, first)
    assert vector is not None
    assert np.allclose(vector, expected)


def test_a_sentence_that_states_nothing_by_its_words_is_not_embedded() -> None:
    embedded: list[str] = []

    def embed(sentences: Sequence[str]) -> list[TokenEmbedding]:
        embedded.extend(sentences)
        return [embedding(sentence) for sentence in sentences]

    read = read_sentences(["Thanks!", "I was diagnosed with asthma in 2019."], to_assistant=True, embed=embed)
    assert [len(parts) for parts in read] == [1, 1]
    assert embedded == ["I was diagnosed with asthma in 2019."]


def part(sentence: str, words: str, keep: float, *, act: str = "states", kind: str = "work") -> ReadClause:
    """Return a clause of a sentence with the given probabilities."""
    start = sentence.index(words)
    probabilities = {head: dict.fromkeys(classes, 0.0) for head, classes in HEADS.items()}
    probabilities["keep"] = {"no": 1 - keep, "yes": keep}
    probabilities["act"][act] = probabilities["kind"][kind] = 1.0
    return ReadClause(Clause(words, start, start + len(words)), probabilities)


def test_a_statement_has_its_place_in_the_sentence_and_its_kind() -> None:
    sentence = "ok, I teach piano at a school, can you help?"
    read = [part(sentence, "I teach piano at a school", 0.9), part(sentence, "can you help?", 0.1, act="asks")]
    expected = Statement("I teach piano at a school", 4, 29, 0.9, "work", read[:1])
    assert [*statements(sentence, read)] == [expected]
    assert sentence[4:29] == "I teach piano at a school"


def test_neighbouring_clauses_that_are_kept_are_one_statement() -> None:
    sentence = "My wife and I adopted two kids, thanks, our son is 7."
    read = [
        part(sentence, "My wife", 0.8),
        part(sentence, "I adopted two kids", 0.7, kind="relation"),
        part(sentence, "thanks", 0.1),
        part(sentence, "our son is 7.", 0.9),
    ]
    texts = [statement.text for statement in statements(sentence, read)]
    assert texts == ["My wife and I adopted two kids", "our son is 7"]


def test_a_relative_clause_has_the_words_that_it_is_about() -> None:
    sentence = "Ask my partner Jo, who is 53."
    read = [part(sentence, "Ask my partner Jo", 0.2), part(sentence, "who is 53.", 0.9)]
    assert [statement.text for statement in statements(sentence, read)] == ["Ask my partner Jo, who is 53"]


@pytest.mark.parametrize("act", ["asks", "jokes", "quotes", "talks", "forgets", "rules", "unrules"])
def test_what_is_no_claim_of_the_speaker_is_no_statement(act: str) -> None:
    sentence = "I live in a castle"
    assert not [*statements(sentence, [part(sentence, sentence, 0.9, act=act)])]


@pytest.mark.parametrize("sentence", ["Do I live in Oslo?", "My wife", "so " * 200])
def test_questions_fragments_and_endless_clauses_are_no_statements(sentence: str) -> None:
    assert not [*statements(sentence, [part(sentence, sentence, 0.9)])]


def test_the_end_sign_is_no_part_of_a_statement() -> None:
    for sentence in ("夫の名前は健太です。", "I was born in Oslo!", "I was born in Oslo."):
        [statement] = statements(sentence, [part(sentence, sentence, 0.9)])
        assert statement.text == sentence[:-1]
        assert statement.text == sentence[statement.start : statement.end]
