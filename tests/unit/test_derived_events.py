"""The events that jobs append: their ids never change, since a log holds those that were appended before."""

from __future__ import annotations

import pytest

from recollect.events.envelope import EventDraft
from recollect.jobs.derivation import event_drafts
from recollect.jobs.derivation.event_drafts import SummaryDraft
from recollect.projections.queries.queried_episodes import EpisodeRow

_TURNS = [
    EpisodeRow(
        version=1,
        id="e1",
        session_id="s",
        role="user",
        speaker="Ann",
        text="I moved to Lisbon.",
        caption=None,
        importance=5,
        occurred_at_us=1_000_000,
    ),
    EpisodeRow(
        version=2,
        id="e2",
        session_id="s",
        role="assistant",
        speaker="bot",
        text="Good for you.",
        caption=None,
        importance=7,
        occurred_at_us=3_000_000,
    ),
]
_SUMMARY = SummaryDraft("Ann moved.", 3, 10)

_DRAFTS: dict[str, EventDraft] = {
    "facts.extracted": event_drafts.facts_extracted(
        "e2", 3_000_000, source_events=["e1"], through=2, extractor="rules", items={}
    ),
    "episodes.compressed": event_drafts.episodes_compressed(_TURNS, _SUMMARY, expires_after_us=1_000_000),
    "episode.distilled": event_drafts.episode_distilled(_TURNS[0], _SUMMARY),
    "conversation.compacted": event_drafts.conversation_compacted("s", _TURNS, _SUMMARY),
    "episodes.expired": event_drafts.episodes_expired(["e1", "e2"], 5_000_000),
    "memory.status_changed": event_drafts.memory_stale("f1", "over the cap", 5_000_000),
    "facts.decayed": event_drafts.facts_decayed({"f1": 0.5, "f2": 0.25}, 5_000_000),
    "memories.merged": event_drafts.memories_merged("f1", ["f2", "f3"], 0.97, 5_000_000),
    "observations.recorded": event_drafts.observations_recorded("s", _TURNS, ["Ann moved."]),
    "observations.reflected": event_drafts.observations_reflected(
        "s", ["Ann moved."], source_events=["o1", "o2"], occurred_at_us=5_000_000
    ),
    "turns.summarised": event_drafts.turns_summarised(_TURNS, ["Ann moved.", "Good."]),
}
_IDS = {
    "facts.extracted": "extract:ac0f09c0f8bf5e7a4b063d863255f16d",
    "episodes.compressed": "compress:c5a9367884b7c141583fd7cdfaf2cf03",
    "episode.distilled": "distill:8b5cc4df7eec7d32a7814eca4af047ae",
    "conversation.compacted": "window:463dabc004d1dbdf101a738cca59e548",
    "episodes.expired": "expire:c5a9367884b7c141583fd7cdfaf2cf03",
    "memory.status_changed": "stale:680cfad8eaee23a8215079e299879e95",
    "facts.decayed": "decay:90bddb5a54b1adb51f1ba4da2a912c70",
    "memories.merged": "merge:b392e76e142789f3f0af91e7a72ec6f3",
    "observations.recorded": "observe:463dabc004d1dbdf101a738cca59e548",
    "observations.reflected": "reflect:c51d9967c84e5036316b8c17266296c5",
    "turns.summarised": "shorten:c5a9367884b7c141583fd7cdfaf2cf03",
}


@pytest.mark.parametrize("type_name", _DRAFTS)
def test_a_derived_event_has_the_id_that_it_had_in_the_first_release(type_name: str) -> None:
    assert _DRAFTS[type_name].type == type_name
    assert _DRAFTS[type_name].id == _IDS[type_name]


def test_a_derived_event_is_dated_like_what_it_tells_of() -> None:
    assert _DRAFTS["episodes.compressed"].occurred_at_us == 3_000_000
    assert _DRAFTS["episode.distilled"].occurred_at_us == 1_000_000
    assert _DRAFTS["episodes.expired"].occurred_at_us == 5_000_000
    assert b'"expires_at":"1970-01-01T00:00:04Z"' in _DRAFTS["episodes.compressed"].payload
