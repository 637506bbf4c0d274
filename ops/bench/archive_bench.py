"""The archive: how fast the log is sealed, pruned, read and verified, and how many bytes an event takes.

Bytes are those of conversations taken once: repeated texts would compress too well.
"""

from __future__ import annotations

from pathlib import Path

import texts
from projection_bench import in_batches
from table import compare, heading, seconds

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.integrity.verify import verify
from recollect.events.validation import drafts

EVENTS = 100_000


def run(folder: Path) -> None:
    heading(f"Sealing and reading back {EVENTS:,} events (floor of reading: the same from the live log)")
    log = _filled(folder / "many", EVENTS)
    print(f"  seal, read-back included: {EVENTS / seconds(lambda: log.archive.seal(log, 'a')):,.0f} events/s")
    live = EVENTS / seconds(lambda: _read(log))
    print(f"  prune: {EVENTS / seconds(lambda: log.prune('a')):,.0f} events/s")
    compare("read from segments", EVENTS / seconds(lambda: _read(log)), live)
    print(f"  verify, one process: {EVENTS / seconds(lambda: verify(log, 'a')):,.0f} events/s")
    log.close()
    once = _filled(folder / "once", texts.real_count())
    once.shrink()
    live_bytes = (folder / "once" / "log.db").stat().st_size
    sealed_bytes = sum(segment.bytes for segment in once.archive.seal(once, "a"))
    count = once.head("a").version
    live_each, sealed_each = live_bytes / count, sealed_bytes / count
    print(f"  {count:,} events taken once: {live_each:.0f} bytes each live, {sealed_each:.0f} sealed")
    once.close()


def _filled(folder: Path, events: int) -> SqliteLog:
    log = SqliteLog(folder / "log.db")
    for batch in in_batches(texts.real(events)):
        log.append("a", [draft._replace(id=None) for draft in drafts(batch)])
    return log


def _read(log: SqliteLog) -> None:
    after = 0
    while events := log.read("a", after=after, limit=5_000):
        after = events[-1].version
