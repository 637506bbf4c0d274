"""Prompt context: fits items to a token budget and renders them as Markdown, as a preamble or as JSON.

Stable items come first, dates are absolute and lines do not depend on each other, so the same memory renders to the
same bytes and a provider's prompt cache can reuse them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from recollect.api.retrieval.contract.request import Format
from recollect.api.retrieval.contract.result import Item
from recollect.events.envelope import rfc3339
from recollect.projections.text.prompt_fence import fence, single_line
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.tokens import cut_at_word, estimate_tokens
from recollect.projections.text.words import content_words

#: Tokens of the fence and the headings.
_FRAME_TOKENS = 40
#: Tokens of a shortened line, at least, so that it keeps a readable sentence.
_TEXT_TOKENS_MIN = 24

Category = Literal["profile", "referenced", "history", "related", "procedures"]
#: The share of the token budget that is reserved for each category (`000`, section 4); others may use its rest.
SHARES: dict[Category, float] = {
    "profile": 0.15,
    "referenced": 0.30,
    "history": 0.30,
    "related": 0.15,
    "procedures": 0.10,
}
#: The order in which categories fill their shares.
_PRIORITY: tuple[Category, ...] = ("profile", "referenced", "history", "procedures", "related")


@dataclass(frozen=True, slots=True)
class Line:
    """One item as a line of the context."""

    item: Item
    category: Category
    text: str

    @property
    def tokens(self) -> int:
        """Return the estimated tokens of the line and its line break."""
        return estimate_tokens(self.text) + 1


def category_of(item: Item) -> Category:
    """Return the category of an item."""
    if item.kind == "preference" or "profile" in item.ranks:
        return "profile"
    if item.kind == "procedure":
        return "procedures"
    if item.kind == "episode":
        return "history"
    return "related" if item.kind == "relationship" else "referenced"


def fit_to_budget(items: Sequence[Item], budget_tokens: int, words: Collection[str]) -> list[Line]:
    """Return the lines of the items that fit into the token budget together, in the order of `items`.

    Each category first fills its own share by rank; the rest of the budget is filled by rank across categories. When
    the lines exceed the budget, each long text is cut to the sentences with most words of the query.

    Parameters:
        items: best first.
        words: the words of the query.
    """
    remaining_tokens = budget_tokens - _FRAME_TOKENS
    lines = [Line(item, category_of(item), _line(item)) for item in items]
    total_tokens = sum(line.tokens for line in lines)
    if total_tokens > remaining_tokens and lines:
        # Shorten all lines before any item is left out.
        lines = [_shortened(line, max(_TEXT_TOKENS_MIN, remaining_tokens // len(lines)), words) for line in lines]
    chosen: dict[int, Line] = {}
    for category in _PRIORITY:
        share_tokens = min(remaining_tokens, int(SHARES[category] * budget_tokens))
        for index, line in enumerate(lines):
            if line.category == category and line.tokens <= share_tokens:
                chosen[index] = line
                share_tokens -= line.tokens
                remaining_tokens -= line.tokens
    for index, line in enumerate(lines):
        if index not in chosen and line.tokens <= remaining_tokens:
            chosen[index] = line
            remaining_tokens -= line.tokens
    return [chosen[index] for index in sorted(chosen)]


def render_within_budget(
    lines: Sequence[Line], observations: Sequence[str], form: Format, budget_tokens: int
) -> tuple[list[Line], str]:
    """Return the lines that fit and the rendered context, which never exceeds the budget including headings.

    The oldest observations over the share of `history` are removed first, then the last lines, then the profile.
    """
    fitting, remaining_observations = list(lines), list(observations)
    observation_tokens = sum(map(estimate_tokens, remaining_observations))
    while fitting or remaining_observations:
        context = render(fitting, remaining_observations, form)
        excess_tokens = estimate_tokens(context) - budget_tokens
        if excess_tokens <= 0:
            return fitting, context
        while excess_tokens > 0 and (fitting or remaining_observations):
            if remaining_observations and (not fitting or observation_tokens > SHARES["history"] * budget_tokens):
                tokens = estimate_tokens(remaining_observations.pop(0))
                observation_tokens -= tokens
                excess_tokens -= tokens + 1
            else:
                removable = [index for index, line in enumerate(fitting) if line.category != "profile"]
                excess_tokens -= fitting.pop(removable[-1] if removable else -1).tokens
    return [], ""


def render(lines: Sequence[Line], observations: Sequence[str], form: Format) -> str:
    """Return the context; empty without lines and observations."""
    if not lines and not observations:
        return ""
    return _FORMS[form](lines, observations)


def _markdown(lines: Sequence[Line], observations: Sequence[str]) -> str:
    """Return the context as Markdown (`000`, section 5)."""
    parts: list[str] = []
    for heading, categories in (
        ("### Preferences", ("profile",)),
        ("### Known Context", ("referenced", "related")),
        ("### Learned Procedures", ("procedures",)),
        ("### Conversation So Far", ()),
        ("### Relevant History", ("history",)),
    ):
        if heading == "### Conversation So Far":
            written = [f"- {single_line(text)}" for text in observations]
        else:
            written = [line.text for line in _in_order(lines) if line.category in categories]
        parts += [heading, *written] if written else []
    return fence(parts)


def _preamble(lines: Sequence[Line], observations: Sequence[str]) -> str:
    """Return the context as a preamble: observations, recent memories, potentially relevant memories (`002`)."""
    parts: list[str] = []
    if observations:
        parts += ["[Conversation observations: compressed context from earlier in this conversation]"]
        parts += [f"- {single_line(text)}" for text in observations]
    standing = [line for line in _in_order(lines) if {"profile", "recent"} & line.item.ranks.keys()]
    if standing:
        parts += ["[Recent memories: use these for context, pattern recognition, and continuity]"]
        parts += [f"- {_timestamp(line.item)} ({line.item.kind}) {_text_of(line)}" for line in standing]
    relevant = [line for line in lines if line not in standing]
    if relevant:
        parts += ["[Potentially relevant memories]"]
        for line in relevant:
            parts.append(f"- {_timestamp(line.item)} ({line.item.kind}) {_text_of(line)} ({line.item.score:.0%} match)")
    return fence(parts)


def _json(lines: Sequence[Line], observations: Sequence[str]) -> str:
    """Return the context as JSON."""
    items = [
        {
            "category": line.category,
            "kind": line.item.kind,
            "when": rfc3339(line.item.occurred_at_us),
            "speaker": line.item.speaker,
            "text": _text_of(line),
            "sources": line.item.source_events,
        }
        for line in _in_order(lines)
    ]
    return fence([orjson.dumps({"items": items, "observations": observations}).decode()])


_FORMS = {"markdown": _markdown, "preamble": _preamble, "json": _json}


def _in_order(lines: Sequence[Line]) -> list[Line]:
    """Return the lines by category, oldest first, so that a new memory changes few of the lines before it."""
    return sorted(lines, key=lambda line: (line.category, line.item.occurred_at_us, line.item.id, line.item.namespace))


def _timestamp(item: Item) -> str:
    """Return the time of an item, to the minute, in brackets."""
    return f"[{rfc3339(item.occurred_at_us)[:16].replace('T', ' ')}]"


def _text_of(line: Line) -> str:
    """Return a line without its prefix."""
    return line.text.removeprefix(_prefix(line.item))


def _prefix(item: Item) -> str:
    """Return the list mark of a line, and the date and speaker of an episode."""
    if item.kind == "episode":
        return f"- [{rfc3339(item.occurred_at_us)[:10]}] {single_line(item.speaker or '')}: "
    return "- "


def _line(item: Item) -> str:
    """Return the text of an item's line."""
    confidence = f" (confidence: {item.confidence:.2f})" if item.kind in ("fact", "relationship") else ""
    return f"{_prefix(item)}{single_line(item.text)}{_validity(item)}{confidence}"


