"""Which texts stand for an episode in vector space.

Each episode has two parts: *turn*, what was said and by whom, and *window*, the same with the two turns before it,
since a turn alone is often too little to be found by. Long text is cut into chunks; the best one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Part = Literal["turn", "window"]
PARTS: tuple[Part, ...] = ("turn", "window")

#: Changed with the rules below: vectors of other passages are made anew.
PASSAGES_VERSION = 1
#: Words in a chunk, and how many of them the next chunk repeats (see `RETRIEVAL.md`; the model reads 256 tokens).
CHUNK_WORDS = 170
OVERLAP_WORDS = 20
#: Turns before the episode in its window.
WINDOW_TURNS = 2
#: Words that each of them gives to the window: its end, which is what the next turn answers.
_CONTEXT_WORDS = 60


class Turn(NamedTuple):
    """What passages are made of."""

    speaker: str
    text: str
    caption: str | None

    def line(self) -> str:
        """Return the turn as one line: who said what, and what the attachments show."""
        caption = f" ({self.caption})" if self.caption else ""
        return f"{self.speaker}: {self.text}{caption}"


class Passage(NamedTuple):
    """One text to embed."""

    part: Part
    #: 0, 1, 2 … within the part.
    chunk: int
    text: str


def passages(turn: Turn, before: Sequence[Turn]) -> Iterator[Passage]:
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


def summary_passages(summary: Turn, sources: Sequence[Turn]) -> Iterator[Passage]:
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


def chunks(text: str) -> list[str]:
    """Return `text` in chunks of `CHUNK_WORDS` words, each beginning with the end of the one before."""
    words = text.split()
    if len(words) <= CHUNK_WORDS:
        return [" ".join(words)]
    step = CHUNK_WORDS - OVERLAP_WORDS
    return [" ".join(words[start : start + CHUNK_WORDS]) for start in range(0, len(words) - OVERLAP_WORDS, step)]
