"""Memory tidies itself: summaries, expiry, ageing, duplicates; each run twice, and by two at once."""

from __future__ import annotations

import threading
from collections.abc import Generator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from support.embedders import HashingEmbedder
from support.events import Event, message
from support.read_models import rows

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.envelope import EventDraft, microseconds
from recollect.events.validation import draft, drafts
from recollect.jobs.derivation.append_derived import append_derived
from recollect.jobs.derivation.job_context import JobContext
from recollect.jobs.job_settings import CompactionSettings, JobSettings
from recollect.jobs.queue.nightly import Compaction, compact, compact_steps, preview
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.read_models import ReadModels

#: When the conversations of these tests begin.
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
#: Sentences of a conversation, about 25 tokens each.
_SAID = (
    "We painted the kitchen in a light green on Saturday, and it took the two of us until the evening.",
    "My sister Clara is coming from Porto in March, and she will stay with us for two weeks or so.",
    "The old bicycle has a broken chain, so I take the tram number 28 to the office these days.",
    "I booked a table for six people at the Italian place near the river, for Friday at eight.",
    "They offered me the job in the laboratory, and I said yes after a night of thinking about it.",
    "Our dog Rex ate a whole loaf of bread from the table, and he did not even look sorry for it.",
    "The garden needs water twice a day now, because it has not rained for more than three weeks.",
    "I finished the second chapter of my book about lighthouses, and it has forty-two pages so far.",
)


class Memory:
    """One namespace, `a`, with everything that jobs need."""

    def __init__(self, folder: Path, log: SqliteLog, models: ReadModels) -> None:
        self.log = log
        self.models = models
        self.vectors = Vectors(folder, models, HashingEmbedder())
        # Numbers and names make these messages important; only what an event says to be so stays.
        settings = JobSettings(compaction=CompactionSettings(raw_importance_kept=10))
        self.context = JobContext(log=log, read_models=models, vectors=lambda: self.vectors, settings=settings)

    def append(self, *events: Event) -> None:
        self.log.append("a", drafts(list(events)))

    def converse(self, turns: int, *, session: str = "s1", at: datetime = START) -> list[str]:
        """Append a conversation, a turn a minute; return the ids."""
        events = [
            message(
                f"{_SAID[number % len(_SAID)]} ({number})",
                id=f"{session}:{at:%m%d}:{number}",
                session_id=session,
                name=("Ann", "Bob")[number % 2],
                occurred_at=at + timedelta(minutes=number),
            )
            for number in range(turns)
        ]
        self.append(*events)
        self.models.catch_up("a")
        self.vectors.embed_new("a")
        return [event["id"] for event in events]

    def compact(self, **after: float) -> Compaction:
        done = compact_steps(self.context, "a", microseconds(START + timedelta(**after)))
        self.models.catch_up("a")
        self.vectors.embed_new("a")
        return done

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return rows(self.models, query)

    def episodes(self, tier: str) -> list[str]:
        return [row[0] for row in self.rows(f"SELECT id FROM episodes WHERE tier = '{tier}' ORDER BY version")]


@pytest.fixture
def memory(tmp_path: Path, log: SqliteLog, models: ReadModels) -> Generator[Memory]:
    memory = Memory(tmp_path, log, models)
    yield memory
    memory.vectors.close()


def stated(id: str, subject: str, predicate: str, object: str, **payload: Any) -> Event:
    fact = {"subject": subject, "predicate": predicate, "object": object, **payload}
    return {"type": "fact.stated", "id": id, "payload": fact, "occurred_at": START}


# -- tiers ------------------------------------------------------------------------------------------------------------


def test_what_was_said_today_stays_as_it_is(memory: Memory) -> None:
    ids = memory.converse(8)
    memory.compact(hours=20)
    assert memory.episodes("raw") == ids
    assert not memory.episodes("compressed")


def test_a_session_of_yesterday_becomes_one_compressed_episode(memory: Memory) -> None:
    first, second = memory.converse(8), memory.converse(6, session="s2")
    assert memory.compact(hours=26).events["compress"] == 2
    assert memory.rows("SELECT session_id FROM episodes WHERE tier = 'compressed'") == [("s1",), ("s2",)]
    assert memory.rows("SELECT id FROM episode_sources ORDER BY source") == [(id,) for id in [*first, *second]]
    assert memory.episodes("raw") == [*first, *second]


def test_a_session_that_goes_on_is_compressed_by_whole_days(memory: Memory) -> None:
    monday = memory.converse(6)
    memory.converse(6, at=START + timedelta(days=1))
    memory.converse(6, at=START + timedelta(days=2))
    memory.compact(days=2, hours=1)
    assert memory.rows("SELECT id FROM episode_sources ORDER BY source") == [(id,) for id in monday]


