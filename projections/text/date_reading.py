"""Date reading: finds the dates in a text, each with the ranges that it may mean and the probability of each.

Every expression that may be a date has candidates: the Fridays before and after a message for `on Friday`, a day of the
years around for `15 July`; and one more candidate, that it names no date, or none whose year is known. The probability
of each is a multinomial logit of what the words around say: `date_cues` names them, `date_weights.json` weighs them,
and `ops/train/dates` learns the weights from labelled sentences. Where an encoder reads the words as well, its vectors
are inputs of the logit too, with the weights of `date_vector_weights.npz`.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.projections.text.calendar_ranges import Range
from recollect.projections.text.date_cues import cues_of
from recollect.projections.text.date_patterns import DateReading, possible_dates
from recollect.projections.text.date_surroundings import unshown
from recollect.projections.text.earlier_days import EarlierDays, earlier_cues, follow, follows
from recollect.projections.text.sentence_language import Language

#: The probability from which a date is shown and used as a fact. Of held-out labels, 99 % of the dates from here on
#: are right (`ops/train/dates`).
SURE = 0.988
#: What the probabilities of an expression that is never shown are multiplied by.
_UNSHOWN = 0.9
#: Less probable candidates are left out.
_FLOOR = 0.02
#: What distinguishes the candidates of an expression. Distances are in days from the message.
FEATURES = (
    "none",
    "past",
    "future",
    "today",
    "within_7",
    "within_31",
    "within_62",
    "within_183",
    "within_366",
    "past_within_62",
    "future_within_62",
    "second",
    "nearest",
    "long",
    "agrees",
    "linked",
    "follows",
)
#: Characters between two expressions that name the same day: `Friday (April 5)`.
_AGREEING_CHARS = 12
#: Characters of an expression, at most.
_EXPRESSION_CHARS_MAX = 200
#: Characters between a date with a year and one that has the same year: `January 16 - February 15, 2024`.
_LINKED_CHARS = 60
_LINKED_DAYS = 183
#: Characters around an expression that an encoder reads; texts with more expressions than the maximum are not read.
_BEFORE_CHARS, _AFTER_CHARS = 160, 110
_WINDOWS_MAX = 40


class TextWindow(NamedTuple):
    """An expression that may be a date, with the words around it on its line."""

    text: str
    #: The characters of the expression in `text`.
    start: int
    end: int


#: Returns the vectors of windows, one row each; None: there is no encoder. `embeddings.reading_encoder` makes it.
ReadWindows = Callable[[Sequence[TextWindow]], NDArray[np.float32] | None]


class DateCandidate(NamedTuple):
    """A time range that the words of a date may mean."""

    start: datetime
    #: Exclusive.
    end: datetime
    probability: float


class ReadDate(NamedTuple):
    """A date in a text."""

    #: The words of the text.
    words: str
    #: The position of the first character.
    position: int
    #: The ranges that the words may mean, the most probable first; their probabilities may add up to less than 1.
    candidates: tuple[DateCandidate, ...]

    @property
    def sure(self) -> DateCandidate | None:
        """Return the range when it is sure."""
        return self.candidates[0] if self.candidates[0].probability >= SURE else None


class _Weights(NamedTuple):
    """The weights of the reading."""

    #: The row of each cue in `rows`.
    cues: dict[str, int]
    #: Weights, shape (cues, features).
    rows: NDArray[np.float64]
    #: Weights of the vector of a window, shape (dimensions, features); None: the words decide alone.
    vectors: NDArray[np.float64] | None = None


@cache
def _word_weights() -> _Weights:
    """Return the weights of the words alone."""
    table = json.loads(files(__package__).joinpath("date_weights.json").read_text(encoding="utf-8"))
    rows: dict[str, list[float]] = table["weights"]
    return _Weights({cue: row for row, cue in enumerate(rows)}, np.array([*rows.values()], np.float64))


@cache
def _vector_weights() -> _Weights:
    """Return the weights of words and vectors together."""
    with np.load(BytesIO(files(__package__).joinpath("date_vector_weights.npz").read_bytes())) as arrays:
        cues = bytes(arrays["cues"]).decode().split("\n")
        rows, vectors = (arrays[name].astype(np.float64) for name in ("rows", "vectors"))
    return _Weights({cue: row for row, cue in enumerate(cues)}, rows, vectors)


def read_dates(
    text: str,
    sent_at: datetime,
    *,
    language: Language | None = None,
    leaning: int = 0,
    read_windows: ReadWindows | None = None,
    earlier: EarlierDays | None = None,
) -> list[ReadDate]:
    """Return the dates in `text`, in order and without overlaps.

    Parameters:
        sent_at: the time of the message, aware; days are those of its time zone, and the ranges have this zone.
        language: the language of the text, when it is known; None: it is found by its words.
        leaning: -1 for a question, which is about the past unless its words say otherwise; 1 for one about plans.
        read_windows: returns the vectors of the words around the dates; None: the words decide alone.
        earlier: returns the days that the messages before it name, the latest last (`earlier_days.days_named`), when
            there is an expression that may follow them; the words alone do not weigh them.
    """
    try:
        readings = possible_dates(text, sent_at, language)
        followed = follow(readings, earlier() if readings and earlier is not None else ())
    except OverflowError:
        # At an end of the calendar.
        return []
    vectors = None
    if read_windows is not None and 0 < len(readings) <= _WINDOWS_MAX:
        vectors = read_windows([window_of(text, reading) for reading in readings])
    if vectors is None:
        followed = [(reading, ()) for reading in readings if not reading.is_alone]
    readings = [reading for reading, _ in followed]
    dates: list[ReadDate] = []
    is_unshown = unshown(text, readings)
    for place, (reading, days) in enumerate(followed):
        scores = _scores(text, reading, readings, days, None if vectors is None else vectors[place])
        if leaning:
            scores += _leaning(reading, leaning)
        odds = np.exp(scores - scores.max())
        probabilities = (odds / odds.sum())[1:]
        if is_unshown(place) or reading.is_alone:
            probabilities *= _UNSHOWN
        candidates = sorted(zip(probabilities, reading.candidates, strict=True), key=lambda pair: (-pair[0], pair[1]))
        kept = tuple(
            DateCandidate(_midnight(first, sent_at), _midnight(last, sent_at), round(float(probability), 3))
            for probability, (first, last) in candidates
            if probability >= _FLOOR
        )
        if kept:
            dates.append(ReadDate(text[reading.start : reading.end], reading.start, kept))
    return dates


def names_date(text: str, sent_at: datetime) -> bool:
    """Return whether a text probably names a date, whichever it is."""
    dates = read_dates(text, sent_at)
    return any(sum(candidate.probability for candidate in date.candidates) >= 0.5 for date in dates)


def _midnight(day: date, sent_at: datetime) -> datetime:
    """Return the beginning of a day in the time zone of the message."""
    return datetime.combine(day, time(), sent_at.tzinfo)


def window_of(text: str, reading: DateReading) -> TextWindow:
    """Return an expression with the words around it that an encoder reads."""
    start = max(0, reading.start - _BEFORE_CHARS, text.rfind("\n", 0, reading.start) + 1)
    line_end = text.find("\n", reading.end)
    end = min(reading.end + _AFTER_CHARS, len(text) if line_end < 0 else line_end)
    return TextWindow(text[start:end], reading.start - start, reading.end - start)


def _scores(
    text: str,
    reading: DateReading,
    readings: Sequence[DateReading],
    earlier: Sequence[date],
    vector: NDArray[np.float32] | None,
) -> NDArray[np.float64]:
    """Return the scores of no date and of each candidate, shape (1 + candidates,): logarithms of their odds."""
    weights = _word_weights() if vector is None else _vector_weights()
    rows = [row for cue in all_cues(text, reading, earlier) if (row := weights.cues.get(cue)) is not None]
    of_features = weights.rows[rows].sum(axis=0)
    if vector is not None and weights.vectors is not None:
        of_features = of_features + vector @ weights.vectors
    return features_of(reading, readings, earlier) @ of_features


def all_cues(text: str, reading: DateReading, earlier: Sequence[date]) -> list[str]:
    """Return the cues of an expression and of the earlier days."""
    return [*cues_of(text, reading), *earlier_cues(reading, earlier)]


#: The odds against a date on the side that a question does not ask about, as a logarithm.
_LEANING = 12.0


def _leaning(reading: DateReading, leaning: int) -> NDArray[np.float64]:
    """Return what is added to the scores of a question's dates: it names a time to look at, on one side of today."""
    today = reading.expression.today
    against = [first > today if leaning < 0 else last <= today for first, last in reading.candidates]
    return -_LEANING * np.array([0.5, *against], np.float64)


