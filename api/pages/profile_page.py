"""Profile page: what is known about each person of a namespace as sentences by topic, and what changed last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from recollect.api.retrieval.profile import TOPIC_ORDER, is_shown_unasked, topic_of
from recollect.events.catalogue.knowledge_events import SAYS
from recollect.events.envelope import rfc3339
from recollect.events.errors import InvalidInput
from recollect.projections.queries.knowledge_items import KnowledgeItem
from recollect.projections.queries.profile_queries import Spoken, ValueChange
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.statement_lines import displayed_name

#: Default number of statements of an answer: more than a person reads, about 150 kB.
STATEMENTS = 500
#: Largest number of statements of an answer.
STATEMENTS_MAX = 2_000
#: Changes of values in one answer.
_CHANGES_MAX = 50
#: Facts and relationships of less confidence are marked as unsure; plain sentences of a user have 0.85 and more.
_SURE_MIN = 0.75
#: Changes that are read for the values of a past time.
_PAST_MAX = 2_000
_KINDS = ("fact", "relationship", "preference")
#: Instructions for every conversation have a topic of their own, the last one.
_RULE = "rule"


def profile_page(snapshot: Snapshot, limit: int, *, now_us: int, true_at_us: int | None = None) -> dict[str, Any]:
    """Return the statements that hold, by topic and the newest first, and the last changes of values.

    Of more than `limit` statements, the pinned and the newest ones are returned; `total` counts all.

    Parameters:
        now_us: what ended before is left out.
        true_at_us: the statements are those that were true then, with values that were replaced later.

    Raises:
        InvalidInput: `limit` is not from 1 to 2,000.
    """
    if not 1 <= limit <= STATEMENTS_MAX:
        raise InvalidInput(f"give a number from 1 to {STATEMENTS_MAX:,}", field="limit")
    changes = snapshot.profile.changes(_CHANGES_MAX if true_at_us is None else _PAST_MAX)
    items = [item for item in snapshot.knowledge.items() if item.kind in _KINDS and _is_shown(item)]
    past = [] if true_at_us is None else [change for change in changes if _was_true(change, true_at_us)]
    spoken = snapshot.profile.spoken({source for memory in (*items, *past) for source in memory.source_events[:1]})
    names = snapshot.profile.names({item.entities[0] for item in items if item.entities})
    at_us = now_us if true_at_us is None else true_at_us
    statements = [
        _statement(item, names[item.entities[0]] if item.entities else displayed_name(item.stated_by or ""), spoken)
        for item in items
        if item.is_valid_at(at_us) and (true_at_us is None or _since_us(item, spoken) <= true_at_us)
    ]
    statements += [_past_statement(change, spoken) for change in past]
    statements.sort(key=lambda statement: (statement["pinned"], statement["said_at_us"]), reverse=True)
    people = Counter(statement["person"] for statement in statements)
    return {
        "version": snapshot.version,
        "people": [{"name": name, "statements": count} for name, count in people.most_common()],
        "items": [_as_json(statement) for statement in sorted(statements[:limit], key=_place)],
        "total": len(statements),
        "changes": [_change(change) for change in changes[:_CHANGES_MAX]],
    }


def _is_shown(item: KnowledgeItem) -> bool:
    return item.standing or is_shown_unasked(item)


def _was_true(change: ValueChange, at_us: int) -> bool:
    """Return whether the old value of a change was true at `at_us`."""
    return change.status != "invalidated" and change.since_us <= at_us < change.at_us


def _source(memory: KnowledgeItem | ValueChange, spoken: Mapping[str, Spoken]) -> Spoken | None:
    """Return the first message that states a memory; None: an event of a program states it."""
    return spoken.get(memory.source_events[0]) if memory.source_events else None


def _since_us(item: KnowledgeItem, spoken: Mapping[str, Spoken]) -> int:
    """Return the start of validity: as stated, or when it was said first."""
    source = _source(item, spoken)
    return item.valid_from_us or (item.occurred_at_us if source is None else source.at_us)


def _statement(item: KnowledgeItem, person: str, spoken: Mapping[str, Spoken]) -> dict[str, Any]:
    """Return a statement as it is shown."""
    source = _source(item, spoken)
    is_quote = item.standing or (item.predicate == SAYS and item.line.endswith(item.object))
    return {
        "id": item.id,
        "kind": item.kind,
        "topic": _RULE if item.standing else topic_of(item),
        "person": person,
        "text": item.object if is_quote and item.kind == "fact" else _without_category(item),
        "is_quote": is_quote,
        # Who speaks in a message that has expired: who stated it, of oneself the person.
        "said_by": None if source is None else source.speaker or item.stated_by or person,
        "said_at_us": item.occurred_at_us if source is None else source.at_us,
        "utc_offset": 0 if source is None else source.utc_offset,
        "source_type": item.source_type,
        "valid_from_us": item.valid_from_us,
        "valid_until_us": item.valid_until_us,
        "is_sure": item.kind == "preference" or item.confidence >= _SURE_MIN,
        "status": item.status,
        "pinned": item.pinned,
    }


def _past_statement(change: ValueChange, spoken: Mapping[str, Spoken]) -> dict[str, Any]:
    """Return the old value of a change as a statement."""
    source, person = _source(change, spoken), displayed_name(change.person)
    return {
        "id": change.id,
        "kind": change.kind,
        "topic": change.topic if change.topic in (*TOPIC_ORDER, _RULE) else "stated",
        "person": person,
        "text": change.before,
        "is_quote": change.topic == _RULE,
        "said_by": None if source is None else source.speaker or person,
        "said_at_us": change.since_us if source is None else source.at_us,
        "utc_offset": 0 if source is None else source.utc_offset,
        "source_type": "stated",
        "valid_from_us": change.since_us,
        "valid_until_us": change.at_us,
        "is_sure": True,
        "status": change.status,
        "pinned": False,
    }


def _place(statement: dict[str, Any]) -> tuple[int, bool]:
    """Return the place of a statement: by topic, and in a topic words that were said after plain sentences."""
    return TOPIC_ORDER.get(statement["topic"], len(TOPIC_ORDER)), statement["is_quote"] and not statement["pinned"]


def _without_category(item: KnowledgeItem) -> str:
    """Return the line of an item; that of a preference without its category: `tone: short`."""
    titles = item.titles if item.kind == "preference" else ()
    return next(
        (title + item.line.partition(f".{title}")[2] for title in titles if f".{title}: " in item.line), item.line
    )


def _as_json(statement: dict[str, Any]) -> dict[str, Any]:
    """Return a statement with its times in RFC 3339."""
    utc_offset = statement.pop("utc_offset")
    return {
        name.removesuffix("_us"): rfc3339(value, utc_offset if name == "said_at_us" else 0)
        if name.endswith("_us") and value is not None
        else value
        for name, value in statement.items()
    }


def _change(change: ValueChange) -> dict[str, Any]:
    """Return a change as JSON, without the fields that its memory has."""
    return {
        "kind": change.kind,
        "id": change.id,
        "person": displayed_name(change.person),
        "changed_at": rfc3339(change.at_us),
        "status": change.status,
        "before": change.before,
        "after": change.after,
        "after_id": change.after_id,
    }
