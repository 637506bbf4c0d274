"""Tests of text flags."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.text.text_flags import (
    ALL_FLAGS,
    KEY_SHIFT,
    QUESTION,
    WORD_COUNT,
    WORDS_BITS,
    WORDS_MAX,
    WORDS_SHIFT,
    text_flags,
    text_key,
)


@given(st.text())
def test_all_flags_of_any_text_fit_into_an_integer_of_sqlite(text: str) -> None:
    flags = text_flags(text)
    assert 0 < flags < 1 << 63
    assert flags >> KEY_SHIFT == text_key(text) > 0
    assert flags >> WORDS_SHIFT & WORDS_BITS <= WORDS_MAX
    assert flags & ALL_FLAGS == text_flags(text, ALL_FLAGS & ~WORD_COUNT) & ALL_FLAGS


def test_texts_with_the_same_words_have_the_same_key() -> None:
    assert text_key("The gate code?  Ask REX!") == text_key("the gate code: ask\nrex")
    assert text_key("ask rex") != text_key("ask tom")
    assert text_key("👍") != text_key("🎉")
    assert text_key("\ud800") > 0


def test_a_key_and_words_are_computed_only_where_words_are_counted() -> None:
    assert text_flags("Where is the red bike?", QUESTION) >> WORDS_SHIFT == 0
    assert text_flags("Where is the red bike?", WORD_COUNT) >> WORDS_SHIFT & WORDS_BITS == 2
