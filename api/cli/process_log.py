"""Process log: the messages of a server, a worker or a scheduler on standard error, without secrets and texts of users.

They are lines of JSON where standard error is not a terminal, and text where it is; those of uvicorn, dramatiq and
apscheduler are among them. A message says what failed and where. The text of an exception may quote what a user wrote,
so that a traceback shows its type and its place in the program. Names of namespaces, which are often names of users,
are shown as the beginning of their folder's name; passwords in addresses, the path of the data folder and control
characters are taken out. A thread of its own writes the lines, so that a terminal that hangs holds up no request.
"""

from __future__ import annotations

import atexit
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from queue import Full, Queue
from urllib.parse import unquote

import orjson

from recollect.api.cli.terminal import visible
from recollect.api.settings import LogSettings
from recollect.events.late_pattern import late_pattern
from recollect.events.log_context import current_fields
from recollect.events.tracing import hidden_namespace

_NAMESPACE = late_pattern(r"\bnamespace '([A-Za-z0-9._:@-]{1,200})'")
#: The name of a namespace in the path of a URL, as HTTP clients log it.
_NAMESPACE_PATH = late_pattern(r"(?<=/namespaces/)[A-Za-z0-9._:@%-]{1,600}")
#: The user and the password of an address. Bounded, so that a long message is searched in linear time.
_CREDENTIALS = late_pattern(r"(?<=://)[^\s/@:]{0,200}:[^\s/@]{0,200}@")
#: A message of dramatiq with its arguments, which name the namespace: `project('ann')`.
_MESSAGE = late_pattern(r"\b(project|embed|think|run)\([^()\n]{0,500}\)")
#: Exceptions in a chain of causes that are shown.
_CAUSES_MAX = 8
#: Lines that wait to be written; further ones are dropped and counted. A line has some 300 bytes.
_WAITING_MAX = 10_000
#: Loggers of work that is tried again and again, in several threads; one line of each text in this time.
_REPEATING = ("dramatiq", "recollect.jobs.queue")
_REPEAT_SECONDS = 60
#: Texts whose last line is remembered.
_TEXTS_MAX = 100
#: The attribute of a record with the fields of the request or the job that logged it.
_FIELDS = "recollect_fields"


def configure_process_log(data: Path, settings: LogSettings | None = None) -> None:
    """Log the program's own messages, such as the model in use, and warnings of libraries, to standard error."""
    chosen = settings or LogSettings()
    as_json = chosen.log_format == "json" or (chosen.log_format == "auto" and not sys.stderr.isatty())
    handler = logging.StreamHandler()
    handler.setFormatter(PrivateFormatter(data, as_json=as_json))
    lines: Queue[logging.LogRecord] = Queue(_WAITING_MAX)
    listener = QueueListener(lines, handler)
    listener.start()
    atexit.register(listener.stop)
    logging.basicConfig(handlers=[WaitingLines(lines)], force=True)
    logging.getLogger("recollect").setLevel(chosen.log_level.upper())


class WaitingLines(QueueHandler):
    """Hands records to the thread that writes them, with the fields of their request or job."""

    def __init__(self, lines: Queue[logging.LogRecord]) -> None:
        super().__init__(lines)
        self._dropped = 0
        #: When a text was written last.
        self._written: dict[str, float] = {}

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return the record with its fields; it is formatted later, in this process."""
        setattr(record, _FIELDS, current_fields())
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        """Queue a record, or count it as dropped; what a broker that is away makes all threads log is queued once."""
        if record.name.startswith(_REPEATING) and not record.exc_info and self._is_repeated(record):
            return
        if self._dropped:
            setattr(record, _FIELDS, {**getattr(record, _FIELDS, {}), "dropped_lines": self._dropped})
        try:
            self.queue.put_nowait(record)
            self._dropped = 0
        except Full:
            self._dropped += 1

    def _is_repeated(self, record: logging.LogRecord) -> bool:
        """Return whether the text of a record was queued within `_REPEAT_SECONDS`."""
        text = record.getMessage()
        if record.created - self._written.get(text, 0.0) < _REPEAT_SECONDS:
            return True
        if len(self._written) >= _TEXTS_MAX:
            self._written.clear()
        self._written[text] = record.created
        return False


def _folder_pattern(data: Path) -> re.Pattern[str]:
    """Return the pattern of the names of a data folder: one such as `d` is its name only where no word goes on."""
    names = sorted({str(data), str(data.resolve())} - {"."}, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, names))})(?!\w)")


class PrivateFormatter(logging.Formatter):
    """Formats a record without secrets and texts of users.

    Parameters:
        data: the data folder, whose path is not shown.
        as_json: whether a record is a line of JSON.
    """

    def __init__(self, data: Path, *, as_json: bool = False) -> None:
        super().__init__()
        self._folder = _folder_pattern(data)
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, and in a text of an exception the lines after it."""
        entry = {name: self._hidden(value, record.name) for name, value in _entry(record).items()}
        return _json_line(entry) if self._as_json else _text_lines(entry)

    def _hidden(self, value: object, logger: str) -> object:
        """Return a value without what is private in its text."""
        if not isinstance(value, str):
            return value
        text = _MESSAGE.sub(r"\1(…)", value) if logger.startswith("dramatiq") else value
        text = _CREDENTIALS.sub("…@", text)
        text = self._folder.sub("<data>", text)
        text = _NAMESPACE_PATH.sub(lambda match: hidden_namespace(unquote(match[0])), text)
        return visible(_NAMESPACE.sub(lambda match: f"namespace {hidden_namespace(match[1])}", text))


def _entry(record: logging.LogRecord) -> dict[str, object]:
    """Return the text, time, level and logger of a record, the fields of its request or job, and its exception."""
    fields: dict[str, object] = getattr(record, _FIELDS, {})
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    entry: dict[str, object] = {
        "event": record.getMessage(),
        "timestamp": moment.replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        **fields,
    }
    raised = _traceback(record.exc_info[1] if record.exc_info else None)
    return entry | {"exception": raised} if raised else entry


def _traceback(error: BaseException | None) -> str:
    """Return the types of an exception and of its causes, each with the lines of the program that raised it."""
    lines: list[str] = []
    while error is not None and len(lines) < _CAUSES_MAX:
        places = "".join(traceback.format_tb(error.__traceback__)).rstrip()
        lines.append(f"{type(error).__name__} at\n{places}")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\nraised from ".join(lines)


def _json_line(entry: dict[str, object]) -> str:
    """Return an entry as JSON; values that JSON cannot hold are written as their type name."""
    return orjson.dumps(entry, default=lambda value: type(value).__name__).decode()


def _text_lines(entry: dict[str, object]) -> str:
    moment, level, event = (entry.pop(name) for name in ("timestamp", "level", "event"))
    raised = entry.pop("exception", None)
    fields = " ".join(f"{name}={value}" for name, value in entry.items())
    return f"{moment} {level:<8} {event} [{fields}]" + (f"\n{raised}" if raised else "")
