"""Vector file: caches the int8 vectors of a large namespace in a file that is mapped into memory instead of loaded.

The file has nothing that `vectors.db` does not have, so it can be lost at any time. It is never changed in place but
replaced by rename: a process that has mapped it keeps what it has mapped, and one checksum shows a torn write.
"""

from __future__ import annotations

import mmap
import os
import struct
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from recollect.events.storage.private_files import open_private
from recollect.projections.embeddings.stored_vectors import restored_matrix
from recollect.projections.embeddings.vector_index import VectorArrays, rounded
from recollect.projections.read_models.layout import vector_file_path

#: Vectors from which a namespace gets a file. A small namespace loads its vectors in milliseconds, and there may be
#: 100,000 of them on a disk.
FILE_ROWS_MIN = 4_096

#: Magic with the number of the format, identity, vectors, episodes, dimensions, last version, checksum of the arrays.
_HEADER = struct.Struct("<8s32sQQQQI")
#: The checksum of the header, after it.
_CHECKSUM = struct.Struct("<I")
_MAGIC = b"RCLVEC01"
#: The codes begin at a page, the other arrays at a cache line.
_PAGE_BYTES = 4_096
_LINE_BYTES = 64
#: Vectors of the file that are compared with those of the database when the file is opened.
_SAMPLES = 64
#: Windows can neither replace nor remove a file that is mapped, which an erasure has to.
_CAN_MAP = os.name != "nt"

# The versions and keys of the vectors up to a version, in the order of the index. One text takes a third of the time of
# rows.
_KEYS_UNTIL = """
SELECT group_concat(version || ' ' || vector_key, ' ')
FROM (SELECT version, vector_key FROM embeddings WHERE model = ? AND version <= ? ORDER BY version, chunk)
"""
_VECTOR = "SELECT vector FROM vectors WHERE key = ?"


class StoredArrays(NamedTuple):
    """The mapped arrays of a file."""

    arrays: VectorArrays
    #: The version up to which the file has all vectors.
    through: int