def _validity(item: Item) -> str:
    """Return the note on an outdated, contradicted or unconfirmed item; empty for other items."""
    if item.replaced_by is not None:
        return f" (outdated: replaced by {single_line(item.replaced_by)})"
    if item.contradicted_by is not None:
        return f" (contradicted by {single_line(item.contradicted_by)})"
    if item.outdated:
        return " (no longer true)"
    if item.unconfirmed_since_us is not None:
        return f" (not confirmed since {rfc3339(item.unconfirmed_since_us)[:10]})"
    return ""


def _shortened(line: Line, tokens_max: int, words: Collection[str]) -> Line:
    """Return a line of at most `tokens_max` tokens: the sentences with most words of the query, in order."""
    if line.tokens <= tokens_max:
        return line
    prefix, validity = _prefix(line.item), _validity(line.item)
    remaining_tokens = tokens_max - estimate_tokens(prefix + validity) - 3
    sentences = split_sentences(single_line(line.item.text)) or [""]
    query_words = set(words)
    by_shared_words = sorted(
        range(len(sentences)), key=lambda index: (-len(query_words & content_words(sentences[index])), index)
    )
    chosen: list[int] = []
    for index in by_shared_words:
        tokens = estimate_tokens(sentences[index]) + 1
        if tokens <= remaining_tokens:
            chosen.append(index)
            remaining_tokens -= tokens
    text = " … ".join(sentences[index] for index in sorted(chosen)) or cut_at_word(
        sentences[by_shared_words[0]], remaining_tokens
    )
    return replace(line, text=f"{prefix}{text} …{validity}")
