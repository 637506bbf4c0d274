"""Tests of the words of a text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.text.words import WORD, folded_words


@given(st.one_of(st.text(), st.text(st.characters(max_codepoint=127))))
def test_ascii_texts_have_the_words_of_the_pattern(text: str) -> None:
    assert folded_words(text) == WORD.findall(text.casefold())
