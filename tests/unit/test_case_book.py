"""The files of the case book are well formed, and each of their checks can hold and can fail."""

from __future__ import annotations

import pytest
from support.case_book import SILENT, Conversation, holds, read_case_book

_BOOK = read_case_book()
_CLASSES = {"present", "earlier", "when", "other", "paraphrase", "list", "count", "said", *SILENT}


def test_the_book_has_three_given_and_five_blind_conversations() -> None:
    assert len(read_case_book("given")) == 3
    assert len(read_case_book("blind")) == 5


@pytest.mark.parametrize("book", _BOOK.values(), ids=_BOOK)
def test_a_conversation_is_long_and_in_the_order_of_time(book: Conversation) -> None:
    assert len(book.events) >= 120
    times = [event.at for event in book.events]
    assert times == sorted(times)
    assert all((event.speaker is None) == (event.role == "assistant") for event in book.events)
    assert all(first <= last for event in book.events for first, last in event.spans())
    assert book.facts


@pytest.mark.parametrize("book", _BOOK.values(), ids=_BOOK)
def test_the_questions_have_checks_of_messages_that_exist(book: Conversation) -> None:
    texts = [event.text for event in book.events]
    speakers = {event.speaker for event in book.events}
    assert len([question for question in book.questions if question.is_silent]) == 6
    for question in book.questions:
        assert question.group in _CLASSES
        assert question.speaker in speakers
        assert question.is_silent != bool(question.has)
        assert question.is_silent or len(question.lacks) >= len(question.has)
        for part in (*question.lacks, *question.old, *question.forgotten, *book.forgotten):
            assert any(holds(text, part) for text in texts), (question.query, part)


@pytest.mark.parametrize("book", _BOOK.values(), ids=_BOOK)
def test_each_question_can_be_answered_without_the_lines_that_it_lacks(book: Conversation) -> None:
    for question in book.questions:
        unwanted = (*question.lacks, *question.forgotten)
        texts = [event.text for event in book.events if not any(holds(event.text, part) for part in unwanted)]
        for group in question.has:
            assert any(holds(text, part) for text in texts for part in group), (question.query, group)
