"""Events for tests: one-liners for the common ones, and any history there can be."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from recollect.events.envelope import EventDraft
from recollect.events.validation import draft

Event = dict[str, Any]


def message(text: str, *, name: str | None = None, role: str = "user", **envelope: Any) -> Event:
    payload = {"role": role, "text": text} | ({} if name is None else {"name": name})
    return {"type": "message.added", "payload": payload, **envelope}


def moved_home(name: str) -> list[Event]:
    """Return two messages and the facts of a person who moved from Oslo to Bergen on 5 March 2026."""
    places = {"Oslo": ("m1", "2026-01-05T09:00:00Z"), "Bergen": ("m2", "2026-03-05T09:00:00Z")}
    messages = [message(f"I live in {place}", id=id, name=name, occurred_at=at) for place, (id, at) in places.items()]
    facts = [
        {"subject": name, "predicate": "lives in", "object": place, "stated_at": at, "source_events": [id]}
        for place, (id, at) in places.items()
    ]
    return [*messages, *({"type": "fact.stated", "payload": fact} for fact in facts)]


def message_draft(text: str, **fields: Any) -> EventDraft:
    return draft(message(text, **fields))


#: One payload that fits, for every type there is.
PAYLOADS: dict[str, Event] = {
    "session.started": {"channel": "cli", "metadata": {"a": [1]}},
    "session.ended": {"summary": "It went well."},
    "namespace.configured": {"timezone": "Europe/Berlin"},
    "message.added": {"role": "user", "text": "Hello Ann"},
    "action.recorded": {"text": "Booked a table", "outcome": "success"},
    "observation.recorded": {"text": "It rains", "importance": 3},
    "fact.stated": {"subject": "Ann", "predicate": "lives in", "object": "Porto"},
    "fact.corrected": {"subject": "Ann", "predicate": "lives in", "object": "Lisbon"},
    "fact.retracted": {"fact_id": "f1"},
    "preference.stated": {"key": "tone", "value": "short"},
    "entity.described": {"name": "Ann Lee", "type": "person", "description": "a friend", "aliases": ["Ann"]},
    "entity.separated": {"name": "Ann Lee", "alias": "Ann"},
    "relationship.stated": {"source": "Ann", "type": "knows", "target": "Bob"},
    "procedure.recorded": {"name": "tea", "trigger": "thirst", "steps": ["boil", "pour"]},
    "procedure.used": {"procedure_id": "p1", "outcome": "success"},
    "document.added": {"document_id": "d1", "title": "Rules", "text": "Be kind."},
    "document.removed": {"document_id": "d1"},
    "memory.pinned": {"memory_id": "m1"},
    "memory.unpinned": {"memory_id": "m1"},
    "memory.ended": {"memory_id": "m1", "ended_at": "2026-01-04T00:00:00Z"},
    "memory.forgotten": {"memory_id": "m1", "reason": "asked"},
    "edit.undone": {"event_id": "e1"},
    "memory.reviewed": {"memory_id": "m1", "decision": "reject"},
    "memory.quarantined": {"memory_id": "m1", "reasons": ["instructions"]},
    "answer.given": {"text": "You love tea.", "trace_id": "t1", "cited": ["m1"], "source_events": ["m1"]},
    "retrieval.rated": {"trace_id": "t1", "rating": "noise", "memory_ids": ["m1"]},
    "memory.invalidated": {"memory_id": "m1", "reason": "wrong"},
    "namespace.erased": {"reason": "asked"},
    "events.erased": {"scope": "message", "erasure_id": "e1", "versions": [[1, 2]]},
    "episodes.compressed": {"text": "They met.", "source_events": ["e1"]},
    "episode.distilled": {"text": "Met.", "source_events": ["e1"]},
    "episodes.expired": {"episode_ids": ["e1"]},
    "facts.extracted": {"source_events": ["e1"], "extractor": "rules"},
    "fact.superseded": {"fact_id": "f1", "superseded_by": "f2"},
    "memories.merged": {"kept_id": "m1", "merged_ids": ["m2"]},
    "memory.status_changed": {"memory_id": "m1", "status": "stale"},
    "facts.decayed": {"facts": [{"fact_id": "f1", "confidence": 0.4}]},
    "memories.clustered": {"clusters": [{"label": "tea", "memory_ids": ["m1", "m2"]}]},
    "day.digested": {"day": "2026-11-20", "text": "They met.", "source_events": ["e1"]},
    "turns.summarised": {"summaries": [{"event_id": "e1", "text": "In short."}]},
    "conversation.compacted": {"text": "They talked.", "source_events": ["e1"]},
    "observations.recorded": {"observations": ["calm"], "source_events": ["e1"]},
    "observations.reflected": {"observations": ["calm"], "source_events": ["e1"]},
    "event.skipped": {"event_id": "e1", "reason": "a payload of an old release"},
}

_NAMES = st.sampled_from(["Ann", "Bob", "Ann Lee", "São Paulo", "Zoë", "李明"])
_TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40),
    st.lists(
        st.one_of(_NAMES, st.sampled_from(["likes", "met", "tea.", "Yesterday", "in", "<b>", '"AND"'])),
        min_size=1,
        max_size=8,
    ).map(" ".join),
)


@st.composite
def events(draw: st.DrawFn) -> Event:
    """Any event: of every type, with and without sessions, in any order of time."""
    name = draw(st.sampled_from(sorted(PAYLOADS)))
    payload = PAYLOADS[name]
    if name == "message.added":
        payload = draw(_messages())
    elif name == "entity.described":
        payload = {"name": draw(_NAMES), "aliases": draw(st.lists(_NAMES, max_size=2))}
    elif name in ("action.recorded", "observation.recorded"):
        payload = payload | {"text": draw(_TEXTS)}
    session = draw(st.sampled_from(["s1", "s2", None])) if not name.startswith("session.") else "s1"
    occurred_at = f"2026-01-{draw(st.integers(1, 28)):02}T10:00:00{draw(st.sampled_from(['Z', '-08:00', '+05:30']))}"
    return {"type": name, "payload": payload, "session_id": session, "occurred_at": occurred_at}


@st.composite
def _messages(draw: st.DrawFn) -> Event:
    payload: Event = {"role": draw(st.sampled_from(["user", "assistant", "system", "tool:search"]))}
    if draw(st.booleans()):
        payload["name"] = draw(_NAMES)
    body = draw(st.sampled_from(["text", "turns", "data"]))
    if body == "text":
        payload["text"] = draw(_TEXTS)
    elif body == "turns":
        payload["turns"] = [{"role": "user", "name": draw(_NAMES), "text": draw(_TEXTS)}]
    else:
        payload["data"] = {"found": draw(_TEXTS)}
    if draw(st.booleans()):
        payload["attachments"] = [{"media_type": "image/png", "caption": draw(_TEXTS)}]
    return payload


def histories(max_size: int = 25) -> st.SearchStrategy[list[Event]]:
    return st.lists(events(), min_size=1, max_size=max_size)
