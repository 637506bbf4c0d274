"""JSON elements: reads the values of a large JSON file one by one, each as its own bytes.

It is our own reader and not ijson, which stops at the first error of a file. Here each value is decoded by itself, so a
value that is not JSON is one failure, and the next one is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple

from recollect.events.errors import InvalidInput

#: Bytes of one value, such as a conversation with all its branches. The largest seen in reports has 20 MB.
VALUE_BYTES_MAX = 64 << 20
#: Bytes of one read.
_CHUNK_BYTES = 1 << 18
#: Levels of containers that are descended into; deeper ones belong to a value.
_LEVELS_MAX = 8
#: A string, which the end of the buffer may cut off, a bracket, or a sign between values.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\\?\Z)|[\[\]{},:]', re.DOTALL)
#: Text and strings up to the next bracket of the kind of a value; the other kind is balanced within it.
_BRACES = re.compile(rb'(?:[^{}"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([{}])', re.DOTALL)
_SQUARES = re.compile(rb'(?:[^\[\]"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([\[\]])', re.DOTALL)
_OPENING = frozenset((b"[", b"{"))
_BOM = b"\xef\xbb\xbf"

#: The names of the containers of a value; an element of a list has the empty name.
JsonPath = tuple[str, ...]


class Element(NamedTuple):
    """A value of a file."""

    path: JsonPath
    #: The value as JSON, not checked yet.
    raw: bytes


def json_elements(stream: IO[bytes], descends: Callable[[JsonPath], bool]) -> Iterator[Element]:
    """Yield the values of a JSON file in order.

    Parameters:
        descends: returns whether a container with this path is descended into; otherwise it is one value. The root has
            the path ``()``.

    Raises:
        InvalidInput: a value is over `VALUE_BYTES_MAX`, or the file ends within a value; the values before it have been
            yielded.
    """
    yield from _Scanner(stream, descends).elements()


class _Scanner:
    """The position in a stream, and the containers around it."""

    def __init__(self, stream: IO[bytes], descends: Callable[[JsonPath], bool]) -> None:
        self._stream = stream
        self._descends = descends
        self._buffer = b""
        self._position = 0
        #: Where the value at hand begins; None between a closing bracket and the next comma.
        self._start: int | None = 0
        self._is_at_end = False
        #: The containers around the position: whether each is an object.
        self._objects: list[bool] = []
        self._names: list[str] = []

    def elements(self) -> Iterator[Element]:
        self._fill()
        self._buffer = self._buffer.removeprefix(_BOM)
        last_string = b""
        while (token := self._next()) is not None:
            sign = token[0]
            if sign[:1] == b'"':
                last_string = sign[1:-1]
            elif sign == b":":
                if self._objects and self._objects[-1]:
                    self._names[-1] = last_string.decode(errors="replace")
                    self._start = token.end()
            elif sign not in _OPENING:
                yield from self._scalar(token.start())
                self._leave(sign)
            elif len(self._objects) < _LEVELS_MAX and self._descends(tuple(self._names)):
                self._objects.append(sign == b"{")
                self._names.append("")
                self._start = token.end()
            else:
                yield Element(tuple(self._names), self._container(token.start()))
        if self._objects:
            raise InvalidInput("the file ends before its JSON does; it was cut off", field="file")

    def _scalar(self, end: int) -> Iterator[Element]:
        """Yield the number, text or constant before a comma or a closing bracket, if there is one."""
        if self._start is not None and (scalar := self._buffer[self._start : end].strip()):
            yield Element(tuple(self._names), scalar)

    def _leave(self, sign: bytes) -> None:
        """Move to the next value, or out of the container at hand."""
        self._start = self._position if sign == b"," else None
        if sign != b"," and self._objects:
            self._objects.pop()
            self._names.pop()

    def _container(self, start: int) -> bytes:
        """Return the container that begins at `start`, and move behind it."""
        self._start = start
        is_object = self._buffer[start : start + 1] == b"{"
        pattern, closing = (_BRACES, b"}") if is_object else (_SQUARES, b"]")
        depth = 1
        while depth:
            bracket = pattern.match(self._buffer, self._position)
            if bracket is not None:
                depth += -1 if bracket[1] == closing else 1
                self._position = bracket.end()
            elif self._is_at_end:
                raise InvalidInput("the file ends within a value; it was cut off", field="file")
            elif len(self._buffer) - self._start > VALUE_BYTES_MAX:
                raise InvalidInput(f"a value has more than {VALUE_BYTES_MAX:,} bytes", field="file")
            else:
                self._fill()
        raw = self._buffer[self._start : self._position]
        self._start = None
        return raw

    def _next(self) -> re.Match[bytes] | None:
        """Return the next token, and move behind it; None at the end of the file."""
        while True:
            match = _TOKEN.search(self._buffer, self._position)
            if match is not None and match[1] in (None, b'"'):
                self._position = match.end()
                return match
            if match is None and self._start is None:
                self._position = len(self._buffer)
            if self._is_at_end:
                return None
            if len(self._buffer) > 2 * VALUE_BYTES_MAX:
                raise InvalidInput(f"a value has more than {VALUE_BYTES_MAX:,} bytes", field="file")
            self._fill()

    def _fill(self) -> None:
        """Read on; as much as is waiting, so that a long value is searched few times."""
        begin = self._position if self._start is None else min(self._start, self._position)
        waiting = self._buffer[begin:]
        if self._start is not None:
            self._start -= begin
        self._position -= begin
        chunk = self._stream.read(max(_CHUNK_BYTES, len(waiting)))
        self._is_at_end = not chunk
        self._buffer = waiting + chunk
