"""Noted statements: the events of what a note says, a sentence each, so that profile, history and map have it.

A model wrote the note, perhaps of what it read. So a statement is inferred: it never replaces what a user said. Only a
short value is taken apart; any other sentence keeps its words.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from recollect.api.importers.imported_statements import imported_fact, liking, note, statement, task_fact, task_of
from recollect.api.importers.markdown_notes import note_lines, topic_of
from recollect.events.intake.instructions import looks_like_instructions
from recollect.projections.text.sentences import split_sentences

#: Words of a value that is taken apart: a longer one may say several things, such as `phone calls and prefers email`.
_VALUE_WORDS_MAX = 3
#: Sentences of a note that become statements; a longer text is a document.
_SENTENCES_MAX = 20


def noted_statements(text: str, note_id: str, subject: str, speaker: str) -> list[dict[str, Any]]:
    """Return the events of the statements in the note `note_id`.

    Parameters:
        subject: the person that `the user` means.
        speaker: who is named as the one who said it.
    """
    if looks_like_instructions(text):
        return []
    # Lines are Markdown, whose bullets have their headings as topic.
    lines = note_lines(text) if "\n" in text else (((), sentence.strip()) for sentence in split_sentences(text))
    origin = {"stated_by": speaker, "source_events": [note_id]}
    events = (_statement(line, subject, origin, topic_of(headings)) for headings, line in islice(lines, _SENTENCES_MAX))
    return [event for event in events if event is not None]


def _statement(sentence: str, subject: str, origin: dict[str, Any], topic: str | None) -> dict[str, Any] | None:
    task = task_of(sentence)
    if task is not None and task.is_open:
        fact = task_fact(task.text, subject, details=(topic, *task.details))
        return {"type": "fact.stated", "payload": imported_fact(fact, **origin)}
    preference = liking(sentence, subject)
    if preference is not None and _is_short(preference["key"]):
        return {"type": "preference.stated", "payload": preference | {"source_events": origin["source_events"]}}
    fact = statement(sentence, subject, is_of_user=topic is None)
    if fact is None or fact["predicate"] == "did" or not _is_short(fact["object"]):
        fact = note(sentence, subject, topic=topic)
    return None if fact is None else {"type": "fact.stated", "payload": imported_fact(fact, **origin)}


def _is_short(value: str) -> bool:
    return len(value.split()) <= _VALUE_WORDS_MAX