def features_of(reading: DateReading, readings: Sequence[DateReading], earlier: Sequence[date]) -> NDArray[np.float64]:
    """Return the features of no date and of each candidate, shape (1 + candidates, features)."""
    today = reading.expression.today
    linked, agreeing = _neighbours(reading, readings)
    distances = [_distance(item, today) for item in reading.candidates]
    nearest = min(map(abs, distances))
    is_mixed = len({last - first == timedelta(days=1) for first, last in reading.candidates}) > 1
    rows = [[1.0] + [0.0] * (len(FEATURES) - 1)]
    for item, distance in zip(reading.candidates, distances, strict=True):
        days = abs(distance)
        nearer = any(0 < other * distance < distance * distance for other in distances)
        rows.append(
            [
                0.0,
                distance < 0,
                distance > 0,
                distance == 0,
                days <= 7,
                days <= 31,
                days <= 62,
                days <= 183,
                days <= 366,
                -62 <= distance < 0,
                0 < distance <= 62,
                nearer,
                days == nearest,
                is_mixed and (item[1] - item[0]).days > 1,
                item in agreeing,
                linked is not None and abs((item[0] - linked).days) < _LINKED_DAYS,
                follows(item[0], earlier),
            ]
        )
    return np.array(rows, np.float64)


def _distance(item: Range, today: date) -> int:
    """Return the days from today to the beginning of a range, or to its last day when it is over; 0 within it."""
    if item[0] > today:
        return (item[0] - today).days
    return min(0, (item[1] - today).days - 1)


def _start(reading: DateReading) -> int:
    return reading.start


def _neighbours(reading: DateReading, readings: Sequence[DateReading]) -> tuple[date | None, set[Range]]:
    """Return the first day of a date with a year nearby, and the ranges of the expressions right next to it."""
    linked: date | None = None
    agreeing: set[Range] = set()
    # In the order of the text: a text of dates alone has thousands, of which few are near.
    first = bisect_left(readings, reading.start - _LINKED_CHARS - _EXPRESSION_CHARS_MAX, key=_start)
    last = bisect_right(readings, reading.end + _LINKED_CHARS, key=_start)
    for other in readings[first:last]:
        gap = max(reading.start - other.end, other.start - reading.end)
        if other is reading or gap > _LINKED_CHARS:
            continue
        if other.kind.endswith(".full"):
            linked = other.candidates[0][0]
        if gap <= _AGREEING_CHARS:
            agreeing.update(other.candidates)
    return linked, agreeing
