"""JSON records: reads the items of a JSON file, or its lines, as records; a bad item is one failure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from recollect.api.importers.imported_records import Failed, Record, guarded, json_of
from recollect.api.importers.json_elements import JsonPath, json_elements
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput

#: Bytes of a line. An event has at most 1 MiB, and JSON may write a character in six bytes.
LINE_BYTES_MAX = 8 << 20


def read_json_items(
    files: SourceFiles,
    name: str,
    noun: str,
    read: Callable[[Any], Iterable[Record]],
    *,
    descends: Callable[[JsonPath], bool] = lambda path: path == (),
    on_field: Callable[[JsonPath, Any], None] = lambda _path, _value: None,
    place: Callable[[], str] = lambda: "",
    may_be_empty: bool = False,
) -> Iterator[Record]:
    """Yield the records of each item of a JSON file: an element of a list, or the file itself.

    Parameters:
        noun: an item in the report, such as ``conversation``.
        read: returns the records of a decoded item.
        descends: which containers are no items (see `json_elements`).
        on_field: gets the path and the value of a field, such as the name of a chat; None for one that is not JSON.
        place: returns what follows the number of an item in the report.
    """
    number = 0
    try:
        with files.open(name) as stream:
            for path, raw in json_elements(stream, descends):
                if path and path[-1]:
                    on_field(path, _value(raw))
                    continue
                number += 1
                yield from guarded(f"{name}, {noun} {number}{place()}", lambda raw=raw: read(json_of(raw)))
    except (InvalidInput, OSError) as error:
        where = f"{name}, after {noun} {number}" if number else name
        yield Failed(where=where, reason=error.reason if isinstance(error, InvalidInput) else str(error))
        return
    if not number and not may_be_empty:
        yield Failed(where=name, reason=f"has no {noun}")


def read_json_lines(
    files: SourceFiles, name: str, read: Callable[[dict[str, Any]], Iterable[Record]]
) -> Iterator[Record]:
    """Yield the records of each line; a line that is not an object, or is refused, is one failure."""
    number = 0
    try:
        with files.open(name) as stream:
            for number, raw in _objects(stream, is_list=files.peek(name).lstrip()[:1] == b"["):
                yield from guarded(f"{name}, line {number}", lambda raw=raw: read(_object(raw)))
    except (InvalidInput, OSError) as error:
        yield Failed(where=f"{name}, after line {number}", reason=str(error))
    if number == 0:
        yield Failed(where=name, reason="is empty")


def _objects(stream: IO[bytes], *, is_list: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of each line that is not blank, or of each element of a list.

    Raises:
        InvalidInput: a line is over `LINE_BYTES_MAX`.
    """
    if is_list:
        for number, element in enumerate(json_elements(stream, lambda path: path == ()), start=1):
            yield number, element.raw
        return
    number = 0
    while line := stream.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(line) > LINE_BYTES_MAX:
            raise InvalidInput(f"line {number} has more than {LINE_BYTES_MAX:,} bytes", field="file")
        if line.strip():
            yield number, line


def _object(raw: bytes) -> dict[str, Any]:
    value: Any = json_of(raw)
    if not isinstance(value, dict):
        raise InvalidInput("is no JSON object", field="line")
    return value  # pyright: ignore[reportUnknownVariableType] -- an object of JSON


def _value(raw: bytes) -> Any:
    try:
        return json_of(raw)
    except ValueError:
        return None
