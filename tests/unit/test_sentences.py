"""Sentences of texts, and texts cut at a word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.projections.text.sentences import iterate_sentences, opens_sentence, split_sentences
from recollect.projections.text.tokens import cut_at_word, estimate_tokens


def test_sentences_end_at_signs_and_lines_but_not_in_abbreviations_and_numbers() -> None:
    assert split_sentences("Dr. Lee paid 3.50 to J. Smith. Why?  Nobody\nknows…") == [
        "Dr. Lee paid 3.50 to J. Smith.",
        "Why?",
        "Nobody",
        "knows…",
    ]


def test_a_german_day_with_its_month_is_no_end_of_a_sentence() -> None:
    text = "ab 1. September, bis zum 3. April und vom 14. August an. Er war Nummer 1. September ist schön."
    assert split_sentences(text) == [
        "ab 1. September, bis zum 3. April und vom 14. August an.",
        "Er war Nummer 1.",
        "September ist schön.",
    ]


@given(st.text(st.sampled_from('ab. \n。!?"J')))
def test_sentences_one_after_the_other_are_the_same(text: str) -> None:
    assert [*iterate_sentences(text)] == split_sentences(text)


def test_chinese_and_japanese_sentences_need_no_space() -> None:
    assert split_sentences("茶が好きです。毎朝飲みます！") == ["茶が好きです。", "毎朝飲みます！"]


def test_a_text_without_words_has_no_sentences() -> None:
    assert split_sentences(" \n ") == []


def test_a_sentence_begins_behind_a_sign_or_at_a_line() -> None:
    text = "Hi. Ann met\nBob"
    assert [opens_sentence(text, text.index(word)) for word in ("Hi", "Ann", "met", "Bob")] == [True, True, False, True]


@given(st.text(alphabet="ab é茶.", min_size=40, max_size=200), st.integers(3, 9))
def test_what_is_cut_leaves_room_for_an_ellipsis(text: str, tokens_max: int) -> None:
    assert estimate_tokens(f"{cut_at_word(text, tokens_max)} …") <= tokens_max
