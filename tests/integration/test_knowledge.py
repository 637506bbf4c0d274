"""What is known: facts that merge, conflict, are corrected and taken back; preferences, procedures, relations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.events import Event, message
from support.read_models import connection_of, rows

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.projector.knowledge import RELATION_WEIGHTS
from recollect.projections.projector.predicates import canonical, has_one_value
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels

Tell = Callable[..., None]


@pytest.fixture
def tell(log: SqliteLog, models: ReadModels) -> Tell:
    """Append events with the ids e1, e2 … unless they have one, and fold them."""
    ids = (f"e{number}" for number in itertools.count(1))

    def tell(*events: Event) -> None:
        log.append("a", drafts([{"id": next(ids)} | event for event in events]))
        models.catch_up("a")

    return tell


def facts(models: ReadModels) -> list[tuple[Any, ...]]:
    return rows(models, "SELECT object, status FROM facts ORDER BY key")


def at(day: int) -> str:
    return f"2026-01-{day:02}T10:00:00Z"


def fact(object: str, *, subject: str = "Ann", predicate: str = "lives in", day: int = 1, **payload: Any) -> Event:
    stated = {"subject": subject, "predicate": predicate, "object": object, **payload}
    return {"type": "fact.stated", "payload": stated, "occurred_at": at(day)}


def correction(object: str, *, predicate: str = "lives in", day: int = 1, **payload: Any) -> Event:
    right = {"subject": "Ann", "predicate": predicate, "object": object, **payload}
    return {"type": "fact.corrected", "payload": right, "occurred_at": at(day)}


def extracted(*found: Event, day: int = 1, **items: Any) -> Event:
    payload = {"source_events": ["m1"], "extractor": "rules", "facts": [one["payload"] for one in found], **items}
    return {"type": "facts.extracted", "payload": payload, "occurred_at": at(day)}


# -- facts ------------------------------------------------------------------------------------------------------------


def test_an_identical_fact_strengthens_the_one_that_is_there(tell: Tell, models: ReadModels) -> None:
    tell(fact("Porto", confidence=0.5), fact("porto.", confidence=0.5, day=2))
    assert rows(models, "SELECT object, confidence, evidence_count FROM facts") == [("Porto", 0.75, 2)]


def test_the_same_source_twice_is_no_further_evidence(tell: Tell, models: ReadModels) -> None:
    tell(fact("Porto", confidence=0.5, source_events=["m1"]), fact("Porto", confidence=0.5, source_events=["m1"]))
    assert rows(models, "SELECT confidence, evidence_count FROM facts") == [(0.5, 1)]


def test_of_what_changes_the_newest_holds_and_the_old_one_keeps_its_end(tell: Tell, models: ReadModels) -> None:
    tell(fact("Porto"), fact("Lisbon", day=5))
    assert facts(models) == [("Porto", "superseded"), ("Lisbon", "active")]
    ended = rows(models, "SELECT superseded_by, valid_until_us, created_at_us FROM facts")
    assert ended[0][:2] == ("e2", ended[1][2])


def test_what_is_told_late_about_earlier_does_not_win(tell: Tell, models: ReadModels) -> None:
    tell(fact("Lisbon", day=5), fact("Porto"))
    assert facts(models) == [("Lisbon", "active"), ("Porto", "superseded")]


@pytest.mark.parametrize("better", ["corrected", "stated", "observed"])
def test_the_newest_statement_of_a_person_wins_over_any_older_one(better: str, tell: Tell, models: ReadModels) -> None:
    tell(fact("Porto", source_type=better), fact("Lisbon", source_type="observed", day=5))
    assert facts(models) == [("Porto", "superseded"), ("Lisbon", "active")]


@pytest.mark.parametrize("day", [1, 5, 9])
def test_what_the_assistant_inferred_never_replaces_what_a_person_said(
    day: int, tell: Tell, models: ReadModels
) -> None:
    tell(fact("Lisbon", source_type="inferred", day=day), fact("Porto", day=5))
    tell(fact("Faro", day=7, source_type="inferred"), fact("Braga", day=8) | {"actor": "assistant"})
    assert rows(models, "SELECT object FROM facts WHERE status = 'active'") == [("Porto",)]


def test_a_late_message_cuts_the_time_of_a_value_in_two(tell: Tell, models: ReadModels) -> None:
    tell(fact("Porto", source_events=["m1"]), fact("Porto", day=9, source_events=["m9"]), fact("Lisbon", day=5))
    query = "SELECT object, status, source_events FROM facts ORDER BY created_at_us"
    assert rows(models, query) == [
        ("Porto", "superseded", '["m1"]'),
        ("Lisbon", "superseded", '["e3"]'),
        ("Porto", "active", '["m9"]'),
    ]


def test_numbers_of_one_thing_replace_each_other(tell: Tell, models: ReadModels) -> None:
    for day, object in enumerate(("two kids", "one cat", "Three children", "17 goats", "13 goats"), start=1):
        tell(fact(object, predicate="has", day=day))
    active = rows(models, "SELECT object FROM facts WHERE status = 'active' ORDER BY key")
    assert active == [("one cat",), ("Three children",), ("13 goats",)]


def test_what_can_be_many_adds_up(tell: Tell, models: ReadModels) -> None:
    tell(fact("tea", predicate="likes"), fact("boats", predicate="likes", day=2))
    assert facts(models) == [("tea", "active"), ("boats", "active")]


def test_a_conflict_key_makes_one_of_what_could_be_many(tell: Tell, models: ReadModels) -> None:
    decided: Event = {"predicate": "decided", "type": "decision", "conflict_key": "database"}
    tell(fact("we use SQLite", **decided), fact("we use PostgreSQL", day=2, **decided))
    assert facts(models) == [("we use SQLite", "superseded"), ("we use PostgreSQL", "active")]


def test_what_once_was_ends_nothing(tell: Tell, models: ReadModels) -> None:
    tell(fact("Lisbon"), fact("Porto", day=5, valid_until=at(2)))
    assert facts(models) == [("Lisbon", "active"), ("Porto", "ended")]


def test_someone_who_comes_back_has_a_new_period(tell: Tell, models: ReadModels) -> None:
    tell(fact("Porto"), fact("Lisbon", day=5), fact("Porto", day=9))
    assert facts(models) == [("Porto", "superseded"), ("Lisbon", "superseded"), ("Porto", "active")]


def test_a_correction_ends_what_was_wrong(tell: Tell, models: ReadModels) -> None:
    tell(fact("Porto"), correction("Lisbon", day=2))
    assert facts(models) == [("Porto", "superseded"), ("Lisbon", "active")]
    assert rows(models, "SELECT source_type, confidence FROM facts WHERE status = 'active'") == [("corrected", 1.0)]


def test_a_correction_of_one_of_many_leaves_the_others(tell: Tell, models: ReadModels) -> None:
    tell(fact("tea", predicate="likes"), fact("boats", predicate="likes"))
    tell(correction("coffee", predicate="likes", corrects="e1", day=2), fact("tea", predicate="likes"))
    assert facts(models) == [("tea", "superseded"), ("boats", "active"), ("coffee", "active")]
    tell(fact("tea", predicate="likes", day=3))
    assert facts(models)[-1] == ("tea", "active")


def test_a_later_correction_replaces_an_earlier_one(tell: Tell, models: ReadModels) -> None:
    tell(correction("Lisbon"), correction("Faro", day=2), extracted(fact("Lisbon", stated_at=at(1)), day=3))
    assert facts(models) == [("Lisbon", "superseded"), ("Faro", "active")]


def test_what_was_taken_back_is_not_extracted_again_but_can_be_stated(tell: Tell, models: ReadModels) -> None:
    tell(fact("tea", predicate="likes"), {"type": "fact.retracted", "payload": {"fact_id": "e1"}})
    tell(extracted(fact("tea", predicate="likes"), day=3))
    assert facts(models) == [("tea", "invalidated")]
    tell(fact("tea", predicate="likes", day=4))
    assert facts(models) == [("tea", "invalidated"), ("tea", "active")]


def test_what_is_invalid_is_not_extracted_again(tell: Tell, models: ReadModels) -> None:
    tell(fact("Porto"), {"type": "memory.invalidated", "payload": {"memory_id": "e1"}}, extracted(fact("Porto"), day=3))
    assert facts(models) == [("Porto", "invalidated")]


def test_a_rejected_fact_is_kept_and_not_active(tell: Tell, models: ReadModels) -> None:
    tell(extracted(rejected=[fact("the moon")["payload"]]), fact("Porto"))
    assert facts(models) == [("the moon", "rejected"), ("Porto", "active")]


def test_the_time_to_live_follows_the_type_and_is_renewed(tell: Tell, models: ReadModels) -> None:
    tell(fact("call the bank", predicate="needs to", type="task"), fact("a boat", predicate="owns", ttl_days=3))
    days = "SELECT (stale_at_us - created_at_us) / 86400000000 FROM facts"
    assert rows(models, days) == [(90,), (3,)]
    tell(fact("a boat", predicate="owns", day=11))
    assert rows(models, days) == [(90,), (13,)]


def test_a_fact_as_of_before_its_correction_is_what_was_known_then(
    tell: Tell, models: ReadModels, history: History
) -> None:
    tell(fact("Porto"), correction("Lisbon", day=2))
    with history.reading("a", 1) as then:
        assert list(connection_of(then).execute("SELECT object, status FROM facts")) == [("Porto", "active")]
    assert facts(models) == [("Porto", "superseded"), ("Lisbon", "active")]


@pytest.mark.parametrize(
    ("spelling", "predicate"),
    [("lives_in", "lives in"), ("Works for", "works at"), ("favorite color is", "favourite color is")],
)
def test_predicates_are_compared_by_their_meaning(spelling: str, predicate: str) -> None:
    assert canonical(spelling) == predicate
    assert has_one_value(predicate)


# -- other kinds ------------------------------------------------------------------------------------------------------


def preference(value: str, *, day: int = 1, **payload: Any) -> Event:
    stated = {"category": "communication", "key": "tone", "value": value, **payload}
    return {"type": "preference.stated", "payload": stated, "occurred_at": at(day)}


def test_a_preference_grows_stronger_or_is_replaced(tell: Tell, models: ReadModels) -> None:
    tell(preference("short"), preference("short", day=2), preference("long", day=3))
    assert rows(models, "SELECT value, strength, status FROM preferences") == [
        ("short", 0.75, "superseded"),
        ("long", 0.5, "active"),
    ]


def test_an_inferred_preference_does_not_replace_a_stated_one(tell: Tell, models: ReadModels) -> None:
    tell(preference("short"), preference("long", source_type="inferred", day=2))
    assert rows(models, "SELECT value FROM preferences WHERE status = 'active'") == [("short",)]


def test_a_procedure_is_as_sure_as_it_went(tell: Tell, models: ReadModels) -> None:
    steps = {"name": "tea", "trigger": "thirst", "steps": ["boil", "pour"]}
    tell({"type": "procedure.recorded", "payload": steps})
    for outcome in ("success", "success", "failure", "partial"):
        tell({"type": "procedure.used", "payload": {"procedure_id": "e1", "outcome": outcome}})
    query = "SELECT success_count, failure_count, last_outcome, confidence FROM procedures"
    assert rows(models, query) == [(2, 1, "partial", pytest.approx((0.5 * 2 + 2.5) / 6))]


def test_a_procedure_of_the_same_name_replaces_the_one_before(tell: Tell, models: ReadModels) -> None:
    for steps in (["boil"], ["boil", "pour"]):
        tell({"type": "procedure.recorded", "payload": {"name": "tea", "trigger": "thirst", "steps": steps}})
    assert rows(models, "SELECT id, superseded_by FROM procedures") == [("e1", "e2"), ("e2", None)]


def test_relations_have_the_weight_of_their_type(tell: Tell, models: ReadModels) -> None:
    for kind in ("governs", "contradicts", "knows", "knows"):
        tell({"type": "relationship.stated", "payload": {"source": "Ann", "type": kind, "target": "Bob"}})
    found = rows(models, "SELECT type, weight, evidence_count FROM relationships")
    assert found == [("governs", RELATION_WEIGHTS["governs"], 1), ("contradicts", 0.0, 1), ("knows", 0.5, 2)]


def test_a_document_is_cut_into_chunks_and_replaced_as_a_whole(tell: Tell, models: ReadModels) -> None:
    def document(text: str) -> Event:
        relations = [{"type": "governs", "target": "deployments"}, {"type": "quotes", "target": "d2", "weight": 0.2}]
        payload = {"document_id": "d1", "title": "Rules", "text": text, "relations": relations}
        return {"type": "document.added", "payload": payload}

    tell(document("word " * 400))
    assert rows(models, "SELECT count(*) FROM chunks") == [(3,)]
    tell(document("short"))
    assert rows(models, "SELECT text FROM chunks") == [("short",)]
    assert rows(models, "SELECT type, weight FROM document_relations") == [("governs", 1.0), ("quotes", 0.2)]
    tell({"type": "document.removed", "payload": {"document_id": "d1"}})
    assert rows(models, "SELECT count(*) FROM documents") == rows(models, "SELECT count(*) FROM chunks") == [(0,)]


def test_reflections_take_the_place_of_observations(tell: Tell, models: ReadModels) -> None:
    seen = {"observations": ["Ann likes tea", "Ann is late"], "source_events": ["m1"], "through": 1}
    tell({"type": "observations.recorded", "payload": seen, "session_id": "s1"})
    condensed = {"observations": ["Ann: tea, late"], "source_events": ["e1"]}
    tell({"type": "observations.reflected", "payload": condensed, "session_id": "s1"})
    assert rows(models, "SELECT text FROM observations WHERE status = 'active'") == [("Ann: tea, late",)]
    assert rows(models, "SELECT through FROM observation_cursors") == [(1,)]


def test_a_pin_and_a_status_reach_every_kind(tell: Tell, models: ReadModels) -> None:
    tell(fact("Porto"), preference("short"))
    for id in ("e1", "e2", "nobody"):
        tell({"type": "memory.pinned", "payload": {"memory_id": id}})
        tell({"type": "memory.status_changed", "payload": {"memory_id": id, "status": "stale"}})
    assert rows(models, "SELECT pinned, status FROM facts") == [(1, "stale")]
    assert rows(models, "SELECT pinned, status FROM preferences") == [(1, "stale")]


# -- what holds for every history -------------------------------------------------------------------------------------

_IDS = [f"e{number}" for number in range(1, 13)]
_REFERENCES = st.sampled_from([*_IDS, "e3#f0", "e5#f0", "e5#c0"])


@st.composite
def _statements(draw: st.DrawFn) -> Event:
    one_value = draw(st.booleans())
    found = fact(
        draw(st.sampled_from(["Porto", "Lisbon", "Faro"])),
        predicate="lives in" if one_value else "visited",
        source_type=draw(st.sampled_from(["stated", "inferred", "observed"])),
        confidence=draw(st.sampled_from([0.3, 0.9])),
        day=draw(st.integers(1, 9)),
    )
    return extracted(found, day=draw(st.integers(1, 9))) if draw(st.booleans()) else found


@st.composite
def _events(draw: st.DrawFn) -> Event:
    day = draw(st.integers(1, 9))
    id, other = draw(_REFERENCES), draw(_REFERENCES)
    events: list[Event] = [
        draw(_statements()),
        draw(_statements()),
        message("I live in Porto with Ann", name="Ann", session_id="s1"),
        correction(draw(st.sampled_from(["Porto", "Lisbon"])), day=day),
        correction("Faro", predicate="visited", corrects=id, day=day),
        extracted(corrections=[correction("Faro")["payload"]], rejected=[fact("Mars")["payload"]]),
        {"type": "fact.retracted", "payload": {"fact_id": id}},
        {"type": "fact.superseded", "payload": {"fact_id": id, "superseded_by": other}},
        {"type": "facts.decayed", "payload": {"facts": [{"fact_id": id, "confidence": 0.2}]}},
        {"type": "memory.invalidated", "payload": {"memory_id": id}},
        {"type": "memory.pinned", "payload": {"memory_id": id}},
        {"type": "memory.status_changed", "payload": {"memory_id": id, "status": "stale"}},
        {"type": "memories.merged", "payload": {"kept_id": id, "merged_ids": [other]}},
        preference(draw(st.sampled_from(["short", "long"])), day=day),
        {"type": "relationship.stated", "payload": {"source": "Ann", "type": "knows", "target": "Bob"}},
        {"type": "procedure.recorded", "payload": {"name": "tea", "trigger": "thirst", "steps": [id]}},
        {"type": "procedure.used", "payload": {"procedure_id": id, "outcome": "success"}},
        {"type": "document.added", "payload": {"document_id": "d1", "title": "Rules", "text": id}},
        {"type": "document.removed", "payload": {"document_id": "d1"}},
        {"type": "observations.recorded", "payload": {"observations": ["calm"], "source_events": [id]}},
        {"type": "observations.reflected", "payload": {"observations": ["calm"], "source_events": [id]}},
        {"type": "memories.clustered", "payload": {"clusters": [{"label": "x", "memory_ids": [id]}]}},
    ]
    return draw(st.sampled_from(events))


def _said(event: Event) -> tuple[str, str] | None:
    """Return time and object of what a person says about the home; None: something else, or the assistant's."""
    payload = event["payload"]["facts"][0] if "facts" in event["payload"] else event["payload"]
    is_home = payload["predicate"] == "lives in" and payload["source_type"] != "inferred"
    return (event["occurred_at"], payload["object"]) if is_home else None


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Iterator[ReadModels]]:
    def fresh(**batches: Any) -> Iterator[ReadModels]:
        folder = tmp_path_factory.mktemp("knowledge")
        log = SqliteLog(folder / "log.db")
        read_models = ReadModels(folder, log, **batches)
        yield read_models
        read_models.close()
        log.close()

    return fresh


