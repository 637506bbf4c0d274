"""Layout: names the files of a namespace: one folder each, with the numbered generations of its read model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recollect.events.late_pattern import late_pattern
from recollect.events.storage.file_sizes import size_bytes
from recollect.events.storage.namespace_folder import hashed_folder, named_folder

_GENERATION = late_pattern(r"(\d{6})\.db")
#: The file of a namespace whose read model was removed for the limit of the disk: its last generation and version.
EVICTED_NAME = "evicted"
#: Folders of the data folder with one folder for each namespace, or with empty files for them.
_FOLDERS_OF_NAMESPACES = frozenset(("namespaces", "archive", "as-of"))
#: Ends of the names of files without plain texts: locks, the shared memory of a WAL, compressed segments, matrices.
_WITHOUT_TEXTS = (".lock", "-shm", ".parquet", ".npy", "-int8")
#: The file of a namespace's vectors, in its folder.
VECTORS_FILE = "vectors.db"


def namespace_folder(data: Path, namespace: str) -> Path:
    """Return the folder of `namespace` under the data folder."""
    return hashed_folder(data / "namespaces", namespace)


def folder_named(data: Path, name: str) -> Path:
    """Return the folder under the data folder that is called `name`: the last part of a `namespace_folder`."""
    return named_folder(data / "namespaces", name)


def generations(folder: Path) -> list[int]:
    """Return the numbers of the complete generations in `folder`, oldest first; the last one is live."""
    if not folder.is_dir():
        return []
    matches = (_GENERATION.fullmatch(file.name) for file in folder.iterdir())
    return sorted(int(match[1]) for match in matches if match)


def generation_path(folder: Path, generation: int) -> Path:
    """Return the path of a generation's file."""
    return folder / f"{generation:06}.db"


def own_files(data: Path, namespace: str) -> list[Path]:
    """Return the files of a namespace that may hold its texts."""
    return [*_files_with_texts(namespace_folder(data, namespace))]


def shared_files(data: Path) -> list[Path]:
    """Return the files of a data folder that may hold texts and belong to no namespace, the small ones first."""
    names = sorted(data.iterdir()) if data.is_dir() else []
    files = [file for name in names if name.name not in _FOLDERS_OF_NAMESPACES for file in _files_with_texts(name)]
    return sorted(files, key=lambda file: size_bytes((file,)))


def _files_with_texts(path: Path) -> Iterator[Path]:
    """Yield the file `path`, or the files below the folder `path`, except those that hold no plain texts."""
    for file in sorted(path.rglob("*")) if path.is_dir() else (path,):
        if is_searched(file) and file.is_file():
            yield file


def is_searched(file: Path) -> bool:
    """Return whether a file may hold plain texts, by its name."""
    return not file.name.endswith(_WITHOUT_TEXTS)


def remove_database(path: Path) -> None:
    """Remove a SQLite file and its WAL; missing files are not an error."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def vector_file_path(path: Path, *, is_temporary: bool = False) -> Path:
    """Return the path of the vector file of the database `path`, or of one that is being written."""
    return path.with_name(f"{path.name}-tmp-int8" if is_temporary else f"{path.name}-int8")


def remove_vector_file(path: Path) -> None:
    """Remove the vector file of the database `path`; a process that has mapped it keeps what it has mapped."""
    for is_temporary in (True, False):
        vector_file_path(path, is_temporary=is_temporary).unlink(missing_ok=True)


def remove_vectors(path: Path) -> None:
    """Remove the vectors `path`, after their vector file."""
    remove_vector_file(path)
    remove_database(path)
