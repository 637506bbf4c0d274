"""Import lines of JSON, one event each: our own export, or events as the HTTP route takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from recollect.api.importers.batches import ImportResult, append_all
from recollect.events.backends.log import EventLog
from recollect.events.envelope import EventDraft
from recollect.events.errors import InvalidInput
from recollect.events.limits import check_namespace
from recollect.events.progress import OnCount
from recollect.events.validation import draft, json_object

#: What the log gives to an event; a new log gives its own.
_GIVEN_BY_LOG = ("version", "recorded_at", "hash")


def import_jsonl(log: EventLog, lines: Iterable[bytes], *, namespace: str | None, on_progress: OnCount) -> ImportResult:
    """Append the events in `lines` and return how many were new. Importing the same again adds nothing.

    Parameters:
        namespace: where all go; None takes each line's own ``namespace``.

    Raises:
        InvalidInput: a line is no event; it is named, and the lines before it are recorded.
    """
    if namespace is not None:
        check_namespace(namespace)
    return append_all(log, _events(lines, namespace), on_progress)


def _events(lines: Iterable[bytes], namespace: str | None) -> Iterator[tuple[str, EventDraft]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _event(line, namespace)
        except InvalidInput as error:
            raise InvalidInput(
                f"{error}. The lines before it are imported; mend it and import the file again, which adds only what "
                "is missing",
                field=f"line {number}",
            ) from error


def _event(line: bytes, namespace: str | None) -> tuple[str, EventDraft]:
    fields = json_object(line)
    owner = fields.pop("namespace", None)
    _drop_forged_through(fields)
    for name in _GIVEN_BY_LOG:
        fields.pop(name, None)
    if namespace is None:
        if not isinstance(owner, str):
            raise InvalidInput("the line has none; add it, or give --namespace", field="namespace")
        check_namespace(owner)
    return namespace or str(owner), draft(fields)


def _drop_forged_through(fields: dict[str, Any]) -> None:
    """Remove a `through` beyond the version that the exporting log gave: the log refuses it, older programs did not."""
    payload, version = fields.get("payload"), fields.get("version")
    if isinstance(payload, dict) and isinstance(version, int):
        values = cast(dict[str, Any], payload)
        through = values.get("through")
        if isinstance(through, int) and through > version:
            del values["through"]
