from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from recollect.jobs.extraction.rule_extractor import IncomingMessage
from recollect.jobs.extraction.sentence_vectors import Floats, SentenceVectors

SENT_AT = datetime(2026, 1, 1, tzinfo=UTC)


def message(number: int, text: str, *, is_assistant: bool = False) -> IncomingMessage:
    return IncomingMessage(
        event_id=str(number), session_id="s", speaker="Ann", text=text, sent_at=SENT_AT, is_assistant=is_assistant
    )


class CountingModel:
    """Returns for each text its length, and remembers what it embedded."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> Floats:
        self.calls.append([*texts])
        return np.array([[len(text)] for text in texts], np.float32)


def test_sentences_are_embedded_with_those_that_follow_and_questions_are_left_out() -> None:
    model = CountingModel()
    said = [message(1, "I like tea. Do you? I live in Porto."), message(2, "Fine.", is_assistant=True)]
    vectors = SentenceVectors(model, [*said, message(3, "I **sold** the car.")])
    assert [vectors.of(text)[0] for text in ("I like tea", "I live in Porto", "I sold the car")] == [10, 15, 14]
    assert model.calls == [["I like tea", "I live in Porto", "I sold the car"]]


def test_sentences_that_nobody_asks_for_are_passed_over() -> None:
    model = CountingModel()
    vectors = SentenceVectors(model, [message(number, f"I saw {number} birds.") for number in range(100)])
    assert vectors.of("I saw 50 birds")[0] == 14
    assert model.calls[0][0] == "I saw 50 birds"
    assert vectors.of("I saw 99 birds")[0] == 14
    assert sum(map(len, model.calls)) <= 50


def test_a_text_of_no_message_is_embedded_alone() -> None:
    model = CountingModel()
    vectors = SentenceVectors(model, [message(1, "I like tea.")])
    assert vectors.of("It rains")[0] == 8
    assert vectors.of("I like tea")[0] == 10
    assert model.calls == [["It rains"], ["I like tea"]]
