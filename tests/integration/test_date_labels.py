"""The reading of dates against sentences and messages with labels: `ops/train/dates/labels`."""

from __future__ import annotations

import sys
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import window_reader
from recollect.projections.text.date_reading import read_dates

_FOLDER = Path(__file__).parents[2] / "ops" / "train" / "dates"
#: Of the dates that are shown, how many are right; of those that a reader of the text is sure of, how many are shown,
#: and how many are read right, shown or not. Most of the sentences were written to be hard.
_SHOWN_RIGHT_MIN = 0.97
_SHOWN_MIN = 0.5
_READ_RIGHT_MIN = 0.82


@pytest.mark.parametrize("path", sorted((_FOLDER / "labels").glob("*-heldout.jsonl")), ids=lambda path: path.stem)
def test_held_out_dates_are_read_and_shown_right(
    path: Path, embedder: SentenceEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(_FOLDER), *sys.path])
    labels: Any = import_module("label_files")
    if path.name.startswith("given") and not labels.DATA.is_dir():
        pytest.skip(f"no conversations in {labels.DATA}; set RECOLLECT_TEST_DATA")
    read_windows = window_reader(embedder)
    read = sure = shown = shown_right = 0
    wrong: list[str] = []
    for item in labels.read_labels(path):
        dates = read_dates(item.text, item.said, read_windows=read_windows)
        for label in item.labels:
            over = [date for date in dates if _overlap(date.position, len(date.words), label)]
            tops = [date.candidates[0] for date in over]
            spans = [(top.start.date(), top.end.date() - timedelta(days=1)) for top in tops]
            if label.what == "sure":
                sure += 1
                read += any(span in label.ranges for span in spans)
            for date, span in zip(over, spans, strict=True):
                if date.sure is not None:
                    is_right = any(
                        _overlap(date.position, len(date.words), other) and span in other.ranges
                        for other in item.labels
                    )
                    shown += 1
                    shown_right += is_right
                    wrong += [] if is_right else [f"{item.id}: {date.words} as {span[0]} to {span[1]}"]
    assert shown_right >= _SHOWN_RIGHT_MIN * shown, wrong
    assert shown >= _SHOWN_MIN * sure, f"{shown} of {sure}"
    assert read >= _READ_RIGHT_MIN * sure, f"{read} of {sure}"


def _overlap(position: int, length: int, label: Any) -> bool:
    return position < label.end and label.start < position + length
