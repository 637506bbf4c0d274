"""Label files: reads the labelled sentences and messages that the date reading is trained and scored on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

FOLDER = Path(__file__).parent / "labels"
#: The conversations of the labels that name a message only.
DATA = Path(os.environ.get("RECOLLECT_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data")


class Label(NamedTuple):
    """What an expression in a text means."""

    start: int
    end: int
    #: Whether a reader of the text would be sure; `none`: it is no date; `yearless`: a date of every year.
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


def read_labels(path: Path) -> Iterator[LabelledText]:
    """Yield the texts of a file of JSON lines: own sentences with their text, or labels of messages in `DATA`."""
    given: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "file" in row:
            given.setdefault((row["file"], row["event"]), []).append(row)
        else:
            yield _own(row)
    texts: dict[str, dict[str, str]] = {}
    for (name, event), rows in given.items():
        if name not in texts:
            events = json.loads((DATA / name).read_text(encoding="utf-8"))["events"]
            texts[name] = {item["id"]: item["payload"]["text"] for item in events}
        labels = [
            _label(row["position"], row["position"] + row.get("length", len(row.get("words", ""))), row) for row in rows
        ]
        yield LabelledText(event, texts[name][event], _moment(rows[0]["said"]), labels, False)


def _own(row: dict[str, Any]) -> LabelledText:
    """Return a sentence with all its labels."""
    text: str = row["text"]
    labels = [
        _label(text.index(item["words"]), text.index(item["words"]) + len(item["words"]), item) for item in row["dates"]
    ]
    for what in ("none", "yearless"):
        for words in row.get(what) or ():
            places = [match.span() for match in re.finditer(rf"(?<!\w){re.escape(words)}(?!\w)", text)]
            for start, end in places or [(text.index(words), text.index(words) + len(words))]:
                if not any(start < label.end and label.start < end for label in labels):
                    labels.append(Label(start, end, what))
    return LabelledText(row["id"], text, _moment(row["said"]), labels, True)


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
