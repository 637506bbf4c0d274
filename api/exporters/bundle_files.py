"""Bundle files: writes the files of an export to a new folder, or to a zip archive."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from recollect.events.errors import InvalidInput
from recollect.events.storage.private_files import open_private

#: The time of the files of an archive, so that the same memory gives the same bytes: the earliest that zip can name.
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def write_bundle(target: Path, files: Iterable[tuple[str, str]], *, overwrite: bool = False) -> int:
    """Write files of (name, text) to `target`, a folder or a name with .zip; return their number.

    Raises:
        InvalidInput: the folder has files, which would be mixed with the export, or it cannot be written.
    """
    try:
        if target.suffix == ".zip":
            with open_private(target) as file:
                return write_archive(file, files)
        if not overwrite and target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InvalidInput(
                "has files already; give a new folder, a name with .zip, or --force to write over them",
                field=str(target),
            )
        return _write_folder(target, files)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", field=str(target)) from error


def _write_folder(folder: Path, files: Iterable[tuple[str, str]]) -> int:
    count = 0
    for name, text in files:
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.is_symlink():
            raise InvalidInput("is a link; it is not written through", field=str(path))
        with open_private(path) as file:
            file.write(text.encode(errors="replace"))
        count += 1
    return count


def write_archive(file: IO[bytes], files: Iterable[tuple[str, str]]) -> int:
    """Write files of (name, text) as a zip archive; return their number."""
    count = 0
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files:
            info = zipfile.ZipInfo(name, _ZIP_TIME)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o600 << 16
            archive.writestr(info, text.encode(errors="replace"))
            count += 1
    return count