_HISTORIES = st.lists(_events(), min_size=1, max_size=len(_IDS))
_SETTINGS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@_SETTINGS
@given(history=_HISTORIES, batch=st.integers(1, 6), bulk=st.integers(1, 6))
def test_any_history_replays_to_what_was_folded_live(
    history: list[Event],
    batch: int,
    bulk: int,
    fresh: Callable[..., Iterator[ReadModels]],
) -> None:
    for models in fresh(first_batch_events=batch, batch_events=batch, replay_batch_events=bulk):
        models.log.append("a", drafts([event | {"id": id} for id, event in zip(_IDS, history, strict=False)]))
        check = models.check("a")
        assert check.is_equal, check


@_SETTINGS
@given(before=st.lists(_statements(), max_size=4), after=st.lists(_statements(), max_size=6))
def test_a_correction_holds_until_a_person_says_something_else_later(
    before: list[Event], after: list[Event], fresh: Callable[..., Iterator[ReadModels]]
) -> None:
    for models in fresh():
        models.log.append("a", drafts([*before, correction("Sintra", day=5), *after]))
        models.catch_up("a")
        now = "SELECT object FROM facts WHERE status = 'active' AND predicate = 'lives in'"
        said = [one for one in map(_said, [*before, *after]) if one is not None and one[0] > at(5)]
        newest = {object for day, object in said if day == max(said)[0]} or {"Sintra"}
        assert {object for (object,) in rows(models, now)} <= newest
        found = rows(models, now)
        assert len(found) == 1
        assert models.replay("a")
        assert rows(models, now) == found


