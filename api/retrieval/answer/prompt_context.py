"""The text that goes into a prompt: what was found, fitted to a token budget and written in one of three forms.

What changes least comes first, dates are absolute and lines stand alone, so unchanged memory renders to unchanged
bytes, and a provider's prompt cache is of use.
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

#: What fence and headings take.
_FRAME_TOKENS = 40
#: A text is never cut shorter than this.
_TEXT_TOKENS_MIN = 24

Category = Literal["profile", "referenced", "history", "related", "procedures"]
#: The share of the budget that each category has for itself (`000`, section 4). What one leaves, the others may use.
SHARES: dict[Category, float] = {
    "profile": 0.15,
    "referenced": 0.30,
    "history": 0.30,
    "related": 0.15,
    "procedures": 0.10,
}
#: Who comes first when all want more than their share.
_PRIORITY: tuple[Category, ...] = ("profile", "referenced", "history", "procedures", "related")


@dataclass(frozen=True, slots=True)
class Line:
    """One item as it stands in the context."""

    item: Item
    category: Category
    text: str

    @property
    def tokens(self) -> int:
        """Return its tokens, with one for the line's end."""
        return estimate_tokens(self.text) + 1


def category_of(item: Item) -> Category:
    """Return what an item counts as."""
    if item.kind == "preference" or "profile" in item.ranks:
        return "profile"
    if item.kind == "procedure":
        return "procedures"
    if item.kind == "episode":
        return "history"
    return "related" if item.kind == "relationship" else "referenced"


def fit_to_budget(items: Sequence[Item], budget_tokens: int, words: Collection[str]) -> list[Line]:
    """Return the lines of those of `items`, best first, that fit into the budget together.

    Parameters:
        words: those of the query.

    Each category first fills its own share, by rank; what is left over goes by rank whatever the category. A text that
    is too long for what is left is cut to the sentences that share most with the query.
    """
    remaining_tokens = budget_tokens - _FRAME_TOKENS
    lines = [Line(item, category_of(item), _line(item, words, budget_tokens // 4)) for item in items]
    total_tokens = sum(line.tokens for line in lines)
    if total_tokens > remaining_tokens and lines:
        # Everything shorter rather than anything missing.
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
    """Return the lines that stand in the context, and the context: never over the budget, headings and all.

    What goes first are observations over their share, the oldest; then lines, the last ones, the profile at the end.
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
    """Return the context; empty when there is nothing to say."""
    if not lines and not observations:
        return ""
    return _FORMS[form](lines, observations)


def _markdown(lines: Sequence[Line], observations: Sequence[str]) -> str:
    """`000`, section 5."""
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
    """`002`: observations, recent memories, potentially relevant ones."""
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
    """Return lines so that new memories change as few of those before them as can be: the oldest first."""
    return sorted(lines, key=lambda line: (line.category, line.item.occurred_at_us, line.item.id, line.item.namespace))


def _timestamp(item: Item) -> str:
    return f"[{rfc3339(item.occurred_at_us)[:16].replace('T', ' ')}]"


def _text_of(line: Line) -> str:
    """Return a line without what `_head` put before it."""
    return line.text.removeprefix(_prefix(line.item))


def _prefix(item: Item) -> str:
    if item.kind == "episode":
        return f"- [{rfc3339(item.occurred_at_us)[:10]}] {single_line(item.speaker or '')}: "
    return "- "


def _line(item: Item, words: Collection[str], tokens_max: int) -> str:
    confidence = f" (confidence: {item.confidence:.2f})" if item.kind in ("fact", "relationship") else ""
    line = f"{_prefix(item)}{single_line(item.text)}{_validity(item)}{confidence}"
    if item.sources:
        line = "\n".join([line, *_source_lines(item, words, tokens_max - estimate_tokens(line))])
    return line


def _validity(item: Item) -> str:
    """Return the mark of a memory that is no longer true, or was not confirmed for long, which is no contradiction."""
    if item.outdated:
        return " (no longer true)"
    if item.unconfirmed_since_us is not None:
        return f" (not confirmed since {rfc3339(item.unconfirmed_since_us)[:10]})"
    return ""


def _source_lines(item: Item, words: Collection[str], tokens_max: int) -> list[str]:
    """Return the words behind a summary that fit, in order; chosen by the words they share with the query."""
    query_words = set(words)
    lines = [f"  - {single_line(source.speaker)}: {single_line(source.text)}" for source in item.sources]
    shared_words = [len(query_words & content_words(line)) for line in lines]
    chosen: set[int] = set()
    for index in sorted(range(len(lines)), key=lambda index: (-shared_words[index], index)):
        tokens = estimate_tokens(lines[index]) + 1
        if tokens <= tokens_max:
            chosen.add(index)
            tokens_max -= tokens
    return [lines[index] for index in sorted(chosen)]


def _shortened(line: Line, tokens_max: int, words: Collection[str]) -> Line:
    """Return a line in at most so many tokens: the sentences that share most with the query, in order."""
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
