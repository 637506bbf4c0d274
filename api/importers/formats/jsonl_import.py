"""JSONL import: lines of JSON with one event each, from an export or in the form of the HTTP route."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from recollect.api.importers.batches import ImportResult, append_all
from recollect.api.importers.imported_records import ExactEvent, ReadOptions, Record
from recollect.api.importers.importer import Importer, Match, has_signs
from recollect.api.importers.json_records import read_json_lines
from recollect.api.importers.source_files import SourceFiles
from recollect.api.settings import PrivacySettings
from recollect.events.backends.log import EventLog
from recollect.events.envelope import EventDraft
from recollect.events.errors import InvalidInput
from recollect.events.limits import check_namespace
from recollect.events.progress import OnCount
from recollect.events.validation import draft, json_object

#: The settings of callers that have none.
_PRIVACY = PrivacySettings()
#: Fields that the log assigns; the importing log assigns its own.
_ASSIGNED_BY_LOG = ("version", "recorded_at", "hash")


def import_jsonl(
    log: EventLog,
    lines: Iterable[bytes],
    *,
    namespace: str | None,
    on_progress: OnCount,
    privacy: PrivacySettings = _PRIVACY,
) -> ImportResult:
    """Append the events in `lines` and return how many were new. Importing the same lines again adds nothing.

    Parameters:
        namespace: the namespace of all events; None takes each line's own ``namespace``.

    Raises:
        InvalidInput: a line is not an event; `field` names it, and the lines before it are appended.
    """
    if namespace is not None:
        check_namespace(namespace)
    return append_all(log, _events(lines, namespace), privacy, on_progress)


def _events(lines: Iterable[bytes], namespace: str | None) -> Iterator[tuple[str, EventDraft]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _event(line, namespace)
        except InvalidInput as error:
            raise InvalidInput(
                f"{error}. The lines before it are imported; correct it and import the file again, which adds only the "
                "missing events",
                field=f"line {number}",
            ) from error


def _event(line: bytes, namespace: str | None) -> tuple[str, EventDraft]:
    return _read_event(json_object(line), namespace)


def _read_event(fields: dict[str, Any], namespace: str | None) -> tuple[str, EventDraft]:
    """Return the namespace and the event of a line.

    Parameters:
        namespace: the namespace of all lines; None takes each line's own.

    Raises:
        InvalidInput: the line is not an event, or has no namespace.
    """
    line_namespace = fields.pop("namespace", None)
    _drop_invalid_through(fields)
    for name in _ASSIGNED_BY_LOG:
        fields.pop(name, None)
    if namespace is None:
        if not isinstance(line_namespace, str):
            raise InvalidInput("the line has no namespace; add it, or give --namespace", field="namespace")
        check_namespace(line_namespace)
    return namespace or str(line_namespace), draft(fields)


def _drop_invalid_through(fields: dict[str, Any]) -> None:
    """Remove a `through` beyond the event's exported version: this version refuses it, older ones recorded it."""
    payload, version = fields.get("payload"), fields.get("version")
    if isinstance(payload, dict) and isinstance(version, int):
        values = cast(dict[str, Any], payload)
        through = values.get("through")
        if isinstance(through, int) and through > version:
            del values["through"]


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield the events of an export of Recollect, or of lines in the form of the HTTP route."""

    def event(fields: dict[str, Any], name: str) -> Record:
        namespace, event = _read_event(fields, options.namespace)
        return ExactEvent(namespace=namespace, draft=event, where=f"{name}, event {event.id or event.type}")

    for name in files.names:
        yield from read_json_lines(files, name, lambda fields, name=name: [event(fields, name)])


def _match(files: SourceFiles) -> Match:
    return Match.LIKELY if has_signs(files, (b'"payload"', b'"type"')) else Match.NONE


IMPORTERS = (
    Importer(
        name="jsonl",
        files="events, see below",
        content="the events as they are",
        match=_match,
        read=_read,
        has_namespaces=True,
    ),
)