@_SETTINGS
@given(history=st.lists(_statements(), min_size=1, max_size=10))
def test_facts_of_one_value_have_one_and_no_fact_is_active_twice(
    history: list[Event], fresh: Callable[..., Iterator[ReadModels]]
) -> None:
    for models in fresh():
        models.log.append("a", drafts(history))
        models.catch_up("a")
        active = rows(models, "SELECT topic, value FROM facts WHERE status = 'active'")
        assert len(set(active)) == len(active)
        assert sum("lives in" in topic for topic, _ in active) <= 1
        ended = rows(models, "SELECT superseded_by, valid_until_us FROM facts WHERE status = 'superseded'")
        assert all(by is not None for by, _ in ended)
        sources = rows(models, "SELECT source_events FROM facts")
        assert all(orjson.loads(one) for (one,) in sources)


@st.composite
def _homes(draw: st.DrawFn) -> list[Event]:
    """Return what a person says about one home, at times of its own each."""
    events: list[Event] = []
    for day in range(1, draw(st.integers(2, 9))):
        object = draw(st.sampled_from(["Porto", "Lisbon", "Faro"]))
        stated = fact(object, day=day, source_type=draw(st.sampled_from(["stated", "observed", "inferred"])))
        over: Event = {"subject": "Ann", "predicates": ["lives in"], "stated_at": at(day)}
        named = over | {"about": object}
        events.append(
            draw(
                st.sampled_from(
                    [
                        stated,
                        stated,
                        extracted(fact(object, stated_at=at(day)), day=20),
                        correction(object, day=day),
                        extracted(day=20, endings=[over]),
                        extracted(day=20, endings=[named]),
                    ]
                )
            )
        )
    return events


@_SETTINGS
@given(homes=_homes(), data=st.data())
def test_the_state_follows_the_times_and_not_the_order_of_arrival(
    homes: list[Event], data: st.DataObject, fresh: Callable[..., Iterator[ReadModels]]
) -> None:
    # A fact that is merged into another one, since a late statement joins their times, has no end of validity.
    state = (
        "SELECT object, status, valid_until_us, created_at_us FROM facts "
        "WHERE status <> 'superseded' OR valid_until_us IS NOT NULL ORDER BY created_at_us, object"
    )
    states: list[list[tuple[Any, ...]]] = []
    for order in (homes, data.draw(st.permutations(homes))):
        for models in fresh(batch_events=3):
            models.log.append("a", drafts(order))
            models.catch_up("a")
            states.append(rows(models, state))
            assert models.check("a").is_equal
    assert states[0] == states[1]
