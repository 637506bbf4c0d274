"""Process log: the messages of a server, a worker or a scheduler on standard error, without secrets and texts of users.

A message says what failed and where. The text of an exception may quote what a user wrote, so that a traceback shows
its type and its place in the program. Names of namespaces, which are often names of users, are shown as the beginning
of their folder's name; passwords in addresses, the path of the data folder and control characters are taken out.
"""

from __future__ import annotations

import logging
import re
import traceback
from pathlib import Path
from types import TracebackType

from recollect.api.cli.terminal import visible
from recollect.events.storage.namespace_folder import folder_name

_NAMESPACE = re.compile(r"\bnamespace '([A-Za-z0-9._:@-]{1,200})'")
#: The user and the password of an address. Bounded, so that a long message is searched in linear time.
_CREDENTIALS = re.compile(r"(?<=://)[^\s/@:]{0,200}:[^\s/@]{0,200}@")
#: Exceptions in a chain of causes that are shown.
_CAUSES_MAX = 8


def configure_process_log(data: Path) -> None:
    """Log the program's own messages, such as the model in use, and warnings of libraries, to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(PrivateFormatter(data))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("recollect").setLevel(logging.INFO)


class PrivateFormatter(logging.Formatter):
    """Formats a record without secrets and texts of users.

    Parameters:
        data: the data folder, whose path is not shown.
    """

    def __init__(self, data: Path) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._folders = sorted({str(data), str(data.resolve())} - {"."}, key=len, reverse=True)

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines of a record."""
        text = _CREDENTIALS.sub("…@", super().format(record))
        for folder in self._folders:
            text = text.replace(folder, "<data>")
        return visible(_NAMESPACE.sub(lambda match: f"namespace {folder_name(match[1])[:12]}", text))

    def formatException(  # noqa: N802
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        """Return the types of an exception and of its causes, each with the lines of the program that raised it."""
        lines: list[str] = []
        error: BaseException | None = ei[1]
        while error is not None and len(lines) < _CAUSES_MAX:
            places = "".join(traceback.format_tb(error.__traceback__)).rstrip()
            lines.append(f"{type(error).__name__} at\n{places}")
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\nraised from ".join(lines)
