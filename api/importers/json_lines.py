"""JSON lines: reads a file of one JSON object a line, or of one list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from recollect.api.importers.json_elements import json_elements
from recollect.api.importers.records import Failed, Record, guarded, json_of
from recollect.api.importers.source_files import SourceFiles
from recollect.events.errors import InvalidInput

#: Bytes of a line. An event has at most 1 MiB, and JSON may write a character in six bytes.
LINE_BYTES_MAX = 8 << 20


def read_json_lines(
    files: SourceFiles, name: str, read: Callable[[dict[str, Any]], Iterable[Record]]
) -> Iterator[Record]:
    """Yield the records of each line; a line that is not an object, or is refused, is one failure."""
    number = 0
    try:
        with files.open(name) as stream:
            for number, raw in objects(stream, is_list=files.peek(name).lstrip()[:1] == b"["):
                yield from guarded(f"{name}, line {number}", lambda raw=raw: read(_object(raw)))
    except (InvalidInput, OSError) as error:
        yield Failed(where=f"{name}, after line {number}", reason=str(error))
    if number == 0:
        yield Failed(where=name, reason="is empty")


def objects(stream: IO[bytes], *, is_list: bool) -> Iterator[tuple[int, bytes]]:
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
