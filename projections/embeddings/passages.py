"""Passages: cut an episode into the texts that are embedded for it.

An episode has up to three parts:

- *turn*: the speaker and the text;
- *window*: the turn after the two turns before it, since a short turn has too few words to match a query;
- *reported speech*, when the speaker has a name: the turn in the third person ("Ann said: Ann moved to Lisbon"), since
  questions name the speaker where the turn says `I`.

A long part is cut into chunks; the score of a part is that of its best chunk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from recollect.projections.queries.episode_queries import SpokenText
from recollect.projections.text.chunks import chunks

Part = Literal["turn", "window", "told"]
TURN: Final = "turn"
WINDOW: Final = "window"
#: The reported-speech passage. Released files of vectors name it "told".
REPORTED_SPEECH: Final = "told"
PARTS: tuple[Part, ...] = (TURN, WINDOW, REPORTED_SPEECH)

#: Raise it with every change of the passages, so that all episodes are embedded again.
PASSAGES_VERSION = 2
#: Turns before the episode in its window.
WINDOW_TURNS = 2
#: Last words of each earlier turn in the window: the next turn mostly answers the end of a long one.
_CONTEXT_WORDS = 60


class Passage(NamedTuple):
    """A text to embed for an episode."""

    part: Part
    #: Number of the chunk within the part, from 0 on.
    chunk: int
    text: str


def passages(turn: SpokenText, before: Sequence[SpokenText]) -> Iterator[Passage]:
    """Yield the passages of an episode.

    Parameters:
        turn: the episode.
        before: up to `WINDOW_TURNS` episodes before it in its session, oldest first.
    """
    parts = chunks(turn.line())
    for number, chunk in enumerate(parts):
        yield Passage(TURN, number, chunk)
    context = [" ".join(earlier.line().split()[-_CONTEXT_WORDS:]) for earlier in before]
    for number, chunk in enumerate(parts):
        yield Passage(WINDOW, number, "\n".join([*context, chunk]) if number == 0 else chunk)
    if turn.named:
        others = [earlier.speaker for earlier in before if earlier.named and earlier.speaker != turn.speaker]
        for number, chunk in enumerate(chunks(_reported_speech(turn, others[-1] if others else None))):
            yield Passage(REPORTED_SPEECH, number, chunk)


def summary_passages(summary: SpokenText, sources: Sequence[SpokenText]) -> Iterator[Passage]:
    """Yield the passages of a summary and of its source turns, so that queries that matched a turn match the summary.

    Parameters:
        sources: the turns, in order.
    """
    all_passages = [*passages(summary, ())]
    for index, turn in enumerate(sources):
        all_passages += passages(turn, sources[max(0, index - WINDOW_TURNS) : index])
    for part in PARTS:
        of_part = (passage for passage in all_passages if passage.part == part)
        yield from (passage._replace(chunk=number) for number, passage in enumerate(of_part))


#: Pronouns, and the name that replaces each in reported speech.
_PERSONS = (
    (re.compile(r"\b(?:I|me|myself)\b"), "{speaker}"),
    (re.compile(r"\b(?:[Mm]y|[Mm]ine)\b"), "{speaker}'s"),
    (re.compile(r"\b(?:[Yy]our|[Yy]ours)\b"), "{other}'s"),
    (re.compile(r"\b(?:[Yy]ou|[Yy]ourself)\b"), "{other}"),
)
_CONTRACTIONS = (
    (re.compile(r"\bI['’]m\b"), "I is"),
    (re.compile(r"\bI['’]ve\b"), "I has"),
    (re.compile(r"\bI['’]ll\b"), "I will"),
)


def _reported_speech(turn: SpokenText, other: str | None) -> str:
    """Return the turn with the speaker's name in place of `I`, and the name of `other` in place of `you`."""
    text = turn.text
    for pattern, words in _CONTRACTIONS:
        text = pattern.sub(words, text)
    names = {"speaker": turn.speaker, "other": other}
    for pattern, template in _PERSONS:
        if other is not None or "{other}" not in template:
            name = template.format(**names)
            text = pattern.sub(lambda _, name=name: name, text)
    caption = f" ({turn.caption})" if turn.caption else ""
    return f"{turn.speaker} said: {text}{caption}"
