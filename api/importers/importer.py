"""Importer: the declaration of an import format, the formats that are installed, and how a format is recognised.

Each module of a format declares its own `IMPORTERS`: those of `recollect.api.importers.formats`, and those of every
module or package that is an entry point of the group `recollect.importers`.
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import ModuleType

from msgspec import Struct

from recollect.api.importers import formats
from recollect.api.importers.imported_records import ReadOptions, Record
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput

_logger = logging.getLogger(__name__)

_GROUP = "recollect.importers"
#: The package of the extra `import`, and how it is installed: Recollect is installed from a clone.
_EXTRA = "recollect_import"
_INSTALL = "more formats come with `pip install '.[import]'` in a clone of Recollect"
#: Files that are searched for the signs of a format.
_SIGN_FILES = 20


class Match(IntEnum):
    """How surely files are of a format; the format with the highest match is taken."""

    NONE = 0
    #: Files of a common kind, such as Markdown.
    KIND = 1
    #: Signs that files of other formats may have, too.
    LIKELY = 2
    #: Names or signs that files of no other format have.
    CERTAIN = 3


class Importer(Struct, frozen=True, kw_only=True):
    """An import format."""

    #: The name, a part of the ids of its events.
    name: str
    #: The files to give, and what is read of them: Markdown, for the table in `docs/how-to/move-in.md`.
    files: str
    content: str
    #: Returns how surely files are of the format.
    match: Callable[[SourceFiles], Match]
    #: Yields the records of the files.
    read: Callable[[SourceFiles, ReadOptions], Iterator[Record]]
    #: Whether its documents are the files of a folder, which are renamed and deleted.
    is_folder: bool = False
    #: Whether its events have namespaces of their own.
    has_namespaces: bool = False


def importers() -> dict[str, Importer]:
    """Return the formats that are installed, by name, those of the product last: no other package replaces them."""
    added = [importer for entry in entry_points(group=_GROUP) for importer in _added(entry)]
    return {importer.name: importer for importer in [*added, *_declared(formats)]}


def importer_of(name: str) -> Importer:
    """Return the format of a name; raise `InvalidInput` when none of that name is installed."""
    installed = importers()
    if name not in installed:
        raise InvalidInput(_with_hint(f"give auto, or one of {', '.join(sorted(installed))}"), field="--format")
    return installed[name]


def recognised(files: SourceFiles) -> Importer:
    """Return the format of a file, a folder or an archive.

    Raises:
        InvalidInput: no format has these files.
    """
    installed = importers()
    match, name = max((importer.match(files), name) for name, importer in installed.items())
    if match is Match.NONE:
        if not any(files.peek(name) for name in files.names[:_SIGN_FILES]):
            raise InvalidInput("is empty, or cannot be read", field=str(files.path))
        names = ", ".join(sorted(installed))
        reason = f"not an export of a program that is known here; --format names one, if it is: {names}"
        raise InvalidInput(_with_hint(reason), field=str(files.path))
    return installed[name]


def has_signs(files: SourceFiles, *signs: tuple[bytes, ...], names: Iterable[str] = ()) -> bool:
    """Return whether a file begins with text that has all words of one of `signs`.

    Parameters:
        names: the files that are searched besides the first ones.
    """
    beginnings = (files.peek(name).replace(b'" :', b'":') for name in [*names, *files.names[:_SIGN_FILES]])
    return any(all(word in beginning for word in words) for beginning in beginnings for words in signs)


def _added(entry: EntryPoint) -> list[Importer]:
    """Return the importers of an entry point; none, with a warning, when it cannot be loaded."""
    try:
        return [*_declared(entry.load())]
    except Exception as error:  # The code of another package may raise anything.
        _logger.warning("the import formats of %s cannot be loaded: %s: %s", entry.value, type(error).__name__, error)
        return []


def _declared(root: ModuleType) -> Iterator[Importer]:
    """Yield the importers of a module, or of the modules of a package."""
    yield from getattr(root, "IMPORTERS", ())
    for module in pkgutil.iter_modules(getattr(root, "__path__", ())):
        yield from import_module(f"{root.__name__}.{module.name}").IMPORTERS


def _with_hint(reason: str) -> str:
    return reason if find_spec(_EXTRA) else f"{reason}; {_INSTALL}"
