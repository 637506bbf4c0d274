from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.embeddings.passages import passages
from recollect.projections.queries.episode_queries import SpokenText
from recollect.projections.text.chunks import CHUNK_WORDS, OVERLAP_WORDS


def test_a_short_turn_is_one_passage_alone_and_one_with_the_turns_before_it() -> None:
    made = list(passages(SpokenText("Ann", "yes", "a cat"), [SpokenText("Bob", "tea?", None)]))
    assert [(one.part, one.chunk, one.text) for one in made] == [
        ("turn", 0, "Ann: yes (a cat)"),
        ("window", 0, "Bob: tea?\nAnn: yes (a cat)"),
    ]


@given(st.integers(1, 1_000))
def test_a_long_turn_is_cut_into_overlapping_chunks_that_hold_every_word(count: int) -> None:
    words = ["Ann:", *(f"w{number}" for number in range(count))]
    chunks = [
        one.text.split() for one in passages(SpokenText("Ann", " ".join(words[1:]), None), []) if one.part == "turn"
    ]
    assert all(len(chunk) <= CHUNK_WORDS for chunk in chunks)
    assert [word for at, chunk in enumerate(chunks) for word in chunk[OVERLAP_WORDS if at else 0 :]] == words
