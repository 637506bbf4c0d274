"""Small conversations with what is known of them, and questions to them, for property tests of retrieval."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st
from support.events import Event, message

from recollect.api.retrieval.contract.request import Format

WORDS = "sofa lisbon rex tea bridge ann bob moved likes yesterday password the did what 2025 小公寓 brücke".split()
_NAMES = ["Ann", "Bob", "Rex", "Zoë"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)
QUERIES = st.one_of(
    TEXTS,
    TEXTS.map(lambda words: f"What did Ann say about {words} last week?"),
    TEXTS.map(lambda words: f'do you remember "{words}"'),
    st.sampled_from(["Rex", "who is Bob?", "ok, next step?", "when did Ann move to Lisbon in May 2025?"]),
)


@st.composite
def corpora(draw: st.DrawFn) -> list[Event]:
    """Conversations of several people over months, with what is known of them, and a summary at times."""
    events: list[Event] = []
    for number in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["said", "said", "said", "fact", "entity", "related", "document"]))
        at = f"2025-{draw(st.integers(1, 12)):02}-{draw(st.integers(1, 28)):02}T10:00:00Z"
        events.append(_event(draw, kind) | {"id": f"e{number}", "occurred_at": at})
    said = [event["id"] for event in events if event["type"] == "message.added"]
    if said and draw(st.booleans()):
        payload = {"text": draw(TEXTS), "source_events": said[:3]}
        summary = {"id": "sum", "type": "episodes.compressed", "session_id": "s1", "payload": payload}
        events.append(summary | {"occurred_at": "2025-12-30T10:00:00Z"})
    return events


def _event(draw: st.DrawFn, kind: str) -> Event:
    name = draw(st.sampled_from(_NAMES))
    if kind == "said":
        role = draw(st.sampled_from(["user", "assistant"]))
        return message(draw(TEXTS), name=name, role=role, session_id=draw(st.sampled_from(["s1", "s2", None])))
    if kind == "fact":
        payload = {"subject": name, "predicate": draw(st.sampled_from(["likes", "lives in"])), "object": draw(TEXTS)}
        return {"type": "fact.stated", "payload": payload}
    if kind == "entity":
        return {"type": "entity.described", "payload": {"name": name, "description": draw(TEXTS)}}
    if kind == "related":
        payload = {"source": name, "type": "knows", "target": draw(st.sampled_from(_NAMES))}
        return {"type": "relationship.stated", "payload": payload}
    return {"type": "document.added", "payload": {"document_id": name, "title": name, "text": draw(TEXTS)}}


OPTIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "mode": st.sampled_from(["active", "passive"]),
        "session_id": st.sampled_from(["s1", "s2", "nowhere"]),
        "format": st.sampled_from(get_args(Format)),
        "gate": st.booleans(),
        "limit": st.integers(1, 20),
        "budget_tokens": st.integers(0, 400),
        "kinds": st.sampled_from([{"episode"}, {"fact", "entity"}, {"document", "episode"}]),
    },
)
