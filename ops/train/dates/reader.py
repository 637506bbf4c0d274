"""Reader: the date reading in the form that scores of labels take."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from recollect.projections.text.date_reading import read_dates


def read(text: str, said: datetime) -> list[tuple[int, int, date, date, float]]:
    """Return start, end, first day, last day and probability of each candidate of the dates in a text."""
    return [
        (item.position, item.position + len(item.words), start.date(), end.date() - timedelta(days=1), probability)
        for item in read_dates(text, said)
        for start, end, probability in item.candidates
    ]
