"""Held-out dates: what the product reads and shows of each held-out file, by the words alone and with the encoder.

    OMP_NUM_THREADS=2 .venv/bin/python ops/train/dates/held_out.py

The figures of the model card. `expressions.right_ranges` says which ranges are right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from expressions import right_ranges
from label_files import FOLDER, Label, LabelledText, read_labels

from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import window_reader
from recollect.projections.text.date_reading import ReadDate, ReadWindows, read_dates

_THRESHOLDS = (0.9, 0.95, 0.97, 0.98, 0.985, 0.988, 0.99)


def main() -> None:
    """Print the figures of each file."""
    embedder = SentenceEmbedder()
    embedder.start()
    for title, read_windows in (("words alone", None), ("with the encoder", window_reader(embedder))):
        total: Counter[str] = Counter()
        for path in sorted(FOLDER.glob("*-heldout.jsonl")):
            counts = counted([*read_labels(path)], read_windows)
            total += counts
            print_counts(f"{path.stem}, {title}", counts)
        print_counts(f"together, {title}", total)


def counted(texts: Sequence[LabelledText], read_windows: ReadWindows | None) -> Counter[str]:
    """Return how many dates are sure, read right, and shown and right from each threshold on."""
    counts: Counter[str] = Counter()
    for item in texts:
        dates = read_dates(item.text, item.said, read_windows=read_windows, earlier=partial(tuple, item.earlier))
        for label in item.labels:
            is_sure = label.what == "sure"
            counts["sure"] += is_sure
            date = next(
                (it for it in dates if it.position < label.end and label.start < it.position + len(it.words)), None
            )
            if date is None:
                continue
            right = is_right(date, label)
            counts["read"] += right and is_sure
            for threshold in _THRESHOLDS:
                if date.candidates[0].probability >= threshold:
                    counts.update({f"shown {threshold}": 1, f"right {threshold}": right})
                    counts[f"right of sure {threshold}"] += right and is_sure
    return counts


def is_right(date: ReadDate, label: Label) -> bool:
    """Return whether the most probable range of a date is that of a label."""
    top = date.candidates[0]
    span = top.start.date(), top.end.date() - timedelta(days=1)
    return right_ranges([span], [label], len(date.words))[0]


def print_counts(title: str, counts: Counter[str]) -> None:
    """Print the figures of a file."""
    print(f"{title}: {counts['sure']} sure dates, the most probable range of {counts['read']} is right", flush=True)
    for threshold in _THRESHOLDS:
        shown, right = counts[f"shown {threshold}"], counts[f"right {threshold}"]
        share = counts[f"right of sure {threshold}"] / counts["sure"]
        print(f"  from {threshold}: {right} of {shown} right, {share:.0%} of the sure dates")


if __name__ == "__main__":
    main()
