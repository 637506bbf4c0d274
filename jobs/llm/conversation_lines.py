"""Conversation lines: writes messages as lines that a language model reads, each with its time and speaker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.jobs.llm.grounding import SourceLine
from recollect.projections.queries.queried_episodes import EpisodeRow
from recollect.projections.text.tokens import cut_at_word, estimate_tokens

#: Tokens of one message; a longer one is mostly a pasted text.
_MESSAGE_TOKENS_MAX = 600


def label(sent_at: datetime, speaker: str, *, is_assistant: bool) -> str:
    """Return when and by whom a line was said: `Mon 2026-01-05 09:12 Ann: `."""
    role = " (assistant)" if is_assistant and speaker != "assistant" else ""
    return f"{sent_at:%a %Y-%m-%d %H:%M} {speaker}{role}: "


def turn_lines(turns: Sequence[EpisodeRow]) -> list[str]:
    """Return a line for each turn, without its number."""
    return [label(turn.sent_at, turn.speaker, is_assistant=turn.role == "assistant") + _text(turn) for turn in turns]


def source_lines(turns: Sequence[EpisodeRow]) -> list[SourceLine]:
    """Return the turns as the evidence for what a model writes about them."""
    return [SourceLine(turn.speaker, turn.line(), turn.sent_at) for turn in turns]


def _text(turn: EpisodeRow) -> str:
    text = turn.line()
    return text if estimate_tokens(text) <= _MESSAGE_TOKENS_MAX else f"{cut_at_word(text, _MESSAGE_TOKENS_MAX)} …"
