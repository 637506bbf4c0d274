"""Residue: searches files for pieces of an erased text, for the receipt of its erasure.

The pieces are windows of the plain text, in memory only. A text is stored in a file as it is, so that one piece of it
is enough to find what a store has left. What is stored in another form is not found: compressed or encrypted text,
vectors, and the single words of a keyword index.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import orjson
from msgspec import Struct, field

from recollect.events.envelope import RecordedEvent
from recollect.events.errors import StorageError
from recollect.events.storage.shared_files import SharedFile, open_shared

#: Bytes of a window: two English sentences that share 24 bytes usually share a quotation.
WINDOW_BYTES = 24
#: Windows of one erasure.
WINDOWS_MAX = 64
#: Different bytes in a window, so that rulers, blanks and repetitions are not windows.
_DISTINCT_BYTES_MIN = 8
#: Limits of one search: a search of 1 GB takes about a second, and an erasure waits for it.
_SECONDS_MAX = 1.0
_BYTES_MAX = 4_000_000_000
#: Bytes read at once.
_BLOCK_BYTES = 1 << 20
#: The bytes of a word that the search compares at once.
_WORD_BYTES = 8
#: Bits of the hash of a word, of which few belong to windows.
_HASH_BITS = 16
#: An odd multiplier that spreads the bits of a word (Knuth's, from the golden ratio).
_MULTIPLIER = 0x9E3779B97F4A7C15


class ResidueSearch(Struct):
    """The result of a search."""

    #: The windows that were found, by file.
    hits_by_file: dict[Path, set[bytes]] = field(default_factory=dict[Path, set[bytes]])
    files: int = 0
    bytes: int = 0
    #: Whether all files were searched: none was over the limits or unreadable.
    is_complete: bool = True

    @property
    def hits(self) -> set[bytes]:
        """Return the windows that were found in any file."""
        return set[bytes]().union(*self.hits_by_file.values())


class EventSample:
    """Evenly spread events of a sequence of unknown length, in a bounded number."""

    def __init__(self) -> None:
        self._step = 1
        self._count = 0
        self._events: list[RecordedEvent] = []

    def add(self, event: RecordedEvent) -> None:
        """Take every n-th event; n doubles when there are too many."""
        if self._count % self._step == 0:
            self._events.append(event)
            if len(self._events) > WINDOWS_MAX:
                del self._events[1::2]
                self._step *= 2
        self._count += 1

    @property
    def events(self) -> Sequence[RecordedEvent]:
        """Return the sample."""
        return self._events


def windows_of(payloads: Collection[bytes]) -> set[bytes]:
    """Return windows of the texts in payloads, the same number of each payload as far as its texts suffice."""
    windows: set[bytes] = set()
    of_payloads: list[list[bytes]] = []
    for payload in payloads:
        texts = [text for text in _texts(orjson.loads(payload)) if len(text) >= WINDOW_BYTES]
        of_payloads += [texts] if texts else []
    each = max(1, WINDOWS_MAX // max(1, len(of_payloads)))
    for texts in of_payloads:
        size = sum(len(text) - WINDOW_BYTES + 1 for text in texts)
        for position in sorted({size * number // each for number in range(each)}):
            window = _window_at(texts, position)
            if _is_searchable(window):
                windows.add(window)
    return windows


def search(paths: Iterable[Path], windows: Collection[bytes]) -> ResidueSearch:
    """Search files for windows, in the given order, within the limits.

    A missing file is left out, since other processes remove files.
    """
    result = ResidueSearch()
    if not windows:
        return result
    finder = Finder(windows)
    deadline = time.monotonic() + _SECONDS_MAX
    for path in paths:
        try:
            with open_shared(path) as file:
                hits = _search_file(file, finder, result, deadline)
        except StorageError:
            result.is_complete = result.is_complete and not path.exists()
            continue
        result.files += 1
        if hits:
            result.hits_by_file[path] = hits
    return result


def _search_file(file: SharedFile, finder: Finder, result: ResidueSearch, deadline: float) -> set[bytes]:
    """Return the windows in a file, up to the limits."""
    hits: set[bytes] = set()
    for offset in range(0, file.size, _BLOCK_BYTES):
        if time.monotonic() > deadline or result.bytes > _BYTES_MAX:
            result.is_complete = False
            break
        # A window that begins at the end of a block ends in the next one.
        block = file.read(offset, _BLOCK_BYTES + WINDOW_BYTES + _WORD_BYTES)
        hits |= finder.find(block)
        result.bytes += min(len(block), _BLOCK_BYTES)
    return hits


class Finder:
    """Finds any of many windows in a block, in one pass.

    A window covers a whole word of the block at one of eight alignments, so the words of the block are compared with
    all words of the windows: first by a table of hashes, then exactly.
    """

    def __init__(self, windows: Collection[bytes]) -> None:
        # Imported here: a program that erases nothing does not need it.
        import numpy as np  # noqa: PLC0415

        self._np = np
        #: By word, where it is in windows: (window, position of the word).
        self._places: dict[int, list[tuple[bytes, int]]] = {}
        for window in windows:
            for position in range(_WORD_BYTES):
                word = int.from_bytes(window[position : position + _WORD_BYTES], "little")
                self._places.setdefault(word, []).append((window, position))
        self._words = np.array(sorted(self._places), dtype=np.uint64)
        self._is_wanted = np.zeros(1 << _HASH_BITS, dtype=np.bool_)
        self._is_wanted[self._hashes(self._words)] = True

    def find(self, block: bytes) -> set[bytes]:
        """Return the windows that are in `block`."""
        np = self._np
        words = np.frombuffer(block + bytes(-len(block) % _WORD_BYTES), dtype="<u8")
        numbers = np.flatnonzero(self._is_wanted[self._hashes(words)])
        numbers = numbers[np.isin(words[numbers], self._words)]
        hits: set[bytes] = set()
        for number in cast("list[int]", numbers.tolist()):
            for window, position in self._places[int(words[number])]:
                start = number * _WORD_BYTES - position
                if start >= 0 and window not in hits and block.startswith(window, start):
                    hits.add(window)
        return hits

    def _hashes(self, words: Any) -> Any:
        """Return the hashes of words."""
        return (words * self._np.uint64(_MULTIPLIER)) >> self._np.uint64(64 - _HASH_BITS)


def _texts(value: Any) -> Iterator[bytes]:
    """Yield all texts in a decoded payload."""
    match value:
        case str():
            yield value.encode(errors="replace")
        case dict():
            for element in cast("dict[str, Any]", value).values():
                yield from _texts(element)
        case list():
            for element in cast("list[Any]", value):
                yield from _texts(element)
        case _:
            return


def _window_at(texts: Sequence[bytes], position: int) -> bytes:
    """Return the window at a position among all windows of some texts."""
    for text in texts:
        count = len(text) - WINDOW_BYTES + 1
        if position < count:
            return text[position : position + WINDOW_BYTES]
        position -= count
    raise IndexError(position)


def _is_searchable(window: bytes) -> bool:
    """Return whether a window is written in JSON as in other files, and is not a repetition."""
    has_escapes = any(byte < 0x20 or byte in b'"\\' for byte in window)
    return not has_escapes and len(set(window)) >= _DISTINCT_BYTES_MIN
