"""`python ops/erasure`: canaries in every store of SQLite and of PostgreSQL, before and after an erasure of each scope.

    python ops/erasure --canaries 1000 --backend sqlite

Each message has a word of its own. The memory extracts, embeds, summarises, archives and answers; then a namespace, a
subject, a session and single messages are erased, each from a namespace of its own. Every file is searched for the
last eight letters of the words (an index of FTS5 stores what a word does not share with its neighbour), and for the
vectors and token codes that the files of vectors have no more. The exit code is 1 when something is found.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import apsw
import numpy as np

from recollect import Recollect
from recollect.api.receipt_types import Receipt
from recollect.api.settings import load_settings

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.postgres import PostgresServer

#: What is searched for: the last letters of a word, the first bytes of a vector, as one unsigned integer of 64 bits.
_KEY_BYTES = 8
#: One message in this number is kept.
_KEPT_EVERY = 5


def words(count: int, seed: int) -> list[str]:
    """Return `count` words of syllables, with an end that stemming keeps."""
    chance = random.Random(seed)
    syllables = [consonant + vowel for consonant in "bdfghjklmnprtvz" for vowel in "aou"]
    return ["".join(chance.choices(syllables, k=6)).capitalize() + chance.choice("bkmp") for _ in range(count)]


def talk(scope: str, canaries: list[str]) -> list[dict[str, Any]]:
    """Return a message by Ann in session `told` for each canary, and between them some by Bob in session `kept`."""
    events: list[dict[str, Any]] = []
    for number, canary in enumerate(canaries):
        text = f"My sister {canary} lives in {canary}. I love {canary} cakes, and I met {canary} on Friday at noon."
        events.append(_message(f"{scope}-{number}", "Ann", "told", text))
        if number % _KEPT_EVERY == 0:
            events.append(
                _message(f"{scope}-kept-{number}", "Bob", "kept", f"The kettle number {number} was mended in Porto.")
            )
    return events


def _message(id: str, name: str, session_id: str, text: str) -> dict[str, Any]:
    payload = {"role": "user", "name": name, "text": text}
    event = {"type": "message.added", "id": id, "session_id": session_id, "payload": payload}
    return event | {"occurred_at": "2026-01-05T10:00:00Z"}


#: What is erased from the namespace that has the name of the scope.
_SCOPES: dict[str, dict[str, Any]] = {
    "namespace": {"everything": True},
    "subject": {"subject": "Ann"},
    "session": {"session_id": "told"},
    "message": {},
}


def found_words(folders: list[Path], canaries: list[str]) -> dict[str, int]:
    """Return how many of `canaries` the files of each name have, in any letter case, without files that have none."""
    keys = {canary.lower()[-_KEY_BYTES:].encode() for canary in canaries}
    # A bit that makes letters lower case; what it makes of other bytes is not a letter.
    return {name: len(found) for name, found in _found(folders, keys, bits=0x20).items()}


def found_vectors(folders: list[Path], vectors: set[bytes]) -> int:
    """Return how many of `vectors` the files have."""
    return len(set[int]().union(*_found(folders, vectors, bits=0).values()))


def _found(folders: list[Path], keys: set[bytes], bits: int) -> dict[str, set[int]]:
    """Return the keys, eight bytes as an integer, that the files of each name have at any place."""
    wanted = np.sort(np.array(sorted(keys), dtype=f"S{_KEY_BYTES}").view(np.uint64))
    found: dict[str, set[int]] = {}
    for path in (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()):
        content = np.frombuffer(path.read_bytes(), dtype=np.uint8) | np.uint8(bits)
        for offset in range(min(_KEY_BYTES, content.size - _KEY_BYTES + 1)):
            length = (content.size - offset) // _KEY_BYTES * _KEY_BYTES
            windows = content[offset : offset + length].copy().view(np.uint64)
            at = np.minimum(np.searchsorted(wanted, windows), wanted.size - 1)
            if hits := set(windows[wanted[at] == windows].tolist()):
                found[path.name] = found.get(path.name, set()) | hits
    return found


def stored_vectors(folder: Path) -> set[bytes]:
    """Return the first bytes of each vector, as the int8 file has them too, and of each token code."""
    found: set[bytes] = set()
    for path in folder.rglob("vectors.db"):
        with closing(apsw.Connection(str(path))) as connection:
            for table, column in (("vectors", "vector"), ("token_codes", "codes")):
                found |= {bytes(row[0][:_KEY_BYTES]) for row in connection.execute(f"SELECT {column} FROM {table}")}
    return found


def measure(url: str | None, folder: Path, searched: list[Path], count: int) -> bool:
    """Fill a memory, erase each scope, print what the files have before and after; return whether nothing is left."""
    settings: dict[str, Any] = {} if url is None else {"log": url}
    canaries = {scope: words(count, seed) for seed, scope in enumerate(_SCOPES)}
    everything = [canary for chosen in canaries.values() for canary in chosen]
    with Recollect(settings=load_settings(data=folder, **settings), workers=False) as memory:
        for scope, chosen in canaries.items():
            _live(memory, scope, talk(scope, chosen), chosen)
        before, vectors = found_words(searched, everything), stored_vectors(folder)
        print(f"before: {before}, {len(vectors)} vectors and token codes", flush=True)
        for scope, what in _SCOPES.items():
            chosen = what or {"event_ids": [f"{scope}-{number}" for number in range(count)]}
            erase = cast("Callable[..., Receipt]", memory.erase)
            receipt = erase(scope, **chosen)
            print(f"  {scope}: {sum(receipt['events']['by_type'].values())} events erased", flush=True)
        kept = stored_vectors(folder)
        left, vectors_left = found_words(searched, everything), found_vectors(searched, vectors - kept)
        are_intact = all(memory.verify(scope).is_intact for scope in _SCOPES)
    print(
        f"after:  {left or 'no canary'}, {vectors_left} of {len(vectors - kept)} erased vectors, intact: {are_intact}"
    )
    return not left and not vectors_left and are_intact


def _live(memory: Recollect, scope: str, events: list[dict[str, Any]], canaries: list[str]) -> None:
    """Let the memory do all that it does with messages."""
    for start in range(0, len(events), 100):
        memory.append(scope, events[start : start + 100])
    memory.settle(scope)
    memory.retrieve(scope, f"Where does {canaries[0]} live?")
    memory.retrieve(scope, f"Who is {canaries[1]}?", as_of=len(events) // 2)
    memory.compact(scope, now="2026-06-01T03:00:00Z")
    memory.settle(scope)
    archive = memory.parts.log.archive
    if archive is not None:
        archive.seal(memory.parts.log, scope)
        memory.parts.log.prune(scope)
        memory.append(scope, [_message(f"{scope}-night", "Bob", "kept", "Good night.")])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--canaries", type=int, default=1_000, help="erased messages of each scope")
    parser.add_argument("--backend", choices=("sqlite", "postgres"), default="sqlite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if options.backend == "sqlite":
            return 0 if measure(None, folder, [folder], options.canaries) else 1
        server = PostgresServer()
        return 0 if measure(server.url, folder, [folder, server.data], options.canaries) else 1


if __name__ == "__main__":
    sys.exit(main())
