"""LLM rereading: reads all messages of a namespace again with a language model, and shows and stores the difference.

Nothing is stored until the difference is switched on, so a cancelled reading leaves nothing. Switching appends events
that exist already: statements that the new reading lacks are invalidated, its own are extracted, and those that an
earlier switch invalidated are restored. What the rules or users stated stays, and what users changed or pinned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from recollect.events.backends.log import EventLog
from recollect.events.envelope import EventDraft, RecordedEvent
from recollect.events.errors import InvalidInput
from recollect.events.memory_kinds import ID_LETTERS
from recollect.events.progress import OnPartProgress, no_progress
from recollect.jobs.derivation.append_derived import append_derived
from recollect.jobs.derivation.event_drafts import REPLACED_ID, reading_replaced, reading_restored
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.extraction.extraction_job import LLM_CURSOR, RULES
from recollect.jobs.extraction.rule_extractor import ExtractedItem, Item, sources_of
from recollect.jobs.llm.model_client import LlmClient
from recollect.jobs.llm_reading.item_merge import shared_words
from recollect.jobs.llm_reading.reading_job import ReadItems, next_window, read_items, reading_event
from recollect.projections.queries.snapshot import Snapshot

#: The lists of `facts.extracted` that models read.
_LISTS = ("facts", "preferences")
_EVENTS_READ = 1_000
#: Similarity of the words from which a statement is another wording of an earlier one, and from which it may be what a
#: user has forgotten or corrected.
_CHANGED_MIN, _TOUCHED_MIN = 0.6, 0.3


class Rereading(Struct, frozen=True, kw_only=True):
    """The difference of a new reading from the earlier ones; each statement has `kind` and `text`."""

    namespace: str
    model: str
    #: Messages that were read.
    messages: int
    added: list[Mapping[str, str]]
    removed: list[Mapping[str, str]]
    #: Each with `before`, the text that it replaces.
    changed: list[Mapping[str, str]]
    #: Statements that both have.
    same: int
    #: Appended events; 0 unless it was switched on.
    events: int = 0


class _Earlier(Struct, kw_only=True):
    """A statement of an earlier reading by a language model."""

    id: str
    item: Item
    #: Whether it holds, and only models have stated it and no user has changed or pinned it.
    is_own: bool
    #: The event of a switch that invalidated it.
    replaced_by: str | None
    is_paired: bool = False

    def match(self, item: Item) -> float:
        """Return how much of the words of `item` it has; 1 for the same text, 0 when they cannot be the same."""
        if _text(self.item).casefold() == _text(item).casefold():
            return 1.0
        if self.replaced_by is not None or set(sources_of(self.item)).isdisjoint(sources_of(item)):
            return 0.0
        share = shared_words(self.item, item)
        return share if share >= (_CHANGED_MIN if self.is_own else _TOUCHED_MIN) else 0.0


def read_again(
    context: JobContext,
    llm: LlmClient,
    namespace: str,
    *,
    switch: bool = False,
    on_progress: OnPartProgress = no_progress,
) -> Rereading:
    """Read all messages of a namespace again; return what the reading states otherwise than the earlier ones.

    Parameters:
        switch: append the events that make it the current reading.

    Raises:
        InvalidInput: the model gave no answer; nothing is stored.
    """
    windows, messages, through = _read_all(context, llm, namespace, on_progress)
    difference = Rereading(
        namespace=namespace, model=llm.name, messages=messages, added=[], removed=[], changed=[], same=0
    )

    def plan(snapshot: Snapshot) -> Sequence[EventDraft]:
        # What users changed while the model read is compared, too.
        nonlocal difference
        difference, drafts = _compared(context, difference, windows, through, snapshot)
        return drafts if switch else []

    events = append_derived(context, namespace, plan)
    return replace(difference, events=events)


def _read_all(
    context: JobContext, llm: LlmClient, namespace: str, on_progress: OnPartProgress
) -> tuple[list[ReadItems], int, int]:
    """Return what the model reads in each window, the number of messages, and the version of the last one."""
    context.catch_up(namespace)
    windows: list[ReadItems] = []
    messages = through = 0
    while True:
        # A snapshot for each window: a request may take minutes.
        with context.read_models.reading(namespace) as snapshot:
            window = list(next_window(context.log, namespace, through, snapshot))
            if not window:
                return windows, messages, through
            before, through = through, window[-1][0].version
            forgotten = snapshot.memory_ids.forgotten()
            window = [part for part in window if part[0].id not in forgotten]
            read = read_items(context, llm, namespace, window, snapshot, before, extractor=RULES) if window else None
        if window and read is None:
            raise InvalidInput(
                f"the model {llm.name} gave no usable answer after {messages} messages; nothing was changed",
                field="RECOLLECT_LLM",
            )
        windows += [read] if read is not None else []
        messages += sum(len(parts) for _, parts in window)
        on_progress("messages", messages, None)


def _compared(
    context: JobContext, difference: Rereading, windows: Sequence[ReadItems], through: int, snapshot: Snapshot
) -> tuple[Rereading, list[EventDraft]]:
    """Return the difference from the statements of now, and the events that switch the reading on."""
    earlier = list(_earlier_statements(context.log, difference.namespace, snapshot))
    again, at_us = f":again:{snapshot.version}", max((read.last.occurred_at_us for read in windows), default=0)
    shown = replace(difference, added=[], removed=[], changed=[], same=0)
    places: dict[str, list[_Earlier]] = {}
    for old in earlier:
        for key in {_text(old.item).casefold(), *sources_of(old.item)}:
            places.setdefault(key, []).append(old)
    same, replaced, stated = 0, list[EventDraft](), list[EventDraft]()
    cursor = max(through, snapshot.progress.job_cursor(LLM_CURSOR))
    for read in windows:
        new: list[ExtractedItem] = []
        for extracted in read.items:
            item = extracted.item
            keys = (_text(item).casefold(), *sources_of(item))
            near = ((old.match(item), old) for key in keys for old in places.get(key, ()))
            share, old = max(near, key=itemgetter(0), default=(0.0, None))
            if old is None or not share:
                shown.added.append(_shown(item))
                new.append(extracted)
                continue
            if old.is_paired:
                continue
            old.is_paired = True
            if old.replaced_by is not None:
                shown.added.append(_shown(old.item))
                stated.append(reading_restored(old.replaced_by, again, at_us))
            elif share < 1 and old.is_own:
                shown.changed.append({**_shown(item), "before": _text(old.item)})
                replaced.append(reading_replaced(old.id, difference.model, again, at_us))
                new.append(extracted)
            else:
                same += 1
        if new:
            added = read._replace(items=new)
            stated.append(reading_event(added, difference.model, llm_through=cursor, again=again))
    for old in earlier:
        if old.is_own and not old.is_paired:
            shown.removed.append(_shown(old.item))
            replaced.append(reading_replaced(old.id, difference.model, again, at_us))
    return replace(shown, same=same), [*replaced, *stated]


def _earlier_statements(log: EventLog, namespace: str, snapshot: Snapshot) -> Iterator[_Earlier]:
    """Yield what models have read so far, also what users have changed since."""
    items: dict[str, Item] = {}
    switched: dict[str, str] = {}
    for event in _events(log, namespace, snapshot.version):
        payload = event.data()
        if event.type == "facts.extracted" and payload["extractor"] != RULES:
            for kind in _LISTS:
                for number, item in enumerate(payload.get(kind, ())):
                    items[f"{event.id}#{ID_LETTERS[kind]}{number}"] = item
        elif event.type == "memory.invalidated" and event.id.startswith(REPLACED_ID):
            switched[payload["memory_id"]] = event.id
        elif event.type == "edit.undone":
            switched = {id: by for id, by in switched.items() if by != payload["event_id"]}
    current = {item.id: item for item in snapshot.knowledge.items() if item.kind in ("fact", "preference")}
    sources: dict[str, set[str]] = {}
    for item in items.values():
        sources.setdefault(_text(item).casefold(), set()).update(sources_of(item))
    for id, item in items.items():
        row = current.get(id)
        by_models = sources[_text(item).casefold()]
        is_own = row is not None and not row.pinned and by_models.issuperset(row.source_events)
        yield _Earlier(id=id, item=item, is_own=is_own, replaced_by=switched.get(id))


def _events(log: EventLog, namespace: str, version: int) -> Iterator[RecordedEvent]:
    after = 0
    while after < version:
        events = log.read(namespace, after=after, limit=min(_EVENTS_READ, version - after))
        yield from events
        after = events[-1].version if events else version


def _text(item: Item) -> str:
    """Return what an item says."""
    parts = item.get("statement") or item.get("value") or f"{item['subject']} {item['predicate']} {item['object']}"
    return str(parts)


def _shown(item: Item) -> dict[str, str]:
    """Return the kind and the text of an item."""
    kind = item.get("statement_kind", "rule") if "object" in item else "rule"
    return {"kind": item.get("type", kind) if kind == "other" else kind, "text": _text(item)}
