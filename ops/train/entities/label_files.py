"""Label files: reads the sentences whose names are labelled, on which the name reader is trained and scored.

A file of sentences has a line `# voice` before those of one person, and marks a name as `{Anna|p}`; `~` marks a name
that is not scored. The files of JSON lines name places in the given conversations and have none of their text.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

FOLDER = Path(__file__).parent / "labels"
#: The conversations of the labels that have no text.
DATA = Path(os.environ.get("RECOLLECT_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data")
TYPES = {
    "p": "person",
    "l": "location",
    "o": "organization",
    "a": "animal",
    "t": "tool",
    "w": "work",
    "e": "event",
    "x": "other",
}
#: Short sentences with the usual words around a name: they train, and are not scored.
PATTERNS = "patterns"
#: One voice in this many is held out.
_HELD_OUT_SHARE = 3
_MARK = re.compile(r"\{([^|{}]+)\|([a-z~])\}")


class LabelledText(Struct, frozen=True, kw_only=True):
    """A few sentences of one message with their names."""

    #: The file of labels.
    source: str
    #: The person, or the conversation, that is trained on or held out as a whole.
    voice: str
    text: str
    #: Start, end and type of each name.
    names: tuple[tuple[int, int, str], ...]
    #: Names that are not scored.
    ignored: tuple[tuple[int, int], ...]


def labelled_texts() -> tuple[list[LabelledText], list[LabelledText]]:
    """Return the texts to train on and those held out: every third voice."""
    texts: list[LabelledText] = []
    for path in sorted(FOLDER.iterdir()):
        if path.suffix != ".jsonl" or DATA.is_dir():
            texts += _given(path) if path.suffix == ".jsonl" else _own(path)
    trained: list[LabelledText] = []
    held_out: list[LabelledText] = []
    voices = {kind: sorted({text.voice for text in texts if _kind(text) == kind}) for kind in map(_kind, texts)}
    for text in texts:
        is_held_out = text.source != PATTERNS and voices[_kind(text)].index(text.voice) % _HELD_OUT_SHARE == 0
        (held_out if is_held_out else trained).append(text)
    return trained, held_out


def _kind(text: LabelledText) -> str:
    """Return the kind of a text, of which every third voice is held out; two files name the given conversations."""
    return text.source.removesuffix("-2")


def _own(path: Path) -> Iterator[LabelledText]:
    """Yield the sentences of a file of sentences."""
    voice = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            voice = line[2:]
            continue
        text, names, ignored, end = "", list[tuple[int, int, str]](), list[tuple[int, int]](), 0
        for match in _MARK.finditer(line):
            text += line[end : match.start()] + match[1]
            start, end = len(text) - len(match[1]), match.end()
            if match[2] == "~":
                ignored.append((start, len(text)))
            else:
                names.append((start, len(text), TYPES[match[2]]))
        yield LabelledText(
            source=path.stem, voice=voice, text=text + line[end:], names=tuple(names), ignored=tuple(ignored)
        )


def _given(path: Path) -> Iterator[LabelledText]:
    """Yield the labelled parts of given messages."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        yield LabelledText(
            source=path.stem,
            voice=row["file"],
            text=_texts(row["file"])[row["event"]][row["start"] : row["end"]],
            names=tuple((start, end, TYPES[type]) for start, end, type in row["names"]),
            ignored=tuple((start, end) for start, end, *_ in row["ignored"]),
        )


@cache
def _texts(name: str) -> dict[str, str]:
    """Return the texts of the messages of a given conversation by id."""
    events = json.loads((DATA / name).read_text(encoding="utf-8"))["events"]
    return {item["id"]: item["payload"]["text"] for item in events if "text" in item["payload"]}
