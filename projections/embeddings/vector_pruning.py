"""Vector pruning: removes the vectors of texts that no episode and no knowledge item has any longer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from recollect.events.backends.log import EventLog
from recollect.events.storage.database import connect, storage_errors, truncate_wal
from recollect.projections.embeddings.passages import SourceTurn, passages, summary_passages
from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.embeddings.vector_schema import tables
from recollect.projections.embeddings.windows import SessionWindows
from recollect.projections.queries.queried_episodes import EpisodeRow, SpokenText
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.layout import generations, namespace_folder, remove_vector_file
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.read_models.summary_sources import read_turns

#: Episodes read at once.
_EPISODES = 1_000
#: The progress is removed too, so that the episodes get their vectors again, most of them from this file.
_REMOVALS = (
    "DELETE FROM embedded",
    "DELETE FROM embeddings",
    "DELETE FROM vectors WHERE digest NOT IN (SELECT digest FROM kept)",
    "DELETE FROM token_codes WHERE vector_key NOT IN (SELECT key FROM vectors)",
    "DELETE FROM text_flags",
)


def digests_in_use(log: EventLog, namespace: str, snapshot: Snapshot) -> Iterator[bytes]:
    """Yield the digests of all texts of a read model, as they are embedded."""
    after = 0
    windows = SessionWindows(snapshot.episodes.spoken_after)
    while episodes := snapshot.episodes.to_embed(after, limit=_EPISODES):
        for episode in episodes:
            if episode.tier == "raw":
                context = windows.context(episode.version, episode.spoken, episode.previous)
                yield from (passage.stretch.digest for passage in passages(episode.spoken, context))
                continue
            turns = read_turns(log, namespace, snapshot.episodes.source_versions(episode.version))
            sources = source_turns(turns, snapshot, windows)
            yield from (passage.stretch.digest for passage in summary_passages(episode.spoken, sources))
            for source in sources:
                yield from (passage.stretch.digest for passage in passages(source.spoken, source.context))
        after = episodes[-1].version
    for item in snapshot.knowledge.items():
        yield Stretch(item.text).digest


def texts_in_use(data: Path, read_models: ReadModels, namespace: str) -> set[bytes]:
    """Return the digests of all texts of the live read model; none where the machine has none."""
    if not generations(namespace_folder(data, namespace)):
        return set()
    with read_models.reading(namespace) as snapshot:
        return set(digests_in_use(read_models.log, namespace, snapshot))


def prune_vectors(path: Path, kept: Iterable[bytes], version: int) -> int:
    """Remove the vectors and codes of all other texts from the file `path`; return the number of removed vectors.

    Parameters:
        version: of the erasure; processes that opened the file before it may no longer write to it.
    """
    with closing(connect(path, create=False)) as connection, storage_errors(path):
        connection.execute("CREATE TEMP TABLE kept (digest BLOB PRIMARY KEY) WITHOUT ROWID")
        connection.execute("BEGIN IMMEDIATE")
        # A file of an earlier release may lack one.
        connection.execute(tables())
        connection.executemany("INSERT OR IGNORE INTO kept VALUES (?)", ((digest,) for digest in kept))
        connection.execute("INSERT OR REPLACE INTO purges VALUES (?)", (version,))
        before = connection.total_changes()
        counts: list[int] = []
        for removal in _REMOVALS:
            connection.execute(removal)
            counts.append(connection.total_changes() - before)
            before = connection.total_changes()
        connection.execute("COMMIT")
        # A process that opened the database before the erasure does not write this file again: it reads the purges
        # in the transaction of its write.
        remove_vector_file(path)
        # Earlier releases did not overwrite what they deleted.
        connection.execute("VACUUM")
        truncate_wal(connection)
    return counts[2]


def source_turns(rows: Sequence[EpisodeRow], snapshot: Snapshot, windows: SessionWindows) -> list[SourceTurn]:
    """Return the sources of a summary with the contexts they were embedded in.

    Where the row of a source, or of the turn before it, has expired, the source before it in its session replaces it.
    """
    previous = snapshot.episodes.previous([row.version for row in rows])
    last_of_session: dict[str, int] = {}
    turns: list[SourceTurn] = []
    for row in rows:
        spoken = SpokenText(row.speaker, row.text, row.caption)
        fallback = None if row.session_id is None else last_of_session.get(row.session_id)
        turns.append(SourceTurn(spoken, windows.context(row.version, spoken, previous.get(row.version, fallback))))
        if row.session_id is not None:
            last_of_session[row.session_id] = row.version
    return turns