def test_the_days_of_a_session_are_those_of_its_user(memory: Memory) -> None:
    # Six minutes around 16:00 of Monday, which is the midnight of UTC.
    at = datetime(2026, 1, 5, 15, 57, tzinfo=timezone(timedelta(hours=-8)))
    monday = memory.converse(6, at=at)
    memory.converse(6, at=at + timedelta(days=2))
    memory.compact(days=1, hours=22)
    assert not memory.episodes("compressed"), "Monday ends at 8:00 of UTC, and is compressed a day later"
    memory.compact(days=2, hours=1)
    assert memory.rows("SELECT utc_offset FROM episodes WHERE tier = 'compressed'") == [(-480,)]
    assert memory.rows("SELECT id FROM episode_sources ORDER BY source") == [(id,) for id in monday]


def test_a_long_session_becomes_several_even_summaries(memory: Memory) -> None:
    memory.converse(450)
    memory.compact(hours=32)
    assert memory.rows("SELECT count(*) FROM episode_sources GROUP BY version") == [(150,), (150,), (150,)]


def test_a_compressed_episode_has_a_quarter_of_the_tokens_and_says_who_spoke(memory: Memory) -> None:
    memory.converse(24)
    memory.compact(hours=26)
    ((text, tokens, source_tokens),) = memory.rows(
        "SELECT text, token_count, source_tokens FROM episodes WHERE tier = 'compressed'"
    )
    assert 0.1 * source_tokens < tokens <= 0.3 * source_tokens
    assert text.startswith(("Ann: ", "Bob: "))


def test_after_a_week_only_the_essence_is_left(memory: Memory) -> None:
    memory.converse(40)
    memory.models.catch_up("a")
    with memory.models.reading("a") as snapshot:
        before = snapshot.episodes.tier_totals()["raw"].tokens
    memory.compact(hours=26)
    memory.compact(days=8)
    with memory.models.reading("a") as snapshot:
        after = snapshot.episodes.tier_totals()
    assert (after["raw"].episodes, after["compressed"].episodes, after["distilled"].episodes) == (0, 0, 1)
    assert after["distilled"].tokens <= 0.06 * before


def test_the_essence_is_found_by_what_was_left_out_of_it(memory: Memory) -> None:
    memory.converse(4)
    memory.append(
        *(message(text, id=f"x{at}", session_id="s2", occurred_at=START) for at, text in enumerate(_SAID[4:]))
    )
    memory.compact(days=20)
    ((version, text),) = memory.rows("SELECT version, text FROM episodes WHERE session_id = 's2'")
    left_out = [said for said in _SAID[4:] if said[:20] not in text]
    assert left_out
    with memory.models.reading("a") as snapshot:
        index = memory.vectors.index("a", snapshot)
        live = np.array([version for (version,) in snapshot.episodes.columns(["version"])])
    for said in left_out:
        found = index.cosines(memory.vectors.embedder.embed_query(f"user: {said}").vector)
        alive = np.isin(found.versions, live)
        assert found.versions[alive][np.argmax(found.values[alive])] == version


def test_a_summary_has_the_vectors_of_its_turns_and_those_are_not_embedded_again(memory: Memory) -> None:
    memory.converse(8)
    embedder = memory.vectors.embedder
    assert isinstance(embedder, HashingEmbedder)
    before = len(embedder.embedded)
    memory.compact(hours=26)
    assert len(memory.episodes("compressed")) == 1
    # Nothing but the knowledge drawn from it: the summary consists of sentences of its turns.
    new = embedder.embedded[before:]
    assert not [text for text in new if text.startswith(("summary: ", "Ann: ", "Bob: "))]
    ((version,),) = memory.rows("SELECT version FROM episodes WHERE tier = 'compressed'")
    with memory.models.reading("a") as snapshot:
        assert version in memory.vectors.vectors_of_episodes("a", snapshot, [version])


def test_important_and_pinned_episodes_stay(memory: Memory) -> None:
    memory.append(
        {
            "type": "observation.recorded",
            "id": "important",
            "session_id": "s1",
            "payload": {"text": "Ann is allergic to nuts", "importance": 10},
            "occurred_at": START,
        },
    )
    ids = memory.converse(6)
    memory.append({"type": "memory.pinned", "payload": {"memory_id": ids[2]}, "occurred_at": START})
    memory.compact(days=30)
    assert memory.episodes("raw") == ["important", ids[2]]


def test_what_a_correction_came_from_stays(memory: Memory) -> None:
    ids = memory.converse(6)
    correction = {"subject": "Ann", "predicate": "lives in", "object": "Porto", "source_events": [ids[1]]}
    memory.append({"type": "fact.corrected", "id": "right", "payload": correction, "occurred_at": START})
    memory.compact(days=30)
    assert memory.episodes("raw") == [ids[1]]
    memory.compact(days=300)
    assert memory.rows("SELECT id, status FROM facts WHERE source_type = 'corrected'") == [("right", "active")]


