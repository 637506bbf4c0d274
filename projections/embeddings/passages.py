"""Which texts stand for an episode in vector space.

Each episode has up to three parts: *turn*, what was said and by whom; *window*, the same with the two turns before it,
since a turn alone is often too little to be found by; *told*, where people are named, the same in the third person
("Ann said: Ann moved to Lisbon"), which is how questions name them. Long text is cut into chunks; the best one counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from recollect.projections.queries.episode_queries import SpokenText
from recollect.projections.text.chunks import chunks

Part = Literal["turn", "window", "told"]
PARTS: tuple[Part, ...] = ("turn", "window", "told")

#: Changed with the rules below: vectors of other passages are made anew.
PASSAGES_VERSION = 2
#: Turns before the episode in its window.
WINDOW_TURNS = 2
#: Words that each of them gives to the window: its end, which is what the next turn answers.
_CONTEXT_WORDS = 60


class Passage(NamedTuple):
    """One text to embed."""

    part: Part
    #: 0, 1, 2 … within the part.
    chunk: int
    text: str


def passages(turn: SpokenText, before: Sequence[SpokenText]) -> Iterator[Passage]:
    """Yield the passages of an episode.

    Parameters:
        before: up to `WINDOW_TURNS` episodes before it in its session, oldest first.
    """
    parts = chunks(turn.line())
    for number, chunk in enumerate(parts):
        yield Passage("turn", number, chunk)
    context = [" ".join(earlier.line().split()[-_CONTEXT_WORDS:]) for earlier in before]
    for number, chunk in enumerate(parts):
        yield Passage("window", number, "\n".join([*context, chunk]) if number == 0 else chunk)
    if turn.named:
        others = [earlier.speaker for earlier in before if earlier.named and earlier.speaker != turn.speaker]
        for number, chunk in enumerate(chunks(_told(turn, others[-1] if others else None))):
            yield Passage("told", number, chunk)


def summary_passages(summary: SpokenText, sources: Sequence[SpokenText]) -> Iterator[Passage]:
    """Yield the passages of a summary: its own and those of the turns it stands for, so it is found as they were.

    Parameters:
        sources: the turns, in order.
    """
    found = [*passages(summary, ())]
    for at, turn in enumerate(sources):
        found += passages(turn, sources[max(0, at - WINDOW_TURNS) : at])
    for part in PARTS:
        mine = (passage for passage in found if passage.part == part)
        yield from (passage._replace(chunk=number) for number, passage in enumerate(mine))


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


def _told(turn: SpokenText, other: str | None) -> str:
    """Return what was said with the names of who speaks and who is spoken to in place of `I` and `you`."""
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
