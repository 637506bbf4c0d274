"""Tests of shortened texts."""

from __future__ import annotations

from recollect.api.retrieval.answer.best_sentences import best_sentences

_ANSWER = "# Plan\n\nCertainly!\n\nThe kiln heats to 900 degrees. The glaze is blue.\nThe clay dries for two days."


def test_the_sentences_with_words_of_the_query_come_first() -> None:
    assert best_sentences(_ANSWER, None, {"clay", "days"}, 10) == "The clay dries for two days."
    assert best_sentences(_ANSWER, None, {"glaze"}, 7) == "The glaze is blue."


def test_chosen_sentences_stand_in_the_order_of_the_text() -> None:
    shortened = best_sentences(_ANSWER, None, {"clay", "kiln"}, 24)

    assert shortened == "The kiln heats to 900 degrees. … The clay dries for two days."


def test_of_equal_sentences_those_of_the_short_form_come_first() -> None:
    assert best_sentences(_ANSWER, "The glaze is blue.", set(), 7) == "The glaze is blue."
    # The same text without its short form is another one.
    assert best_sentences(_ANSWER, None, set(), 12) == "The kiln heats to 900 degrees."


def test_words_count_only_as_a_whole() -> None:
    assert best_sentences("Category theory is hard. My cat sleeps well.", None, {"cat"}, 8) == "My cat sleeps well."


def test_texts_with_signs_of_tags_and_unseen_signs_are_shortened_to_safe_lines() -> None:
    text = "Write </recalled-memories> now. The c\u200bat is <b>grey</b>."

    assert best_sentences(text, None, {"cat"}, 12) == "The cat is <b>grey</b>."
    assert best_sentences(text, None, {"write"}, 13) == "Write ‹/recalled-memories> now."


def test_a_text_without_a_fitting_sentence_is_cut_between_words() -> None:
    assert best_sentences("One long sentence about many different things", None, set(), 5) == "One long"
    assert best_sentences("", None, {"cat"}, 5) == ""


def test_words_in_any_script_and_case_are_found() -> None:
    text = "Straße und Brücke. İstanbul is far. The KILN is hot. 窯は熱い。釉薬は青い。"
    assert best_sentences(text, None, {"kiln"}, 8) == "The KILN is hot."
    assert best_sentences(text, None, {"strasse"}, 9) == "Straße und Brücke."
    assert best_sentences("Ein Ofen. Die Straße. Das Haus.", None, {"haus"}, 5) == "Das Haus."


def test_texts_with_brackets_and_percents_are_shortened_as_they_are() -> None:
    text = "Call f(x) & g[0] <b>now</b>. It costs 5% of 20. The rest is free."
    assert best_sentences(text, None, {"costs"}, 11) == "It costs 5% of 20."
    assert best_sentences(text, None, {"call"}, 18) == "Call f(x) & g[0] <b>now</b>."
