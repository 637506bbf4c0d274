"""Expressions: what may be a date in the labelled texts, with what it means, as both models are trained on it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np
from label_files import Label, LabelledText
from numpy.typing import NDArray

from recollect.projections.text.calendar_ranges import Range
from recollect.projections.text.date_patterns import possible_dates
from recollect.projections.text.date_reading import TextWindow, all_cues, features_of, window_of
from recollect.projections.text.earlier_days import follow

Matrix = NDArray[np.float64]
#: Weight of an expression that a completely labelled text has no label for: it is not a date.
_UNLABELLED_WEIGHT = 0.5
#: Days between the beginnings and the ends of two ranges that mean the same.
_NEAR_DAYS = 4
#: Days of a range, at most, one day of which means the same.
_SHORT_DAYS = 10


class Expression(NamedTuple):
    """An expression with what it means."""

    #: Number of the text, which is held out with all its expressions.
    text: int
    #: The expression with its surroundings, which an encoder reads.
    window: TextWindow
    cues: list[str]
    features: Matrix
    #: The probability that each row of the features should have.
    target: Matrix
    weight: float
    #: `sure`, `unsure`, `none`, `yearless` or `unlabelled`.
    what: str
    said: date

    def __str__(self) -> str:
        """Return the day, and the expression in brackets."""
        text, start, end = self.window
        return f"{self.said} {text[:start]}[{text[start:end]}]{text[end:]}"


def expressions_of(
    texts: list[LabelledText], weight: float = 1.0, *, encoder: bool = True
) -> tuple[list[Expression], int]:
    """Return the expressions of the texts, each with a weight, and the number of sure dates without an expression.

    Parameters:
        encoder: with what is read only with an encoder: `dentist 19th`, and what earlier days say.
    """
    expressions: list[Expression] = []
    missed = 0
    for number, item in enumerate(texts):
        followed = follow(possible_dates(item.text, item.said), item.earlier)
        if not encoder:
            followed = [(it, ()) for it in possible_dates(item.text, item.said) if not it.is_alone]
        readings = [reading for reading, _ in followed]
        missed += sum(
            label.what == "sure"
            and not any(reading.start < label.end and label.start < reading.end for reading in readings)
            for label in item.labels
        )
        for reading, days in followed:
            labels = [label for label in item.labels if reading.start < label.end and label.start < reading.end]
            if not labels and not item.complete:
                continue
            spans = [(first, last - timedelta(days=1)) for first, last in reading.candidates]
            is_right = right_ranges(spans, labels, reading.end - reading.start)
            target = np.array([not any(is_right), *is_right], np.float64)
            target /= target.sum()
            what = labels[0].what if labels else "unlabelled"
            if what == "unsure":
                target = 0.5 * target + 0.5 * np.eye(len(target))[0]
            expressions.append(
                Expression(
                    text=number,
                    window=window_of(item.text, reading),
                    cues=all_cues(item.text, reading, days),
                    features=features_of(reading, readings, days),
                    target=target,
                    weight=weight if labels else _UNLABELLED_WEIGHT,
                    what=what,
                    said=item.said.date(),
                )
            )
    return expressions, missed


def right_ranges(spans: Sequence[Range], labels: Sequence[Label], length: int) -> list[bool]:
    """Return which ranges of an expression are right: a label's, or else those that mean almost the same.

    Parameters:
        spans: first and last day of each range.
        labels: those of the expression.
        length: characters of the expression.
    """
    ranges = {span for label in labels for span in label.ranges}
    # `from the 7th to the 18th` is one label, and two expressions with a day each.
    ends = {day for label in labels if label.end - label.start > length for span in label.ranges for day in span}
    is_right = [span in ranges for span in spans]
    if not any(is_right):
        is_right = [_is_near(span, ranges) or (span[0] == span[1] and span[0] in ends) for span in spans]
    return is_right


def _is_near(span: Range, ranges: set[Range]) -> bool:
    """Return whether a range of days is almost one of the right ones for another reader.

    That of `mid-May` may begin and end earlier; that of `Easter`, or `the end of June`, may be one day of the range.
    """
    first, last = span
    is_short = (last - first).days < _SHORT_DAYS
    return any(
        (max(abs((first - start).days), abs((last - end).days)) <= _NEAR_DAYS and last > first and end > start)
        or (is_short and first <= start and end <= last)
        for start, end in ranges
    )
