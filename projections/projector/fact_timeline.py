"""Fact timeline: orders the statements about one subject and predicate by time, and returns which value held when.

The result depends on the times of the statements and not on the order in which they arrive: a chat that is imported
late changes the past only. The newest statement of a person wins, also over an older correction; a statement of the
assistant never replaces one of a person. What a language model reads in a message replaces only its own earlier
readings, so that it holds together with what the rules read; what a person states later replaces both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from msgspec import Struct

#: state: the value holds. past: the value held before the statement. correct: the value holds, and what was said before
#: is wrong. end: the value no longer holds. retract: the value never held.
Kind = Literal["state", "past", "correct", "end", "retract"]
#: The job in the ids of the events, and so of the statements, that a language model reads in messages.
LLM_JOB = "llm"
_LLM_PREFIX = f"{LLM_JOB}:"


class DatedStatement(NamedTuple):
    """A statement about the facts of one group, which have the same subject and predicate.

    A tuple, since all statements of a group are read for each new one.
    """

    #: The id of the event, with a number when the event has several statements.
    id: str
    kind: Kind
    #: The object, normalised; None: every value of the group.
    value: str | None
    #: When it was said.
    at_us: int
    #: Start of validity; None: not said.
    from_us: int | None
    #: End of validity; None: not said.
    until_us: int | None
    #: Whether the assistant inferred it.
    is_assistant: bool
    #: corrected 3, stated 2, observed 1, inferred 0: of two statements at one time, the higher rank wins.
    rank: int
    #: Position in the log.
    key: int
    #: The fact that the statement belongs to; None: none yet.
    fact_id: str | None

    @property
    def is_model(self) -> bool:
        """Return whether a language model read it in a message."""
        return self.id.startswith(_LLM_PREFIX)


class ValidSpan(Struct, kw_only=True):
    """A time for which one value held: one row of the table `facts`."""

    value: str
    statements: list[DatedStatement]
    #: Whether only the assistant stated it.
    is_assistant: bool
    start_us: int
    #: active, superseded, ended or invalidated.
    status: str = "active"
    end_us: int | None = None
    #: The span, or the id of the fact, that replaces it.
    replaced_by: ValidSpan | str | None = None

    def extend(self, statement: DatedStatement) -> None:
        """Add another statement of the same value."""
        self.statements.append(statement)
        self.is_assistant &= statement.is_assistant

    def close(self, status: str, end_us: int, replaced_by: ValidSpan | str | None = None) -> None:
        """End the span at `end_us`, but not before its start."""
        self.status, self.replaced_by = status, replaced_by
        self.end_us = max(end_us, self.start_us)


def timeline(statements: Iterable[DatedStatement]) -> list[ValidSpan]:
    """Return the spans of one group of statements, ordered by their start.

    At most one of them is active, and at most one more that only a language model has read.
    """
    ordered = sorted(statements, key=lambda statement: (statement.at_us, statement.rank, statement.key))
    builder = _Timeline()
    for statement in _positioned(ordered):
        builder.add(statement)
    return builder.spans


def _positioned(ordered: list[DatedStatement]) -> list[DatedStatement]:
    """Return the statements in the order of the times from which they hold.

    A statement holds from its start of validity, but not from before the correction that it follows: what is said after
    a correction is newer than the correction.
    """
    positions: list[tuple[int, int, int, DatedStatement]] = []
    corrected_us = -(1 << 62)
    for statement in ordered:
        position = statement.at_us
        if statement.kind == "state" and statement.from_us is not None:
            position = max(statement.from_us, corrected_us)
        if statement.kind == "correct":
            corrected_us = statement.at_us
        positions.append((position, statement.rank, statement.key, statement))
    return [statement for *_, statement in sorted(positions, key=lambda entry: entry[:3])]


class _Timeline:
    """The spans of the statements so far."""

    def __init__(self) -> None:
        self.spans: list[ValidSpan] = []
        self._active: ValidSpan | None = None
        #: What only a language model has read since; it holds together with the active one.
        self._read: ValidSpan | None = None

    def add(self, statement: DatedStatement) -> None:
        """Apply the next statement in the order of time."""
        if statement.kind == "state":
            self._state(statement)
        elif statement.kind == "correct":
            self._hold(statement)
        elif statement.kind == "past":
            self._past(statement)
        elif statement.kind == "end":
            self._end(statement)
        else:
            self._retract(statement)

    def _state(self, statement: DatedStatement) -> None:
        """The value holds, unless the assistant says so against a person; what a model reads replaces no statement."""
        if statement.is_model:
            self._read_value(statement)
            return
        active = self._active
        against = active is not None and active.value != statement.value and not active.is_assistant
        if active is not None and against and statement.is_assistant:
            self._refuse(statement, active)
        else:
            self._hold(statement)

    def _read_value(self, statement: DatedStatement) -> None:
        """The value that a language model reads confirms the active one, or replaces only what a model read before."""
        same = (span for span in (self._active, self._read) if span is not None and span.value == statement.value)
        span = next(same, None)
        if span is not None:
            span.extend(statement)
            return
        span = self._begin(statement)
        if self._read is not None:
            self._read.close("superseded", span.start_us, span)
        self._read = span

    def _hold(self, statement: DatedStatement) -> None:
        """The value holds from now on, in place of another one."""
        active, read = self._active, self._read
        same = (span for span in (read, active) if span is not None and span.value == statement.value)
        span = next(same, None)
        if span is None:
            span = self._begin(statement)
        else:
            span.extend(statement)
        if active is not None and active is not span:
            active.close("superseded", span.start_us, span)
        # The assistant does not replace what a model read in a person's words.
        is_newer = not statement.is_assistant and read is not None and statement.at_us > read.statements[-1].at_us
        if read is not None and read is not span and is_newer:
            read.close("superseded", statement.at_us if statement.from_us is None else statement.from_us, span)
        if read is not None and (read is span or read.status != "active"):
            self._read = None
        self._active = span

    def _begin(self, statement: DatedStatement) -> ValidSpan:
        """Add the span of a value that holds from a statement on."""
        start_us = statement.at_us if statement.from_us is None else statement.from_us
        span = ValidSpan(
            value=statement.value or "",
            statements=[statement],
            is_assistant=statement.is_assistant,
            start_us=start_us,
            end_us=statement.until_us,
        )
        self.spans.append(span)
        return span

    def _refuse(self, statement: DatedStatement, holder: ValidSpan) -> None:
        """Add a statement of the assistant that contradicts the person's."""
        same = (span for span in self.spans if span.value == statement.value and span.replaced_by is holder)
        span = next(same, None)
        if span is not None and span.is_assistant and span.start_us >= holder.start_us:
            span.statements.append(statement)
            return
        span = ValidSpan(
            value=statement.value or "", statements=[statement], is_assistant=True, start_us=statement.at_us
        )
        span.close("superseded", statement.at_us, holder)
        self.spans.append(span)

    def _past(self, statement: DatedStatement) -> None:
        """The value held before: it ends when it was active, and replaces no other."""
        until_us = statement.at_us if statement.until_us is None else statement.until_us
        if self._end_values(statement.value, "ended", until_us):
            return
        if all(span.value != statement.value for span in self.spans):
            start_us = until_us if statement.from_us is None else min(statement.from_us, until_us)
            span = ValidSpan(value=statement.value or "", statements=[statement], is_assistant=False, start_us=start_us)
            span.close("ended", until_us)
            self.spans.append(span)

    def _end(self, statement: DatedStatement) -> None:
        """The active value no longer holds."""
        status = "superseded" if statement.fact_id else "ended"
        self._end_values(statement.value, status, statement.at_us, statement.fact_id)

    def _end_values(self, value: str | None, status: str, end_us: int, replaced_by: str | None = None) -> bool:
        """Close the spans that hold a value, or any value when it is None; return whether there is one."""
        closed = [span for span in (self._active, self._read) if span is not None and value in (None, span.value)]
        for span in closed:
            span.close(status, end_us, replaced_by)
        self._active, self._read = (None if span in closed else span for span in (self._active, self._read))
        return bool(closed)

    def _retract(self, statement: DatedStatement) -> None:
        """The value never held."""
        for span in self.spans:
            if span.value == statement.value and span.status != "invalidated":
                span.status, span.replaced_by = "invalidated", None
                span.end_us = statement.at_us if span.end_us is None else span.end_us
        spans = (self._active, self._read)
        self._active, self._read = (None if span and span.value == statement.value else span for span in spans)
