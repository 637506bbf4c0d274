"""Expired turns: keeps the turns behind summaries that searches have read from the log.

A search ranks the turns of the best summaries, some hundred of them. Reading and stemming them takes longer than the
rest of the search, and the next questions of a conversation are about the same sessions.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from recollect.events.storage.bounded_cache import BoundedCache
from recollect.projections.queries.queried_episodes import EpisodeRow
from recollect.projections.search_index.episode_arrays import UNKNOWN
from recollect.projections.text.segments import search_segments

#: Turns of one read model that are kept, about 3 kB each: those of four searches.
_TURNS_MAX = 2_000
#: Characters of their texts.
_CHARS_MAX = 400_000
_TURN_BYTES = 3_000


class ExpiredTurn(Struct):
    """A turn that has expired, and what a search needs of its text."""

    row: EpisodeRow
    #: Bytes of the text as the keyword index has it.
    length: int
    #: Occurrences of each stem in that text.
    stems: Mapping[str, int]
    #: As in `EpisodeArrays.text_flags`.
    text_flags: int = UNKNOWN


class ExpiredTurns:
    """The expired turns of one read model. Safe to use from many threads."""

    def __init__(self) -> None:
        self._turns: BoundedCache[int, ExpiredTurn] = BoundedCache(_CHARS_MAX, _chars, entries_max=_TURNS_MAX)

    @property
    def size_bytes(self) -> int:
        """Return the estimated memory of the turns."""
        return _TURN_BYTES * len(self._turns)

    def get(
        self,
        versions: Sequence[int],
        read: Callable[[Sequence[int]], Iterable[EpisodeRow]],
        stem: Callable[[str], list[str]],
    ) -> list[ExpiredTurn]:
        """Return the turns of `versions`, ascending, in order; those that the log no longer has are left out.

        Parameters:
            read: reads turns from the log.
            stem: splits a text into stems as the keyword index does.
        """
        turns = self._turns.get_all(versions)
        new = {row.version: _expired_turn(row, stem) for row in read([v for v in versions if v not in turns])}
        self._turns.put_all(new)
        turns |= new
        return [turns[version] for version in versions if version in turns]

    def add_text_flags(self, versions: Iterable[int], text_flags: Iterable[int]) -> None:
        """Add flags that ranking has computed for the texts of turns."""
        wanted = dict(zip(versions, text_flags, strict=True))
        for version, turn in self._turns.get_all(wanted).items():
            turn.text_flags |= wanted[version]


def _expired_turn(row: EpisodeRow, stem: Callable[[str], list[str]]) -> ExpiredTurn:
    """Return a turn with the stems of its text and of the search terms of languages other than English."""
    line = f"{row.text} {row.caption}" if row.caption else row.text
    indexed_text = " ".join([line, *search_segments(line)])
    stems = Counter(map(sys.intern, stem(indexed_text)))
    return ExpiredTurn(row, len(indexed_text.encode(errors="replace")), stems)


def _chars(turn: ExpiredTurn) -> int:
    return len(turn.row.text)
