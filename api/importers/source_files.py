"""Source files: a file, a folder or a zip archive to import, read without writing anything to the disk."""

from __future__ import annotations

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from msgspec import Struct

from recollect.events.errors import InvalidInput

#: Files of a folder or an archive. Exports with pictures have thousands.
FILES_MAX = 200_000
#: Bytes of a file as it is read, uncompressed. The largest conversations.json in reports has 1 GB.
FILE_BYTES_MAX = 8 << 30
#: Bytes of a file that is read as a whole, such as a note or a list of users.
WHOLE_BYTES_MAX = 64 << 20
#: Uncompressed bytes for each compressed one. JSON of conversations has 3 to 15, repeated text 1,000.
RATIO_MAX = 200
#: Files under this size may have any ratio: they do no harm.
_RATIO_BYTES_MIN = 16 << 20
#: Bytes of the beginning of a file by which its format is recognised.
PEEK_BYTES = 1 << 16
#: The first bytes of a zip archive.
_ZIP = b"PK\x03\x04"
#: Names of machines, not of exports.
_IGNORED = frozenset({"__MACOSX", ".git", ".DS_Store", "node_modules", ".venv"})


class SourceFiles(Struct, frozen=True, kw_only=True):
    """The files of a path, by their names relative to it with `/`."""

    path: Path
    #: The names, sorted.
    names: tuple[str, ...]
    #: Opens a file for reading.
    open: Callable[[str], IO[bytes]]

    def named(self, *endings: str) -> list[str]:
        """Return the files whose name without folders is one of `endings`."""
        return [name for name in self.names if PurePosixPath(name).name in endings]

    def read(self, name: str) -> bytes:
        """Return a whole file; raise `InvalidInput` when it is over `WHOLE_BYTES_MAX`."""
        with self.open(name) as stream:
            content = stream.read(WHOLE_BYTES_MAX + 1)
        if len(content) > WHOLE_BYTES_MAX:
            raise InvalidInput(f"over {WHOLE_BYTES_MAX:,} bytes", field=name)
        return content.removeprefix(b"\xef\xbb\xbf")

    def peek(self, name: str) -> bytes:
        """Return the beginning of a file; empty when it cannot be read."""
        try:
            with self.open(name) as stream:
                return stream.read(PEEK_BYTES).removeprefix(b"\xef\xbb\xbf")
        except (OSError, InvalidInput, zipfile.BadZipFile, RuntimeError):
            return b""


@contextmanager
def open_source(path: Path) -> Generator[SourceFiles]:
    """Open a file, a folder or a zip archive.

    Raises:
        InvalidInput: it cannot be read, or an archive is not safe: too many or too large files, names that lead out of
            it, links.
    """
    if not path.exists():
        raise InvalidInput("does not exist", field=str(path))
    if path.is_dir():
        names = _folder_names(path)
        yield SourceFiles(path=path, names=names, open=lambda name: _open(path / name))
    elif zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                members = _checked(archive, path)
                yield SourceFiles(
                    path=path, names=tuple(sorted(members)), open=lambda name: _member(archive, members[name])
                )
        except zipfile.BadZipFile as error:
            raise InvalidInput(f"a damaged zip archive: {error}", field=str(path)) from error
    elif path.suffix.casefold() == ".zip" or _begins(path, _ZIP):
        raise InvalidInput("not a whole zip file: its end is missing; download it again", field=str(path))
    else:
        yield SourceFiles(path=path, names=(path.name,), open=lambda _: _open(path))


def _begins(path: Path, sign: bytes) -> bool:
    with _open(path) as stream:
        return stream.read(len(sign)) == sign


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", field=str(path)) from error


def _folder_names(folder: Path) -> tuple[str, ...]:
    """Return the files below a folder. Links are not followed, since they may lead out of it."""
    names: list[str] = []
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _IGNORED)
        for name in files:
            path = Path(root) / name
            if name not in _IGNORED and not path.is_symlink() and path.is_file():
                names.append(path.relative_to(folder).as_posix())
        if len(names) > FILES_MAX:
            raise InvalidInput(f"has more than {FILES_MAX:,} files; give the folder of the export", field=str(folder))
    return tuple(sorted(names))


def _checked(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the members of an archive by name; raise `InvalidInput` when one is not safe."""
    infos = archive.infolist()
    if len(infos) > FILES_MAX:
        raise InvalidInput(f"has {len(infos):,} files, more than the {FILES_MAX:,} allowed", field=str(path))
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        name = PurePosixPath(info.filename.replace("\\", "/"))
        where = f"{path}: {info.filename[:200]!r}"
        if not name.parts or name.is_absolute() or ".." in name.parts:
            raise InvalidInput("leads out of the archive; it is not an export", field=where)
        if stat.S_ISLNK(info.external_attr >> 16):
            raise InvalidInput("is a link; unpack the archive yourself and import the folder", field=where)
        if info.file_size > FILE_BYTES_MAX:
            raise InvalidInput(f"has {info.file_size:,} bytes, more than the {FILE_BYTES_MAX:,} allowed", field=where)
        if info.file_size > _RATIO_BYTES_MIN and info.file_size > RATIO_MAX * max(1, info.compress_size):
            raise InvalidInput(f"is compressed more than {RATIO_MAX} times; unpack it yourself", field=where)
        if not info.is_dir() and not _IGNORED.intersection(name.parts):
            members[name.as_posix()] = info
    return members


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """Open a member. `zipfile` reads at most the size that was checked."""
    try:
        return io.BufferedReader(_Member(archive.open(info), info.filename))
    except NotImplementedError as error:
        raise InvalidInput(f"cannot be unpacked: {error}", field=info.filename) from error
    except RuntimeError as error:
        raise InvalidInput("is encrypted; unpack it and import the folder", field=info.filename) from error


class _Member(io.RawIOBase):
    """A member of an archive; damage within it is an `InvalidInput`, after the bytes before it."""

    def __init__(self, member: IO[bytes], name: str) -> None:
        super().__init__()
        self._member = member
        self._name = name

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Read bytes into `buffer`; return their number."""
        try:
            content = self._member.read(len(buffer))
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise InvalidInput(f"is damaged in the archive: {error}", field=self._name) from error
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        """Close the member."""
        self._member.close()
        super().close()
