"""Archive: seals old ranges of the log into Parquet segments, which are read as a part of the log.

Each namespace has its own folder, so that erasing a namespace deletes files. A segment stores every column of its
events. The hash is stored once a block only, since the other hashes are computed from the leaves.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from msgspec import Struct
from msgspec.structs import asdict

from recollect.events.chain import GENESIS, leaf_of, link
from recollect.events.envelope import Head, RecordedEvent
from recollect.events.errors import ForeignFile, StorageError
from recollect.events.limits import READ_BYTES_MAX
from recollect.events.storage.atomic_file import sync_file, write_atomically
from recollect.events.storage.bounded_cache import BoundedCache
from recollect.events.storage.database import storage_errors
from recollect.events.storage.file_lock import file_lock
from recollect.events.storage.namespace_folder import hashed_folder
from recollect.events.storage.private_files import make_private

if TYPE_CHECKING:
    import duckdb

#: Events in a block, which is read at once: a row group of the file. Blocks begin at multiples of it.
BLOCK_EVENTS = 8_192
#: Events in one segment: some megabytes of text, written and checked in a second.
SEGMENT_EVENTS_MAX = 8 * BLOCK_EVENTS
#: Blocks cached in memory for the next page: a few megabytes each.
_BLOCKS_MAX = 4
_MANIFEST = "manifest.json"
#: The file that a process locks while it seals.
_LOCK = "seal.lock"

#: The columns of a segment, with DuckDB's types.
SEGMENT_COLUMNS: dict[str, str] = {
    "version": "BIGINT",
    "id": "VARCHAR",
    "type": "VARCHAR",
    "schema_version": "INTEGER",
    "occurred_at_us": "BIGINT",
    "recorded_at_us": "BIGINT",
    "session_id": "VARCHAR",
    "actor": "VARCHAR",
    "causation_id": "VARCHAR",
    "correlation_id": "VARCHAR",
    "encoding": "VARCHAR",
    "payload": "BLOB",
    "leaf": "BLOB",
    "hash": "BLOB",
}
_WRITE_SEGMENT = (
    "COPY (SELECT "
    + ", ".join(f"{name}::{kind} AS {name}" for name, kind in SEGMENT_COLUMNS.items())
    + " FROM rows) TO '{path}' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 9, ROW_GROUP_SIZE {block})"
)
_READ_EVENTS = "SELECT * FROM read_parquet(?) WHERE version >= ? AND version <= ? ORDER BY version"


class Segment(Struct, frozen=True, kw_only=True):
    """An entry of the manifest: one file of the archive."""

    #: The file's name in the namespace's folder.
    file: str
    first_version: int
    last_version: int
    #: Hash of the version before the first one, in hex.
    previous_hash: str
    #: Hash of the last version, in hex.
    hash: str
    #: The file's size.
    bytes: int
    #: The file's digest, in hex.
    sha256: str


class EventSource(Protocol):
    """The methods of a log that sealing uses."""

    def head(self, namespace: str) -> Head:
        """Return the newest version of a namespace."""
        ...

    def read_stored(self, namespace: str, *, after: int, limit: int) -> Sequence[RecordedEvent]:
        """Return up to `limit` events with versions over `after`, with their stored payloads."""
        ...


class Archive:
    """The segments of the log `log_id` below `folder`. Safe to use from many threads; one process seals at a time.

    The folder is created by the first seal.

    Parameters:
        block_events: events in a block; readers of a folder must use the number of its writers.
        segment_events_max: events in one segment, a multiple of `block_events`.
    """

    def __init__(
        self,
        folder: Path,
        log_id: str,
        *,
        block_events: int = BLOCK_EVENTS,
        segment_events_max: int = SEGMENT_EVENTS_MAX,
    ) -> None:
        self.folder = folder
        self._block_events = block_events
        self._segment_events_max = segment_events_max
        self._log_id = log_id
        self._manifests: dict[str, tuple[tuple[int, int], list[Segment]]] = {}
        self._blocks: BoundedCache[tuple[str, int], list[RecordedEvent]] = BoundedCache(_BLOCKS_MAX)
        #: The digests of segments, with the time and the inode of the files that were compared with them.
        self._checked: dict[str, tuple[int, int]] = {}
        self._connecting = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None

    def segments(self, namespace: str) -> list[Segment]:
        """Return the segments of `namespace` in order; they cover the sealed versions from 1 without a gap.

        Raises:
            ForeignFile: the manifest is damaged or of another log.
        """
        path = self._folder_of(namespace) / _MANIFEST
        with storage_errors(path):
            try:
                status = path.stat()
            except FileNotFoundError:
                return []
            stamp = (status.st_mtime_ns, status.st_ino)
            cached = self._manifests.get(namespace)
            if cached is None or cached[0] != stamp:
                # A segment may have been written again without erased events.
                self._blocks.clear()
                cached = self._manifests[namespace] = (stamp, self._read_manifest(path, namespace))
        return cached[1]

    def sealed(self, namespace: str) -> int:
        """Return the last sealed version of `namespace`; 0 when there is none."""
        segments = self.segments(namespace)
        return segments[-1].last_version if segments else 0

    def paths(self, namespace: str) -> list[Path]:
        """Return the paths of the segments of `namespace`."""
        return [self._folder_of(namespace) / segment.file for segment in self.segments(namespace)]

    def read(self, namespace: str, *, after: int, limit: int) -> list[RecordedEvent]:
        """Return up to `limit` sealed events and `READ_BYTES_MAX` bytes of payloads after `after`, in order.

        Raises:
            ForeignFile: a segment is damaged. StorageError: it is missing, or cannot be read.
        """
        events: list[RecordedEvent] = []
        size = 0
        for segment in self.segments(namespace):
            while len(events) < limit and segment.first_version <= after + 1 <= segment.last_version:
                block = self._block(namespace, segment, after // self._block_events)
                page = block[after + 1 - block[0].version :][: limit - len(events)]
                events += page
                after = page[-1].version
                size += sum(len(event.payload) for event in page)
                if size >= READ_BYTES_MAX:
                    return events
        return events

    def seal(self, log: EventSource, namespace: str, *, min_events: int = 1) -> list[Segment]:
        """Seal the events of `namespace` after the last segment, if at least `min_events`; return the new segments.

        A segment is written under a temporary name, read back, compared with the log's chain and renamed before it is
        added to the manifest, so a kill at any time leaves at most a file that the next call removes.

        Raises:
            ForeignFile: the log's chain is broken in this range. StorageError: the disk failed.
        """
        with self._sealing(namespace) as folder:
            sealed_segments: list[Segment] = []
            segments = self.segments(namespace)
            after = segments[-1].last_version if segments else 0
            head = log.head(namespace).version
            if head - after < min_events:
                return []
            while after < head:
                last = min(head, (after // self._segment_events_max + 1) * self._segment_events_max)
                previous = bytes.fromhex(segments[-1].hash) if segments else GENESIS
                segment = self._write_segment(log, namespace, folder, after, last, previous)
                segments = [*segments, segment]
                self._write_manifest(folder, namespace, segments)
                sealed_segments.append(segment)
                after = last
            return sealed_segments

    def rewrite(self, log: EventSource, namespace: str, versions: Collection[int]) -> list[tuple[Segment, Segment]]:
        """Write the segments with `versions`, which the log has erased, again without their content.

        Parameters:
            versions: erased versions; segments that hold none of them with content stay as they are.

        Returns:
            (segment before, segment after) for each rewritten segment.

        Raises:
            ForeignFile: a segment is damaged. StorageError: the disk failed; the same call again is safe.
        """
        if not self._folder_of(namespace).exists():
            return []
        rewritten: list[tuple[Segment, Segment]] = []
        with self._sealing(namespace) as folder:
            segments = self.segments(namespace)
            for number, segment in enumerate(segments):
                erased = {version for version in versions if segment.first_version <= version <= segment.last_version}
                if not erased:
                    continue
                stored = self._read_back(namespace, folder / segment.file, segment)
                if all(event.is_erased for event in stored if event.version in erased):
                    continue
                name = f"{segment.first_version:012}-{segment.last_version:012}-{segment.sha256[:8]}.parquet"
                new = self._write_segment(
                    log,
                    namespace,
                    folder,
                    segment.first_version - 1,
                    segment.last_version,
                    bytes.fromhex(segment.previous_hash),
                    name,
                )
                segments = [*segments[:number], new, *segments[number + 1 :]]
                self._write_manifest(folder, namespace, segments)
                (folder / segment.file).unlink()
                rewritten.append((segment, new))
            sync_file(folder)
            self._blocks.clear()
        return rewritten

    def close(self) -> None:
        """Close the connection to DuckDB, which is opened again by the next read."""
        with self._connecting:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def check(self, namespace: str, segment: Segment) -> None:
        """Raise `ForeignFile` unless the segment's file has the digest of the sealed file."""
        path = self._folder_of(namespace) / segment.file
        _refuse_missing(path)
        with storage_errors(path), path.open("rb") as file:
            digest = sha256()
            while part := file.read(1 << 20):
                digest.update(part)
        if digest.hexdigest() != segment.sha256:
            raise ForeignFile(f"{path} is damaged: it is not what was sealed; restore it from a backup")

    def _write_segment(
        self,
        log: EventSource,
        namespace: str,
        folder: Path,
        after: int,
        last: int,
        previous_hash: bytes,
        name: str | None = None,
    ) -> Segment:
        """Write the versions over `after` up to `last` to a new segment and return its entry of the manifest."""
        name = name or f"{after + 1:012}-{last:012}.parquet"
        temporary = folder / f"{name}.tmp"
        events: list[RecordedEvent] = []
        while after + len(events) < last:
            page = log.read_stored(
                namespace, after=after + len(events), limit=min(self._block_events, last - after - len(events))
            )
            if not page:
                break
            events += page
        _check_chain(namespace, after, last, events, previous_hash)
        with storage_errors(temporary):
            self._write_file(temporary, events)
            make_private(temporary)
            content = temporary.read_bytes()
            segment = Segment(
                file=name,
                first_version=after + 1,
                last_version=last,
                previous_hash=previous_hash.hex(),
                hash=events[-1].hash.hex(),
                bytes=len(content),
                sha256=sha256(content).hexdigest(),
            )
            if self._read_back(namespace, temporary, segment) != events:
                raise StorageError(f"{temporary} does not read back as it was written; check the disk")
            sync_file(temporary)
            temporary.rename(folder / name)
            sync_file(folder)
        return segment

    def _write_file(self, path: Path, events: Sequence[RecordedEvent]) -> None:
        """Write `events` to a Parquet file, with the hash at the end of each block only."""
        import numpy as np  # noqa: PLC0415

        rows: dict[str, Any] = {}
        for column_index, (name, kind) in enumerate(SEGMENT_COLUMNS.items(), start=1):
            values = [event[column_index] for event in events]
            if name == "hash":
                last = len(events) - 1
                values = [
                    event.hash if event.version % self._block_events == 0 or number == last else None
                    for number, event in enumerate(events)
                ]
            column = np.empty(len(values), dtype=np.int64 if kind in ("BIGINT", "INTEGER") else object)
            column[:] = values
            rows[name] = column
        with self._cursor() as cursor:
            cursor.register("rows", rows)
            cursor.execute(_WRITE_SEGMENT.format(path=str(path).replace("'", "''"), block=self._block_events))

    def _read_back(self, namespace: str, path: Path, segment: Segment) -> list[RecordedEvent]:
        """Return all events of the segment that was written to `path`."""
        first, last = (
            (segment.first_version - 1) // self._block_events,
            (segment.last_version - 1) // self._block_events,
        )
        blocks = [self._read_block(namespace, path, segment, number) for number in range(first, last + 1)]
        return [event for block in blocks for event in block]

    def _block(self, namespace: str, segment: Segment, number: int) -> list[RecordedEvent]:
        """Return the events of the block `number`, cached; blocks are numbered from the namespace's first event."""
        path = self._folder_of(namespace) / segment.file
        key = (str(path), number)
        block = self._blocks.get(key)
        if block is None:
            self._check_once(namespace, segment)
            block = self._read_block(namespace, path, segment, number)
            self._blocks.put(key, block)
        return block

    def _check_once(self, namespace: str, segment: Segment) -> None:
        """Compare the file of a segment with its digest, unless this file was compared before; 1 ms a megabyte."""
        path = self._folder_of(namespace) / segment.file
        _refuse_missing(path)
        with storage_errors(path):
            status = path.stat()
        stamp = (status.st_mtime_ns, status.st_ino)
        if self._checked.get(segment.sha256) != stamp:
            self.check(namespace, segment)
            self._checked[segment.sha256] = stamp

    def _read_block(self, namespace: str, path: Path, segment: Segment, number: int) -> list[RecordedEvent]:
        """Read the events of the block `number` from the file `path`; raise `ForeignFile` when it is damaged."""
        import duckdb  # noqa: PLC0415

        first = max(segment.first_version, number * self._block_events + 1)
        last = min(segment.last_version, (number + 1) * self._block_events)
        _refuse_missing(path)
        try:
            with self._cursor() as cursor:
                rows: list[tuple[Any, ...]] = cursor.execute(_READ_EVENTS, (str(path), first - 1, last)).fetchall()
        except duckdb.Error as error:
            raise ForeignFile(f"{path} is damaged ({str(error).splitlines()[0]}); restore it from a backup") from error
        previous = bytes.fromhex(segment.previous_hash)
        if rows and rows[0][0] == first - 1:
            previous = rows.pop(0)[13]
        if [row[0] for row in rows] != list(range(first, last + 1)) or previous is None:
            raise ForeignFile(f"{path} is damaged: events are missing from it; restore it from a backup")
        events: list[RecordedEvent] = []
        for row in rows:
            previous = row[13] or link(previous, row[12])
            events.append(RecordedEvent._make((namespace, *row[:13], previous)))
        return events

    def _folder_of(self, namespace: str) -> Path:
        """Return the folder of `namespace`."""
        return hashed_folder(self.folder, namespace)

    @contextmanager
    def _sealing(self, namespace: str) -> Generator[Path]:
        """Hold the lock of the namespace's folder and remove the files of a killed seal."""
        folder = self._folder_of(namespace)
        with storage_errors(folder), file_lock(folder / _LOCK):
            expected_names = {segment.file for segment in self.segments(namespace)} | {_MANIFEST, _LOCK}
            for file in folder.iterdir():
                if file.name not in expected_names:
                    file.unlink()
            yield folder

    def _read_manifest(self, path: Path, namespace: str) -> list[Segment]:
        """Return the segments in a manifest; raise `ForeignFile` when it is damaged or of another log."""
        try:
            manifest = orjson.loads(path.read_bytes())
            segments = [Segment(**fields) for fields in manifest["segments"]]
            owner = (manifest["log_id"], manifest["namespace"])
        except (ValueError, KeyError, TypeError) as error:
            raise ForeignFile(f"{path} is damaged ({error}); restore it from a backup") from error
        if owner != (self._log_id, namespace):
            raise ForeignFile(f"{path} is of another log; move the archive away, or use the log that it belongs to")
        return segments

    def _write_manifest(self, folder: Path, namespace: str, segments: Sequence[Segment]) -> None:
        """Replace the manifest atomically."""
        manifest = {
            "log_id": self._log_id,
            "namespace": namespace,
            "segments": [asdict(segment) for segment in segments],
        }
        with storage_errors(folder):
            write_atomically(folder / _MANIFEST, orjson.dumps(manifest, option=orjson.OPT_INDENT_2))

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a new cursor of DuckDB; the first call opens its connection."""
        import duckdb  # noqa: PLC0415

        with self._connecting:
            if self._connection is None:
                # No extension is downloaded, and two threads are enough for files of some megabytes.
                self._connection = duckdb.connect(
                    config={"autoinstall_known_extensions": False, "autoload_known_extensions": False, "threads": 2}
                )
            return self._connection.cursor()


def _refuse_missing(path: Path) -> None:
    """Raise `StorageError` when a segment's file is not there."""
    if not path.exists():
        raise StorageError(f"{path}, a part of the log, is missing; restore it from a backup")


def _check_chain(namespace: str, after: int, last: int, events: Sequence[RecordedEvent], previous_hash: bytes) -> None:
    """Raise `ForeignFile` unless `events` are the versions over `after` up to `last` with an intact chain."""
    version = after
    for event in events:
        version += 1
        altered = not event.is_erased and leaf_of(event) != event.leaf
        if event.version != version or altered or link(previous_hash, event.leaf) != event.hash:
            raise ForeignFile(f"the chain of namespace {namespace!r} is broken at version {version}; run verify")
        previous_hash = event.hash
    if version != last:
        raise ForeignFile(f"namespace {namespace!r} has no version {version + 1}, but a later one; run verify")
