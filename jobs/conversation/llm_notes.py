"""LLM notes: observes and reflects with a language model, and checks each note against what was said."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from recollect.events.late_pattern import late_pattern
from recollect.jobs.llm.conversation_lines import source_lines, turn_lines
from recollect.jobs.llm.grounding import SENTENCE_SHARE_MIN, SourceEvidence, SourceLine
from recollect.jobs.llm.model_client import LlmClient
from recollect.projections.queries.queried_episodes import EpisodeRow
from recollect.projections.text.tokens import estimate_tokens

#: Tokens of the lines that one request reads.
_REQUEST_TOKENS_MAX = 6_000
#: The time of a note that has no date: no date of its text counts from it.
_UNDATED = datetime(1970, 1, 1, tzinfo=UTC)
#: Share of the allowed tokens that condensed notes have at least; fewer would lose most of the notes they replace.
_REFLECTED_SHARE_MIN = 0.2
#: The date of a note: `[2026-01-05] Ann …`.
_DATE = late_pattern(r"^\[(\d{4}-\d\d-\d\d)\] ")


#: A note of an answer: `12: Ann …`, also with brackets or a dash.
_NOTE = late_pattern(r"^\W{0,3}(\d{1,4})\W{1,3}(\S.{0,499})$")
#: Notes of one answer.
_NOTES_MAX = 100


class _Note(NamedTuple):
    """A note, with the number of its line."""

    line: int
    text: str


def _parse_notes(answer: str) -> list[_Note] | None:
    """Return the notes of an answer; None when it has none."""
    matches = (_NOTE.match(line.strip()) for line in answer.splitlines()[:_NOTES_MAX])
    return [_Note(int(match[1]), match[2]) for match in matches if match is not None] or None


def turns_of_request(turns: Sequence[EpisodeRow]) -> list[EpisodeRow]:
    """Return the first turns that fit in one request; at least one."""
    tokens = 0
    for count, line in enumerate(turn_lines(turns)):
        tokens += estimate_tokens(line)
        if count and tokens > _REQUEST_TOKENS_MAX:
            return list(turns[:count])
    return list(turns)


def observe_by_llm(llm: LlmClient, namespace: str, turns: Sequence[EpisodeRow], tokens_max: int) -> list[str] | None:
    """Return the model's notes on `turns`, each with its date; None without a grounded note."""
    lines = [f"[{number}] {line}" for number, line in enumerate(turn_lines(turns), start=1)]
    answer = llm.ask(namespace, "observe", lines, _parse_notes)
    if answer is None:
        return None
    dates = [f"{turn.sent_at:%Y-%m-%d}" for turn in turns]
    return _grounded(answer, SourceEvidence(source_lines(turns)), dates, tokens_max) or None


def reflect_by_llm(llm: LlmClient, namespace: str, notes: Sequence[str], tokens_max: int) -> list[str] | None:
    """Return the model's condensed notes; None when they are not grounded, or lose most of the notes."""
    if sum(map(estimate_tokens, notes)) > _REQUEST_TOKENS_MAX:
        return None
    lines = [f"[{number}] {note}" for number, note in enumerate(notes, start=1)]
    answer = llm.ask(namespace, "reflect", lines, _parse_notes, tokens_max=tokens_max)
    if answer is None:
        return None
    dates = [match[1] if (match := _DATE.match(note)) else "" for note in notes]
    evidence = SourceEvidence([SourceLine("", note, _moment(date)) for note, date in zip(notes, dates, strict=True)])
    condensed = _grounded(answer, evidence, dates, tokens_max)
    is_enough = sum(map(estimate_tokens, condensed)) >= _REFLECTED_SHARE_MIN * tokens_max
    return condensed if is_enough else None


def _grounded(answer: Sequence[_Note], evidence: SourceEvidence, dates: Sequence[str], tokens_max: int) -> list[str]:
    """Return the notes that the evidence grounds, in the order of their lines, within `tokens_max`.

    Parameters:
        dates: the date of each line; empty without one.
    """
    notes: list[str] = []
    for note in sorted(answer, key=lambda note: note.line):
        text = _DATE.sub("", note.text)
        if not 0 < note.line <= len(dates) or not evidence.grounds(text, SENTENCE_SHARE_MIN):
            continue
        date = dates[note.line - 1]
        line = f"[{date}] {text}" if date else text
        tokens_max -= estimate_tokens(line)
        if tokens_max < 0:
            break
        if line not in notes:
            notes.append(line)
    return notes


def _moment(date: str) -> datetime:
    return datetime.fromisoformat(date).replace(tzinfo=UTC) if date else _UNDATED
