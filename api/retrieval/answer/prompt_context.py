"""Prompt context: fits items to a token budget and renders them as Markdown, as a preamble or as JSON.

Stable items come first, ages are in days and lines do not depend on each other, so the same memory renders to the same
bytes for a whole day and a provider's prompt cache can reuse them. Only the preamble, which belongs to one message,
names the time of day (`002`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import orjson
from msgspec.structs import replace

from recollect.api.retrieval.answer.best_sentences import best_sentences
from recollect.api.retrieval.answer.rendered_dates import RenderContext, day, month, with_dates
from recollect.api.retrieval.contract.request import Format
from recollect.api.retrieval.contract.result import Item, Later
from recollect.events.envelope import rfc3339
from recollect.events.local_time import fixed_zone, local_time
from recollect.projections.queries.queried_episodes import NamedDate
from recollect.projections.text.prompt_fence import fence, single_line
from recollect.projections.text.tokens import estimate_tokens

#: Tokens of the fence, the headings and the current day.
_FRAME_TOKENS = 85
#: Confidence under which a fact or a relationship is rendered with it: what is certain enough needs no number.
_CERTAIN_MIN = 0.7
#: Probability under which a standing instruction that was read in a message is shown as a possible one: in 32 unseen
#: conversations 30 of 34 from it on were instructions, and 25 of 40 below; of held-out lines 112 of 127 and 37 of 77.
CERTAIN_RULE_MIN = 0.8
#: Tokens to which a long message is shortened in a passive context: its best sentences. An assistant's answer can have
#: thousands, and the context of a turn is not asked for.
PASSIVE_LINE_TOKENS = 75
#: How many times as long a message is that is still shown whole: cutting off the end of one saves little.
_WHOLE_LINE_FACTOR = 1.5
#: Tokens of a shortened line, at least, so that it keeps a readable sentence: its day and its speaker take 21.
_TEXT_TOKENS_MIN = 34
#: The share that a long line may take of the tokens which the better ones leave. Equal parts for all lines leave little
#: of the best ones: figures in `docs/benchmarks.md`.
_LINE_SHARE = 0.25
#: Messages behind a fact whose dates are shown.
DATED_SOURCES_MAX = 4

Category = Literal["profile", "referenced", "history", "related", "procedures"]
#: The order in which categories fill their shares.
_PRIORITY: tuple[Category, ...] = ("profile", "referenced", "history", "procedures", "related")
#: The share of the token budget that is reserved for each category (`000`, section 4): the profile and preferences;
#: facts, entities and documents; episodes, and observations of the running conversation; relationships; procedures.
#: What one category leaves, the others may use.
CONTEXT_SHARES: Mapping[Category, float] = {
    "profile": 0.15,
    "referenced": 0.30,
    "history": 0.30,
    "related": 0.15,
    "procedures": 0.10,
}


class Line(NamedTuple):
    """One item as a line of the context."""

    item: Item
    category: Category
    #: The list mark, and the date and the speaker of an episode.
    prefix: str
    #: The text after the prefix.
    words: str
    #: What is noted behind it.
    notes: str
    #: The estimated tokens of the line and its line break.
    tokens: int
    #: The dates that its messages name; None: they were not read yet.
    named_dates: Sequence[NamedDate] | None
    #: Whether the days of its dates are in the text, or the text is shortened.
    is_final: bool = False

    @property
    def body(self) -> str:
        """Return the line without its prefix."""
        return self.words + self.notes

    @property
    def text(self) -> str:
        """Return the line of the Markdown context."""
        return self.prefix + self.body

    def with_words(self, words: str) -> Line:
        """Return the line with another text, which is final."""
        return self._counted(words, self.notes)._replace(is_final=True)

    def with_notes(self, notes: str) -> Line:
        """Return the line with other notes."""
        return self._counted(self.words, notes)

    def _counted(self, words: str, notes: str) -> Line:
        if (words, notes) == (self.words, self.notes):
            return self
        return self._replace(words=words, notes=notes, tokens=_line_tokens(self.prefix + words + notes))


def _line_tokens(text: str) -> int:
    """Return the estimated tokens of a line and its line break."""
    return estimate_tokens(text) + 1


def category_of(item: Item) -> Category:
    """Return the category of an item."""
    if item.kind == "preference" or "profile" in item.ranks:
        return "profile"
    if item.kind == "procedure":
        return "procedures"
    if item.kind == "episode":
        return "history"
    return "related" if item.kind == "relationship" else "referenced"


def fit_to_budget(
    items: Sequence[Item],
    budget_tokens: int,
    words: Collection[str],
    render_context: RenderContext,
    *,
    line_tokens_max: int | None = None,
) -> list[Line]:
    """Return the lines of the items that fit into the token budget together, in the order of `items`.

    Each category first fills its own share by rank; the rest of the budget is filled by rank across categories. When
    the lines exceed the budget, each long text is cut to the sentences with most words of the query: to a quarter of
    what the better ones leave, or to an equal part where that is more. The profile comes first.

    Parameters:
        items: best first.
        words: the words of the query.
        line_tokens_max: tokens to which a long message or summary is shortened; None: all are shown whole.
    """
    remaining_tokens = budget_tokens - _FRAME_TOKENS
    lines = _beside_later([_line(item, render_context) for item in items])
    if line_tokens_max is not None:
        whole_max = _WHOLE_LINE_FACTOR * line_tokens_max
        lines = [
            _fitted(line, line_tokens_max, words) if line.item.kind == "episode" and line.tokens > whole_max else line
            for line in lines
        ]
    if sum(line.tokens for line in lines) <= remaining_tokens:
        lines = [_dated(line) for line in lines]
    if sum(line.tokens for line in lines) > remaining_tokens:
        lines = _shortened_by_rank(lines, remaining_tokens, words)
    chosen: dict[int, Line] = {}
    source_tokens = dict.fromkeys(map(_source, items), max(0, remaining_tokens))
    if len(source_tokens) > 1:
        # No source fills more than half of a context in which others have something to say, or one short line.
        part = max(_TEXT_TOKENS_MIN, remaining_tokens // 2)
        source_tokens = dict.fromkeys(source_tokens, part)
        lines = [_fitted(line, part, words) for line in lines]

    def choose(index: int, line: Line) -> int:
        """Choose a line, and return its tokens."""
        nonlocal remaining_tokens
        chosen[index] = line
        remaining_tokens -= line.tokens
        source_tokens[_source(line.item)] -= line.tokens
        return line.tokens

    for category in _PRIORITY:
        share_tokens = min(remaining_tokens, int(CONTEXT_SHARES[category] * budget_tokens))
        for index, line in enumerate(lines):
            if line.category == category and line.tokens <= min(share_tokens, source_tokens[_source(line.item)]):
                share_tokens -= choose(index, line)
    for index, line in enumerate(lines):
        if index not in chosen and line.tokens <= min(remaining_tokens, source_tokens[_source(line.item)]):
            choose(index, line)
    return _beside_later([chosen[index] for index in sorted(chosen)])


def _shortened_by_rank(lines: Sequence[Line], tokens: int, words: Collection[str]) -> list[Line]:
    """Return the lines in their order, each long one cut to its part of the tokens that the better ones leave."""
    fitted = list(lines)
    best_first = sorted(range(len(lines)), key=lambda index: lines[index].category != "profile")
    for place, index in enumerate(best_first):
        part = max(_LINE_SHARE, 1 / (len(lines) - place))
        fitted[index] = _fitted(lines[index], max(_TEXT_TOKENS_MIN, int(part * tokens)), words)
        tokens -= fitted[index].tokens
    return fitted


def _source(item: Item) -> tuple[str, str, str]:
    """Return the source of an item: a document or a tool as a whole, or the memory itself."""
    if item.kind == "document":
        return (item.namespace, "document", item.id.rpartition("#")[0])
    if item.provenance == "tool":
        return (item.namespace, "tool", item.speaker or "")
    return (item.namespace, item.kind, item.id)


def render_within_budget(
    lines: Sequence[Line],
    observations: Sequence[str],
    form: Format,
    budget_tokens: int,
    render_context: RenderContext,
) -> tuple[list[Line], str]:
    """Return the lines that fit and the rendered context, which never exceeds the budget including headings.

    The oldest observations over the share of `history` are removed first, then the last lines, then the profile.
    """
    fitting, remaining_observations = list(lines), list(observations)
    observation_tokens = sum(map(estimate_tokens, remaining_observations))
    history_tokens = CONTEXT_SHARES["history"] * budget_tokens
    while fitting or remaining_observations:
        context = render(fitting, remaining_observations, form, render_context)
        rendered_tokens = estimate_tokens(context)
        if rendered_tokens <= budget_tokens:
            return fitting, context
        # A line of JSON, with its sources, takes several times the tokens of the line.
        line_tokens = sum(line.tokens for line in fitting) + observation_tokens
        excess_tokens = (rendered_tokens - budget_tokens) * line_tokens / rendered_tokens
        while excess_tokens > 0 and (fitting or remaining_observations):
            if remaining_observations and (not fitting or observation_tokens > history_tokens):
                tokens = estimate_tokens(remaining_observations.pop(0))
                observation_tokens -= tokens
                excess_tokens -= tokens + 1
            else:
                removable = [index for index, line in enumerate(fitting) if line.category != "profile"]
                excess_tokens -= fitting.pop(removable[-1] if removable else -1).tokens
    return [], ""


def render(lines: Sequence[Line], observations: Sequence[str], form: Format, render_context: RenderContext) -> str:
    """Return the context; empty without lines and observations."""
    if not lines and not observations:
        return ""
    return _FORMS[form](_beside_later(lines), observations, render_context)


def _markdown(lines: Sequence[Line], observations: Sequence[str], render_context: RenderContext) -> str:
    """Return the context as Markdown (`000`, section 5)."""
    parts = [render_context.today_line()]
    ordered = _in_order(lines)
    recent = [line for line in ordered if "session" in line.item.ranks]
    history = [line for line in ordered if "session" not in line.item.ranks]
    sections: tuple[tuple[str, list[str]], ...] = (
        ("### Preferences", _texts(ordered, "profile")),
        ("### Known Context", _texts(ordered, "referenced", "related")),
        ("### Learned Procedures", _texts(ordered, "procedures")),
        ("### Recent Sessions", _texts(recent, "history")),
        ("### Conversation So Far", [f"- {single_line(text)}" for text in observations]),
        ("### Relevant History", _texts(history, "history")),
    )
    for heading, texts in sections:
        parts += [heading, *texts] if texts else []
    return fence(parts, render_context.random_part)


def _texts(lines: Sequence[Line], *categories: Category) -> list[str]:
    """Return the texts of the lines of some categories, in order."""
    return [line.text for line in lines if line.category in categories]


def _preamble(lines: Sequence[Line], observations: Sequence[str], render_context: RenderContext) -> str:
    """Return the context as a preamble: time, observations, recent memories, potentially relevant memories (`002`)."""
    parts = [render_context.time_line()]
    if observations:
        parts += ["[Conversation observations: compressed context from earlier in this conversation]"]
        parts += [f"- {single_line(text)}" for text in observations]
    standing = [line for line in _in_order(lines) if {"profile", "recent", "session"} & line.item.ranks.keys()]
    if standing:
        parts += ["[Recent memories: use these for context, pattern recognition, and continuity]"]
        parts += [_preamble_line(line, render_context) for line in standing]
    relevant = [line for line in lines if line not in standing]
    if relevant:
        parts += ["[Potentially relevant memories]"]
        parts += [_preamble_line(line, render_context) for line in relevant]
    return fence(parts, render_context.random_part)


def _preamble_line(line: Line, render_context: RenderContext) -> str:
    """Return a line of the preamble: when, what kind of memory, who said it; no score, which says how it was found."""
    item = line.item
    kind = item.kind if item.kind != "episode" else "message" if item.source_events == (item.id,) else "summary"
    speaker = f"{single_line(item.speaker)}: " if item.speaker else ""
    when = "" if item.is_undated else f"[{render_context.day_and_age(item.occurred_at_us, item.utc_offset)}] "
    return f"- {when}({kind}) {speaker}{line.body}"


def _json(lines: Sequence[Line], observations: Sequence[str], render_context: RenderContext) -> str:
    """Return the context as JSON."""
    items = [
        {
            "category": line.category,
            "kind": line.item.kind,
            "when": None if line.item.is_undated else rfc3339(line.item.occurred_at_us, line.item.utc_offset),
            "day": None
            if line.item.is_undated
            else render_context.day_and_age(line.item.occurred_at_us, line.item.utc_offset),
            "speaker": None if line.item.speaker is None else single_line(line.item.speaker),
            "text": line.body,
            "sources": line.item.source_events,
        }
        for line in _in_order(lines)
    ]
    content = {
        "items": items,
        "observations": [single_line(text) for text in observations],
        "today": render_context.today_line(),
    }
    # A JSON reader gives the signs back; a reader of the text sees no tag but those of the fence.
    encoded = orjson.dumps(content).decode().replace("<", "\\u003c").replace(">", "\\u003e")
    return fence([encoded], render_context.random_part)


_FORMS = {"markdown": _markdown, "preamble": _preamble, "json": _json}


def _in_order(lines: Sequence[Line]) -> list[Line]:
    """Return the lines by category, oldest first, so that a new memory changes few of the lines before it.

    What has no date comes before what has one: the day of its import is not news. A profile keeps its topics.
    """

    def place(line: Line) -> tuple[Any, ...]:
        item = line.item
        return (
            line.category,
            item.ranks.get("topic", 0),
            0 if item.is_undated else item.occurred_at_us,
            item.id,
            item.namespace,
        )

    return sorted(lines, key=place)


def _line(item: Item, render_context: RenderContext) -> Line:
    """Return the line of an item."""
    prefix = "- "
    if item.kind == "episode":
        day = render_context.day_and_age(item.occurred_at_us, item.utc_offset)
        prefix = f"- [{day}] {single_line(item.speaker or '')}: "
    dates = render_context.dates_of(item.namespace, item.source_events[:DATED_SOURCES_MAX])
    words, notes = single_line(item.text), _notes(item)
    return Line(item, category_of(item), prefix, words, notes, _line_tokens(prefix + words + notes), dates)


def _dated(line: Line) -> Line:
    """Return a line with the days of the dates in its message or fact after their words."""
    if line.is_final:
        return line
    item = line.item
    # The words of several messages count from several times, so only the dates that were read in them are shown.
    is_message = item.kind == "episode" and (item.source_events == (item.id,) or line.named_dates is not None)
    sent_at_us = item.occurred_at_us if is_message else item.stated_at_us
    # Who said it is not part of the words whose dates are read.
    lead = f"{single_line(item.speaker)} said: " if item.kind == "fact" and item.speaker is not None else ""
    words = line.words.removeprefix(lead)
    if sent_at_us is not None:
        words = with_dates(words, local_time(sent_at_us, fixed_zone(item.utc_offset)), line.named_dates)
    return line.with_words(f"{lead}{words}")


def _beside_later(lines: Sequence[Line]) -> list[Line]:
    """Return the lines; one whose message said later is a line of its own says no more than its words.

    Both have their days. That the later one ends or replaces the other is a guess, which the reader makes better. A
    preference has no day, and a rule would be followed. A correction is no guess: it is a fact and not a message.
    """
    shown = {line.item.id for line in lines if line.item.kind == "episode"}

    def notes(item: Item) -> str:
        is_beside = item.later is not None and item.later.source_event in shown and item.kind != "preference"
        return _notes(replace(item, later=None) if is_beside else item)

    return [line if line.item.later is None else line.with_notes(notes(line.item)) for line in lines]


def _later_note(later: Later) -> str:
    """Return what was said later with its day."""
    return f'later, {day(later.at_us, later.utc_offset)}: "{single_line(later.text)}"'


def _notes(item: Item) -> str:
    """Return the notes on an item: what was said later, since when it holds, when it was said, how certain it is."""
    notes: list[str] = []
    if item.replaced_by is not None:
        notes.append(f"outdated: replaced by {single_line(item.replaced_by)}")
    elif item.contradicted_by is not None:
        notes.append(f"contradicted by {single_line(item.contradicted_by)}")
    elif item.valid_until_us is not None and item.outdated:
        notes.append(f"until {day(item.valid_until_us, item.utc_offset)}")
    elif item.unconfirmed_since_us is not None:
        notes.append(f"not confirmed since {day(item.unconfirmed_since_us, item.utc_offset)}")
    elif item.valid_from_us is not None:
        notes.append(f"since {month(item.valid_from_us, item.utc_offset)}")
    elif item.stated_at_us is not None:
        notes.append(f"said {day(item.stated_at_us, item.utc_offset)}")
    if item.later is not None:
        notes.append(_later_note(item.later))
    if item.kind in ("fact", "relationship") and item.confidence < _CERTAIN_MIN:
        notes.append(f"confidence: {item.confidence:.2f}")
    if item.is_read_rule and item.confidence < CERTAIN_RULE_MIN:
        notes.append("perhaps an instruction")
    return f" ({'; '.join(notes)})" if notes else ""


def _fitted(line: Line, tokens_max: int, words: Collection[str]) -> Line:
    """Return a line of at most `tokens_max` tokens, with the days of its dates if it is whole."""
    # Finding dates takes longer than counting: a line that is too long without their explanation needs none.
    if line.tokens <= tokens_max:
        line = _dated(line)
    return line if line.tokens <= tokens_max else _shortened(line, tokens_max, words)


def _shortened(line: Line, tokens_max: int, words: Collection[str]) -> Line:
    """Return a line of at most `tokens_max` tokens: the sentences with most words of the query."""
    remaining_tokens = tokens_max - estimate_tokens(line.prefix + line.notes) - 3
    return line.with_words(f"{best_sentences(line.item.text, line.item.short, words, remaining_tokens)} …")
