from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.embeddings.passages import (
    CHUNK_WORDS,
    SourceTurn,
    passages,
    sentence_chunks,
    summary_passages,
)
from recollect.projections.embeddings.windows import LEAD_WORDS
from recollect.projections.queries.queried_episodes import SpokenText
from recollect.projections.text.chunks import chunks

_BOB = SpokenText("Bob", "tea?", None)
_ANN = SpokenText("Ann", "yes", "a cat")


def test_a_short_turn_is_one_passage_after_its_context() -> None:
    (passage,) = passages(_ANN, ["Ann: hello", "Bob: tea?"])
    assert passage.stretch.text == "Ann: hello\nBob: tea?\nAnn: yes (a cat)"
    assert passage.stretch.segments == ("Ann: hello", "Bob: tea?", "Ann: yes (a cat)")
    assert passage.stretch.part == "Ann: yes (a cat)"


def test_the_first_turn_of_a_session_has_no_context() -> None:
    (passage,) = passages(_ANN, ())
    assert (passage.stretch.text, passage.stretch.start) == ("Ann: yes (a cat)", 0)
    assert passage.stretch.segments == ("Ann: yes (a cat)",)


def test_a_chunk_of_a_long_turn_is_read_after_the_end_of_the_chunk_before_it() -> None:
    first, second = passages(SpokenText("Ann", "one. " * (CHUNK_WORDS + 5), None), ())
    assert first.stretch.start == 0
    assert second.stretch.text.split("\n")[0].split() == ["one."] * LEAD_WORDS
    assert (second.chunk, second.stretch.part) == (1, " ".join(["one."] * 6))


@given(st.lists(st.integers(1, 2 * CHUNK_WORDS), max_size=12))
def test_chunks_are_whole_sentences_where_they_fit_and_hold_every_word_once(lengths: list[int]) -> None:
    sentences = [
        " ".join([*(f"w{at}.{number}" for number in range(length)), "end."]) for at, length in enumerate(lengths)
    ]
    parts = sentence_chunks(" ".join(sentences))
    assert all(len(part.split()) <= CHUNK_WORDS for part in parts)
    assert " ".join(parts) == " ".join(sentences)
    for sentence in sentences:
        assert len(sentence.split()) > CHUNK_WORDS or any(sentence in part for part in parts)


def test_what_is_embedded_is_told_by_the_text_and_the_part_of_it() -> None:
    (alone,), (answer,) = passages(_ANN, ()), passages(_ANN, ["Bob: tea?", "Ann: yes"])
    (other,) = passages(SpokenText("Ann", "yes (a cat)", None), ["Bob: tea?", "Ann: yes"])
    assert alone.stretch.digest != answer.stretch.digest == other.stretch.digest
    assert answer.stretch._replace(start=0, breaks=()).digest != answer.stretch.digest
    assert answer.stretch._replace(breaks=()).digest != answer.stretch.digest


def test_a_summary_has_the_passages_of_its_sources_too() -> None:
    summary = SpokenText("summary", "They drank tea.", None)
    made = list(summary_passages(summary, [SourceTurn(_BOB, ()), SourceTurn(_ANN, ["Bob: tea?"])]))
    assert [passage.chunk for passage in made] == [0, 1, 2]
    expected = [*passages(summary, ()), *passages(_BOB, ()), *passages(_ANN, ["Bob: tea?"])]
    assert [passage.stretch.digest for passage in made] == [passage.stretch.digest for passage in expected]


def test_a_summary_without_a_word_of_its_own_has_only_the_passages_of_its_sources() -> None:
    sources = [SourceTurn(_BOB, ()), SourceTurn(_ANN, ["Bob: tea?"])]
    summary = SpokenText("summary", f"{_ANN.line()} Bob: and the TEA", None)
    made = list(summary_passages(summary, sources))
    expected = [*passages(_BOB, ()), *passages(_ANN, ["Bob: tea?"])]
    assert [passage.stretch.digest for passage in made] == [passage.stretch.digest for passage in expected]
    (own, *_) = summary_passages(SpokenText("summary", "(…)", None), sources)
    assert own.stretch.text == "summary: (…)"


def test_a_document_is_cut_at_its_paragraphs_and_a_heading_belongs_to_the_next() -> None:
    bikes, grill = "Bikes stand in the yard, under the new roof.", "No.\n\nNot even small ones on the balcony."
    text = f"# Rules\n\n{bikes}\n \n## Grill\n\n{grill}"
    assert chunks(text) == [
        "# Rules Bikes stand in the yard, under the new roof.",
        "## Grill No. Not even small ones on the balcony.",
    ]
    assert chunks("one line\nand another") == ["one line and another"]
    assert chunks(" \n\n ") == [""]
