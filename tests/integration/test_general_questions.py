"""General questions: most of what general knowledge answers brings no memories."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.events import message

from recollect import Recollect
from recollect.api.retrieval.understanding.asks_memory import AsksLogit, asks_logit, words_of
from recollect.api.settings import load_settings
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import LOAD_SECONDS_MAX

_FOLDER = Path(__file__).parents[2] / "ops" / "train" / "relevance"


def held_out_lines() -> Sequence[Any]:
    sys.path.insert(0, str(_FOLDER))
    try:
        return import_module("labelled_chats").read_asks(held_out=True)
    finally:
        sys.path.remove(str(_FOLDER))


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
def test_most_lines_of_writers_that_the_logit_never_saw_are_read_right(embedder: SentenceEmbedder, step: int) -> None:
    logits = [
        (line.asks_memory, asks_logit().of(line.text, embedder.embed_query(line.text).vector))
        for line in held_out_lines()[::step]
    ]
    of_memory = np.array([logit for asks_memory, logit in logits if asks_memory])
    general = np.array([logit for asks_memory, logit in logits if not asks_memory])
    assert (of_memory > 0).mean() > 0.85
    assert (general < 0).mean() > 0.8


def test_the_logit_of_words_does_not_grow_with_their_number() -> None:
    logit = AsksLogit({"oil": 2.0, "engine": 2.0, "my": -1.0}, np.zeros(2, np.float32), 0.5)
    nothing = np.zeros(2, np.float32)
    assert logit.of("unknown", nothing) == 0.5
    assert logit.of("oil", nothing) == 2.5
    assert logit.of("Oil, oil OIL", nothing) == 2.5
    assert logit.of("engine oil", nothing) == pytest.approx(0.5 + 4 / 2**0.5)


def test_a_message_of_any_length_is_read_up_to_a_limit() -> None:
    assert len(words_of(" ".join(map(str, range(100_000))))) < 1_000


def test_a_general_question_brings_no_memories(tmp_path: Path) -> None:
    said = [
        "we feed our rabbit Bramble two carrots and a handful of hay every evening",
        "the water tank in the attic was made by Hollis & Sons in 1962",
        "my sister Nora teaches astronomy in Perth, her favourite planet is Saturn",
    ]
    with Recollect(settings=load_settings(data=tmp_path), workers=False) as memory:
        embedder = memory.parts.vectors.embedder
        embedder.start()
        assert embedder.wait_ready(LOAD_SECONDS_MAX), embedder.reason
        memory.append("a", [message(text, id=f"m{number}") for number, text in enumerate(said)])
        memory.settle("a")
        for question in (
            "At what temperature does water boil at sea level?",
            "how do you bleed a radiator",
            "who wrote the play about the moor of venice",
        ):
            assert memory.retrieve("a", question).items == (), question
        for question, answer in (("what does Bramble eat?", "m0"), ("Where does my sister teach?", "m2")):
            assert answer in [item.id for item in memory.retrieve("a", question).items], question
