"""Windows: the turns of a session that each of its turns is read after.

A window is a run of short turns. Where one begins depends on the turns before it alone, so live, in a replay, and after
a file of vectors was lost, each turn has the same context. Most turns are in the window of the turn before them, so the
model reads each turn about once.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from recollect.projections.queries.queried_episodes import SpokenAfter, SpokenText

#: Most words of a window: about 180 tokens of prose; the default model reads 256.
WINDOW_WORDS = 130
#: Words up to which a turn is short. A longer one has enough words of its own, and is read after the end of one turn.
SHORT_WORDS = 60
#: Last words of the turn before a window, or of the chunk before in a long turn: a turn mostly answers the end of one.
LEAD_WORDS = 20
#: One turn in so many begins a window after any turn, so that few turns are read to find where one begins.
_OPENS_EVERY = 6
#: Turns that are read to find it. Only a session that repeats the same words has no beginning among so many.
_TURNS_MAX = 256


class _Turn(NamedTuple):
    """A turn and its window."""

    line: str
    words: int
    #: The segments that it is read after.
    context: tuple[str, ...]
    context_words: int


class SessionWindows:
    """The contexts of turns of a read model.

    Parameters:
        spoken_after: returns the text of a turn and the version of the one before it (`EpisodeQueries.spoken_after`).
    """

    def __init__(self, spoken_after: Callable[[int], SpokenAfter | None]) -> None:
        self._spoken_after = spoken_after
        #: Turns by version.
        self._turns: dict[int, _Turn] = {}

    def context(self, version: int, spoken: SpokenText, previous: int | None) -> tuple[str, ...]:
        """Return the segments that a turn is read after.

        Parameters:
            previous: version of the turn before it in its session; None: the first one.
        """
        turn = self._turns[version] = _following(self._turn(previous), spoken)
        return turn.context

    def _turn(self, version: int | None) -> _Turn | None:
        """Return a turn; None when it is not in the read model."""
        before: _Turn | None = None
        #: Turns that are not known yet, the last one first.
        run: list[tuple[int, SpokenText]] = []
        opens = False
        while version is not None and len(run) < _TURNS_MAX:
            before = self._turns.get(version)
            row = None if before is not None else self._spoken_after(version)
            if row is None:
                break
            run.append((version, row.spoken))
            if opens:
                # Only its last words are needed, so its own context is not looked up.
                before = _following(None, row.spoken)
                run.pop()
                break
            opens = _opens(_words(row.spoken))
            version = row.previous
        for turn_version, spoken in reversed(run):
            before = self._turns[turn_version] = _following(before, spoken)
        return before


def end_of(text: str) -> str:
    """Return the last `LEAD_WORDS` words of `text`."""
    return " ".join(text.rsplit(maxsplit=LEAD_WORDS)[-LEAD_WORDS:])


def _following(before: _Turn | None, spoken: SpokenText) -> _Turn:
    """Return a turn after another one; None: after no turn."""
    words = _words(spoken)
    line = " ".join(words)
    if before is None:
        return _Turn(line, len(words), (), 0)
    window_words = before.context_words + before.words
    if _opens(words) or before.words > SHORT_WORDS or window_words + len(words) > WINDOW_WORDS:
        return _Turn(line, len(words), (end_of(before.line),), min(before.words, LEAD_WORDS))
    return _Turn(line, len(words), (*before.context, before.line), window_words)


def _opens(words: list[str]) -> bool:
    """Return whether a turn begins a window after any other turn."""
    return len(words) > SHORT_WORDS or sha256(" ".join(words).encode(errors="replace")).digest()[0] % _OPENS_EVERY == 0


def _words(spoken: SpokenText) -> list[str]:
    return spoken.line().split()