def test_a_pinned_summary_is_not_distilled(memory: Memory) -> None:
    memory.converse(6)
    memory.compact(hours=26)
    (summary,) = memory.episodes("compressed")
    memory.append({"type": "memory.pinned", "payload": {"memory_id": summary}, "occurred_at": START})
    memory.compact(days=200)
    assert memory.episodes("compressed") == [summary]


def test_an_invalidated_episode_leaves_without_a_summary(memory: Memory) -> None:
    ids = memory.converse(6)
    memory.append({"type": "memory.invalidated", "payload": {"memory_id": ids[0]}, "occurred_at": START})
    memory.compact(days=30)
    assert memory.episodes("raw") == []
    assert (ids[0],) not in memory.rows("SELECT id FROM episode_sources")


# -- once -------------------------------------------------------------------------------------------------------------


def test_a_second_run_appends_nothing(memory: Memory) -> None:
    memory.converse(12)
    memory.append(stated("f1", "Ann", "likes", "tea", source_type="inferred"))
    for days in (2, 9, 300):
        memory.compact(days=days)
        head = memory.log.head("a")
        assert not memory.compact(days=days).events
        assert memory.log.head("a") == head


def test_two_workers_at_once_append_what_one_would(memory: Memory) -> None:
    for number in range(6):
        memory.converse(6, session=f"s{number}")
    now_us = microseconds(START + timedelta(days=9))
    done: list[int] = []
    workers = [
        threading.Thread(target=lambda: done.append(compact(memory.context, "a", now_us)), name=f"worker {number}")
        for number in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(memory.episodes("distilled")) == 6
    assert memory.rows("SELECT count(*) FROM episode_sources") == [(36,)]
    kinds = [event.type for event in memory.log.read("a", after=36, limit=1_000)]
    assert (kinds.count("episodes.compressed"), kinds.count("episode.distilled")) == (6, 6)
    assert sum(done) == len(kinds)


def test_replay_gives_what_compaction_left(memory: Memory) -> None:
    for number in range(3):
        memory.converse(8, session=f"s{number}", at=START + timedelta(days=number))
    for days in (2, 5, 9):
        memory.compact(days=days)
        assert memory.models.check("a").is_equal


@pytest.mark.parametrize("days", [2, 9, 40, 300])
def test_a_preview_appends_nothing_and_tells_what_the_run_does(memory: Memory, days: int) -> None:
    for number in range(3):
        memory.converse(8, session=f"s{number}", at=START + timedelta(days=number))
    memory.append(
        stated("f1", "Ann", "likes", "tea with a little milk in the morning", source_type="inferred"),
        stated("f2", "Ann", "likes", "a little tea with milk in the morning", source_type="inferred"),
        stated("task", "Ann", "needs to", "call the bank", type="task"),
    )
    head = memory.log.head("a")
    expected = preview(memory.context, "a", microseconds(START + timedelta(days=days)))
    assert memory.log.head("a") == head
    assert memory.compact(days=days) == expected
    assert memory.log.head("a").version == head.version + sum(expected.events.values())


def test_after_a_preview_the_run_can_be_previewed_again(memory: Memory) -> None:
    memory.converse(8)
    memory.compact(days=2)
    assert "compress" not in preview(memory.context, "a", microseconds(START + timedelta(days=2))).events
    assert preview(memory.context, "a", microseconds(START + timedelta(days=9))).events["distill"] == 1


def test_another_model_embeds_expired_sources_with_their_summary(memory: Memory, tmp_path: Path) -> None:
    ids = memory.converse(8)
    memory.compact(days=20)
    assert memory.episodes("raw") == []
    again = Vectors(tmp_path, memory.models, HashingEmbedder("another model"))
    try:
        again.embed_new("a")
        with memory.models.reading("a") as snapshot:
            query = again.embedder.embed_query("tram").vector
            versions = again.index("a", snapshot).cosines(query).versions
            stored = memory.vectors.codes("a", snapshot, range(1, len(ids) + 1), query)
            assert set(range(1, len(ids) + 1)) < set(versions.tolist())
            codes = again.codes("a", snapshot, range(1, len(ids) + 1), query)
            assert codes.versions.tolist() == stored.versions.tolist()
            assert [part.codes.levels.tolist() for part in codes.parts] == [
                part.codes.levels.tolist() for part in stored.parts
            ]
    finally:
        again.close()


def test_messages_that_come_meanwhile_do_not_undo_a_decision(memory: Memory) -> None:
    memory.converse(2)
    decisions = 0

    def decide(_: Snapshot) -> list[EventDraft]:
        nonlocal decisions
        decisions += 1
        memory.append(message("meanwhile"))
        return [draft({"type": "episodes.expired", "id": "x", "payload": {"episode_ids": ["s1:0105:0"]}})]

    assert append_derived(memory.context, "a", decide) == 1
    assert decisions == 1


def test_after_a_correction_it_is_decided_again(memory: Memory) -> None:
    memory.converse(2)
    correction = {"subject": "Ann", "predicate": "lives in", "object": "Porto"}
    came = [{"type": "fact.corrected", "payload": correction}]

    def decide(_: Snapshot) -> list[EventDraft]:
        if came:
            memory.append(came.pop())
            return [draft({"type": "episodes.expired", "id": "x", "payload": {"episode_ids": ["s1:0105:0"]}})]
        return []

    assert append_derived(memory.context, "a", decide) == 0
    assert "x" not in {event.id for event in memory.log.read("a", after=0, limit=100)}


# -- what is known ----------------------------------------------------------------------------------------------------


def test_a_fact_past_its_time_to_live_is_stale(memory: Memory) -> None:
    memory.append(
        stated("task", "Ann", "needs to", "call the bank", type="task"), stated("f1", "Ann", "owns", "a boat")
    )
    memory.compact(days=100)
    assert memory.rows("SELECT id, status FROM facts ORDER BY id") == [("f1", "active"), ("task", "stale")]


def test_the_times_to_live_are_settings_and_a_producer_may_give_its_own(memory: Memory) -> None:
    settings = JobSettings(compaction=CompactionSettings(ttl_days={"fact": 50, "task": 200}))
    memory.context = replace(memory.context, settings=settings)
    memory.append(
        stated("task", "Ann", "needs to", "call the bank", type="task"),
        stated("f1", "Ann", "owns", "a boat"),
        stated("f2", "Ann", "owns", "a kite", ttl_days=120),
    )
    statuses = "SELECT id, status FROM facts ORDER BY id"
    memory.compact(days=100)
    assert memory.rows(statuses) == [("f1", "stale"), ("f2", "active"), ("task", "active")]
    memory.compact(days=130)
    assert memory.rows(statuses) == [("f1", "stale"), ("f2", "stale"), ("task", "active")]


def test_an_inferred_fact_loses_half_of_its_confidence_in_a_half_life(memory: Memory) -> None:
    memory.append(
        stated("f1", "Ann", "likes", "tea", source_type="inferred", confidence=0.8),
        stated("f2", "Ann", "owns", "a boat", confidence=0.8),
    )
    memory.compact(days=60)
    memory.compact(days=120)
    confidences = dict(memory.rows("SELECT id, confidence FROM facts"))
    assert confidences["f1"] == pytest.approx(0.4, abs=0.01)
    assert confidences["f2"] == pytest.approx(0.8)


def test_an_inferred_fact_that_nobody_confirms_becomes_stale_in_the_end(memory: Memory) -> None:
    memory.append(stated("f1", "Ann", "likes", "tea", source_type="inferred", confidence=0.5))
    memory.compact(days=300)
    assert memory.rows("SELECT status FROM facts") == [("stale",)]


def test_over_the_cap_the_least_important_go(memory: Memory) -> None:
    memory.context = JobContext(
        log=memory.log,
        read_models=memory.models,
        vectors=lambda: memory.vectors,
        settings=JobSettings(compaction=CompactionSettings(memories_max=2)),
    )
    weak = [stated(f"weak{at}", "Ann", "likes", f"thing {at}", confidence=0.3 + at / 10) for at in range(3)]
    memory.append(*weak, stated("pinned", "Ann", "likes", "boats", confidence=0.1))
    memory.append({"type": "memory.pinned", "payload": {"memory_id": "pinned"}, "occurred_at": START})
    memory.compact(days=1)
    active = memory.rows("SELECT id FROM facts WHERE status = 'active' ORDER BY id")
    assert active == [("pinned",), ("weak1",), ("weak2",)]


def test_near_duplicates_become_one_and_the_merge_is_recorded(memory: Memory) -> None:
    memory.append(
        stated("f1", "Ann", "likes", "tea with a little milk in the morning"),
        stated("f2", "Ann", "likes", "a little tea with milk in the morning"),
        stated("f3", "Ann", "likes", "4 cups of tea with a little milk in the morning"),
    )
    memory.compact(days=1)
    statuses = dict(memory.rows("SELECT id, status FROM facts"))
    assert statuses == {"f1": "active", "f2": "superseded", "f3": "active"}
    events = memory.log.read("a", after=0, limit=100)
    (merge,) = [event.data() for event in events if event.type == "memories.merged"]
    assert (merge["kept_id"], merge["merged_ids"]) == ("f1", ["f2"])
