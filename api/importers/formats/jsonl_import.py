"""JSONL import: lines of JSON with one event each, from an export or in the form of the HTTP route."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import itemgetter
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
    versions = _Versions()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _read_event(json_object(line), namespace, versions)
        except InvalidInput as error:
            raise InvalidInput(
                f"{error}. The lines before it are imported; correct it and import the file again, which adds only the "
                "missing events",
                field=f"line {number}",
            ) from error


def _read_event(fields: dict[str, Any], namespace: str | None, versions: _Versions) -> tuple[str, EventDraft]:
    """Return the namespace and the event of a line.

    Parameters:
        namespace: the namespace of all lines; None takes each line's own.
        versions: the exported versions of the lines before.

    Raises:
        InvalidInput: the line is not an event, or has no namespace.
    """
    line_namespace = fields.pop("namespace", None)
    versions.renumber(str(line_namespace), fields)
    for name in _ASSIGNED_BY_LOG:
        fields.pop(name, None)
    if namespace is None:
        if not isinstance(line_namespace, str):
            raise InvalidInput("the line has no namespace; add it, or give --namespace", field="namespace")
        check_namespace(line_namespace)
    return namespace or str(line_namespace), draft(fields)


class _Versions:
    """The versions of exported events, which an import numbers again: an export has no erased events."""

    def __init__(self) -> None:
        #: By the exported namespace, ranges without a gap: the first and the last version, and the events before it.
        self._ranges: dict[str, list[list[int]]] = {}

    def renumber(self, namespace: str, fields: dict[str, Any]) -> None:
        """Add an event, and set the versions that its payload names to those which an empty namespace will have.

        A `through` beyond the event's exported version is removed: this version refuses it, older ones recorded it.
        """
        payload, version = fields.get("payload"), fields.get("version")
        if not isinstance(payload, dict) or not isinstance(version, int):
            return
        self._add(namespace, version)
        values = cast(dict[str, Any], payload)
        for name in ("through", "llm_through"):
            through = values.get(name)
            if isinstance(through, int):
                values[name] = self._new_version(namespace, through)
                if through > version:
                    del values[name]

    def _add(self, namespace: str, version: int) -> None:
        ranges = self._ranges.setdefault(namespace, [])
        if ranges and version == ranges[-1][1] + 1:
            ranges[-1][1] = version
        elif not ranges or version > ranges[-1][1]:
            first, last, before = ranges[-1] if ranges else (1, 0, 0)
            ranges.append([version, version, before + last - first + 1])

    def _new_version(self, namespace: str, version: int) -> int:
        """Return the number of events up to an exported version; at least 1, the first version that there is."""
        ranges = self._ranges[namespace]
        following = bisect_right(ranges, version, key=itemgetter(0))
        if not following:
            return 1
        first, last, before = ranges[following - 1]
        return before + min(version, last) - first + 1


def _read(files: SourceFiles, options: ReadOptions) -> Iterator[Record]:
    """Yield the events of an export of Recollect, or of lines in the form of the HTTP route."""

    versions = _Versions()

    def event(fields: dict[str, Any], name: str) -> Record:
        namespace, event = _read_event(fields, options.namespace, versions)
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
