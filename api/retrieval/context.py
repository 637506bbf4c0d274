"""The text that goes into a prompt: what was found, fitted to a token budget.

The form is that of `000`, section 5: what is known about entities, then history. Dates are absolute, lines are in the
order of time and stand alone, so unchanged memory renders to unchanged bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.api.retrieval.result import Item
from recollect.events.envelope import rfc3339
from recollect.projections.fence import fenced, one_line
from recollect.projections.tokens import estimate_tokens
from recollect.projections.words import content_words

#: The part of the budget that one item may take; a longer text is cut.
_SHARE_MAX = 0.25
#: What fence and headings take.
_FRAME_TOKENS = 40


def fit(items: Sequence[Item], budget_tokens: int, query: str) -> list[tuple[Item, str]]:
    """Return those of `items`, best first, whose lines fit into the budget together, each with its lines.

    Parameters:
        query: of the words behind a summary, those that share most with it come in first.
    """
    fitting: list[tuple[Item, str]] = []
    left = budget_tokens - _FRAME_TOKENS
    for item in items:
        share = int(budget_tokens * _SHARE_MAX)
        line = _cut(_line(item), share)
        if item.sources:
            line = "\n".join([line, *_source_lines(item, query, share - estimate_tokens(line))])
        # One for the line's end.
        cost = estimate_tokens(line) + 1
        if cost <= left:
            fitting.append((item, line))
            left -= cost
    return fitting


def render(fitting: Sequence[tuple[Item, str]]) -> str:
    """Return the context; empty when there is nothing to say."""
    entities = sorted((item.id, line) for item, line in fitting if item.kind == "entity")
    episodes = sorted((item.occurred_at_us, item.id, line) for item, line in fitting if item.kind == "episode")
    lines: list[str] = []
    if entities:
        lines += ["### Known Context", *(line for *_, line in entities)]
    if episodes:
        lines += ["### Relevant History", *(line for *_, line in episodes)]
    return fenced(lines)


def _line(item: Item) -> str:
    if item.kind == "entity":
        return f"- {one_line(item.text)}"
    return f"- [{rfc3339(item.occurred_at_us)[:10]}] {one_line(item.speaker or '')}: {one_line(item.text)}"


def _source_lines(item: Item, query: str, tokens_max: int) -> list[str]:
    """Return the words behind a summary that fit, in order; chosen by the words they share with the query."""
    wanted = content_words(query)
    lines = [f"  - {one_line(source.speaker)}: {one_line(source.text)}" for source in item.sources]
    shared = [len(wanted & content_words(line)) for line in lines]
    chosen: set[int] = set()
    for at in sorted(range(len(lines)), key=lambda at: (-shared[at], at)):
        cost = estimate_tokens(lines[at]) + 1
        if cost <= tokens_max:
            chosen.add(at)
            tokens_max -= cost
    return [lines[at] for at in sorted(chosen)]


def _cut(line: str, tokens_max: int) -> str:
    """Return `line`, cut at a word when it is over `tokens_max`."""
    if estimate_tokens(line) <= tokens_max:
        return line
    kept = line.encode(errors="replace")[: 4 * tokens_max - 4].decode(errors="ignore")
    return f"{kept.rsplit(' ', 1)[0]} …"