class VectorFile:
    """The vector file of the database `path`. One thread uses it at a time.

    Parameters:
        path: of `vectors.db`.
        connection: to it.
        model: the fingerprint of the model.
        identity: 32 bytes that name the vectors; a file with others is not used.
    """

    def __init__(self, path: Path, connection: apsw.Connection, model: str, identity: bytes) -> None:
        self._path = path
        self._connection = connection
        self._model = model
        self._identity = identity

    def read(self, dimensions: int, until: int) -> StoredArrays | None:
        """Return the arrays of the file, mapped; None when it is missing, damaged, or has other vectors than SQLite.

        Parameters:
            until: the last embedded version; a file of later ones is not used.
        """
        stored = self._mapped(dimensions)
        return stored if stored and stored.through <= until and self._is_current(stored) else None

    def write(self, parts: Sequence[VectorArrays], through: int) -> StoredArrays:
        """Replace the file and return its arrays, mapped. The caller prevents other writers.

        It is not synced to disk: after a power failure, its checksum shows what is missing.

        Parameters:
            parts: arrays of ascending episodes, which are written one after the other.
            through: the version up to which they have all vectors.

        Raises:
            OSError: the disk is full or cannot be written; the old file is unchanged.
        """
        dimensions = parts[0].codes.shape[1]
        temporary = vector_file_path(self._path, is_temporary=True)
        rows, episodes = sum(len(part.keys) for part in parts), sum(len(part.versions) for part in parts)
        checksum = 0
        try:
            with open_private(temporary) as file:
                file.write(bytes(_PAGE_BYTES))
                for piece in _pieces(_layout(rows, episodes, dimensions), parts):
                    checksum = zlib.crc32(piece, checksum)
                    file.write(piece)
                header = _HEADER.pack(_MAGIC, self._identity, rows, episodes, dimensions, through, checksum)
                file.seek(0)
                file.write(header + _CHECKSUM.pack(zlib.crc32(header)))
            temporary.replace(vector_file_path(self._path))
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        stored = self._mapped(dimensions)
        if stored is None:
            raise OSError(f"{vector_file_path(self._path)} does not read back as it was written")
        return stored

    def _mapped(self, dimensions: int) -> StoredArrays | None:
        """Return the arrays of the file; None when it is missing, damaged, or that of other vectors."""
        if not _CAN_MAP:
            return None
        try:
            with vector_file_path(self._path).open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            # Missing, without permission, or empty.
            return None
        if len(mapped) < _PAGE_BYTES:
            return None
        magic, identity, rows, episodes, width, through, checksum = _HEADER.unpack_from(mapped)
        [header_checksum] = _CHECKSUM.unpack_from(mapped, _HEADER.size)
        if zlib.crc32(mapped[: _HEADER.size]) != header_checksum:
            return None
        if (magic, identity, width) != (_MAGIC, self._identity, dimensions):
            return None
        layout = _layout(rows, episodes, dimensions)
        if len(mapped) != layout[-1].end or zlib.crc32(memoryview(mapped)[_PAGE_BYTES:]) != checksum:
            return None
        arrays = {
            place.name: np.frombuffer(mapped, place.dtype, place.size, place.offset).reshape(place.shape)
            for place in layout
        }
        return StoredArrays(VectorArrays(**arrays), through)

    def _is_current(self, stored: StoredArrays) -> bool:
        """Return whether the database has the vectors of the file, in the same order.

        All keys are compared, and samples of the vectors: another database may have other vectors of the same keys. The
        greatest key is one of the samples, since an older copy that has got other vectors since differs there.
        """
        codes, scales, keys, versions, starts = stored.arrays
        listed: Any = self._connection.execute(_KEYS_UNTIL, (self._model, stored.through)).fetchone()
        pairs = np.fromstring(listed[0] or "", np.int64, sep=" ").reshape(-1, 2)
        of_rows = np.repeat(versions, np.diff(starts, append=len(keys)))
        if not len(keys) or not np.array_equal(pairs, np.stack([of_rows, keys], axis=1)):
            return False
        rows = np.unique(np.append(np.linspace(0, len(keys) - 1, _SAMPLES, dtype=np.int64), keys.argmax()))
        blobs: list[Any] = [self._connection.execute(_VECTOR, (key,)).fetchone() for key in keys[rows].tolist()]
        if None in blobs:
            return False
        vectors = restored_matrix((vector for (vector,) in blobs), codes.shape[1])
        sample_codes, sample_scales = rounded(vectors)
        return np.array_equal(sample_codes, codes[rows]) and np.array_equal(sample_scales, scales[rows])


def due_rows(rows: int) -> int:
    """Return the number of vectors from which a file of `rows` vectors is written again, with the later ones."""
    # The share in private memory is 6 % on average, and each vector is written nine times in all.
    return max(FILE_ROWS_MIN, rows + rows // 8) if _CAN_MAP else sys.maxsize


class _Place(NamedTuple):
    """The place of an array in the file."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    size: int
    offset: int

    @property
    def end(self) -> int:
        return self.offset + self.size * self.dtype.itemsize


def _layout(rows: int, episodes: int, dimensions: int) -> list[_Place]:
    """Return the places of the arrays, in the order of the file."""
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "codes": ("i1", (rows, dimensions)),
        "scales": ("<f4", (rows,)),
        "keys": ("<i8", (rows,)),
        "versions": ("<i8", (episodes,)),
        "starts": ("<i8", (episodes,)),
    }
    places: list[_Place] = []
    offset = _PAGE_BYTES
    for name, (dtype, shape) in shapes.items():
        size = shape[0] * (dimensions if name == "codes" else 1)
        places.append(_Place(name, np.dtype(dtype), shape, size, offset))
        offset = -(-places[-1].end // _LINE_BYTES) * _LINE_BYTES
    return places


def _pieces(layout: Sequence[_Place], parts: Sequence[VectorArrays]) -> Iterator[memoryview | bytes]:
    """Yield the content of the file after its first page."""
    end = _PAGE_BYTES
    for place in layout:
        yield bytes(place.offset - end)
        before = 0
        for part in parts:
            array: NDArray[Any] = getattr(part, place.name)
            # The rows of a part are numbered from 0 on.
            numbered = array + before if place.name == "starts" else array
            yield np.ascontiguousarray(numbered, place.dtype).data.cast("B")
            before += len(part.keys)
        end = place.end
