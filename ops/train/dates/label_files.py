"""Label files: reads the labelled sentences and messages that the date reading is trained and scored on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from recollect.projections.text.earlier_days import EARLIER_MESSAGES_MAX, days_named

FOLDER = Path(__file__).parent / "labels"
#: The conversations of the labels that name a message only.
DATA = Path(os.environ.get("RECOLLECT_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data")


class Label(NamedTuple):
    """What an expression in a text means."""

    start: int
    end: int
    #: Whether a reader of the text would be sure; `none`: it is not a date; `yearless`: a date of every year.
    what: Literal["sure", "unsure", "none", "yearless"]
    #: The ranges that are right: first day and last day.
    ranges: tuple[tuple[date, date], ...] = ()


class LabelledText(NamedTuple):
    """A text with its labels."""

    id: str
    text: str
    said: datetime
    labels: list[Label]
    #: Whether every date of the text has a label.
    complete: bool
    #: The days that the messages before it name.
    earlier: tuple[date, ...] = ()


def read_labels(path: Path) -> Iterator[LabelledText]:
    """Yield the texts of a file of JSON lines: own sentences with their text, or labels of messages in `DATA`."""
    given: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "file" in row:
            given.setdefault((row["file"], row["event"]), []).append(row)
        else:
            yield _own(row)
    conversations: dict[str, _Conversation] = {}
    for (name, event), rows in given.items():
        conversation = conversations.setdefault(name, _Conversation(name))
        labels = [
            _label(row["position"], row["position"] + row.get("length", len(row.get("words", ""))), row) for row in rows
        ]
        text, before = conversation.message(event)
        yield LabelledText(event, text, _moment(rows[0]["said"]), labels, False, _earlier(before))


class _Conversation:
    """A conversation of `DATA`."""

    def __init__(self, name: str) -> None:
        self._events: list[dict[str, Any]] = json.loads((DATA / name).read_text(encoding="utf-8"))["events"]
        self._places = {event["id"]: place for place, event in enumerate(self._events)}

    def message(self, id: str) -> tuple[str, list[tuple[str, str]]]:
        """Return the text of a message, and the times and texts of those before it in its session."""
        place = self._places[id]
        event = self._events[place]
        before = self._events[max(0, place - EARLIER_MESSAGES_MAX) : place]
        return event["payload"]["text"], [
            (it["occurred_at"], it["payload"]["text"]) for it in before if it.get("session_id") == event["session_id"]
        ]


def _earlier(before: Iterable[Sequence[str]]) -> tuple[date, ...]:
    """Return the days that messages name, each of them a time and a text."""
    return tuple(day for said, text in before for day in days_named(text, _moment(said)))


def _own(row: dict[str, Any]) -> LabelledText:
    """Return a sentence with all its labels."""
    text: str = row["text"]
    labels: list[Label] = []
    for item in row["dates"]:
        start = item.get("position", text.find(item["words"]))
        labels.append(_label(start, start + len(item["words"]), item))
    for what in ("none", "yearless"):
        for words in row.get(what) or ():
            places = [match.span() for match in re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", text)]
            for start, end in places or [(text.index(words), text.index(words) + len(words))]:
                if not any(start < label.end and label.start < end for label in labels):
                    labels.append(Label(start, end, what))
    earlier = _earlier(row.get("before", ()))
    return LabelledText(row["id"], text, _moment(row["said"]), labels, row.get("complete", True), earlier)


def _label(start: int, end: int, row: dict[str, Any]) -> Label:
    """Return the label of a row."""
    if row.get("none") or row.get("yearless"):
        return Label(start, end, "none" if row.get("none") else "yearless")
    ranges = tuple(
        (date.fromisoformat(item["start"]), date.fromisoformat(item["end"])) for item in (row, *(row.get("also") or ()))
    )
    return Label(start, end, "sure" if row["sure"] else "unsure", ranges)


def _moment(text: str) -> datetime:
    """Return a time of RFC 3339."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
