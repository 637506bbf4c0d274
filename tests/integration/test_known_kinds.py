"""Facts, entities, preferences, procedures, relationships and documents in an answer; the context they make."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.embedders import HashingEmbedder
from support.events import Event, message
from support.fences import content_of
from support.memory import Memory
from support.read_models import connection_of

from recollect import Recollect
from recollect.api.retrieval.contract.request import Format, Mode
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.retrieval.search.entity_graph import spread_activation
from recollect.api.settings import load_settings
from recollect.events.envelope import rfc3339
from recollect.events.validation import drafts
from recollect.projections.text.tokens import estimate_tokens

Tell = Callable[..., None]
Ask = Callable[..., RetrieveResult]
_NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> list[datetime]:
    """The present time of questions: the one entry, to be changed."""
    return [_NOW]


@pytest.fixture
def memory(tmp_path: Path, clock: list[datetime]) -> Generator[Recollect]:
    settings = load_settings(data=tmp_path, embedding_model="none")
    with Recollect(settings=settings, workers=False, clock=lambda: clock[0]) as memory:
        yield memory


@pytest.fixture
def tell(memory: Recollect) -> Tell:
    """Append events, derived ones too, with the ids e1, e2 … unless they have one, a minute after each other."""
    numbers = itertools.count(1)

    def tell(*events: Event) -> None:
        for number, event in zip(numbers, events, strict=False):
            at = datetime(2026, 1, 5, 10, tzinfo=UTC) + timedelta(minutes=number)
            memory.parts.log.append("a", drafts([{"id": f"e{number}", "occurred_at": at} | event]))

    # A `zip` takes a number more than it uses, so each call begins with one of its own.
    def one_by_one(*events: Event) -> None:
        for event in events:
            tell(event)

    return one_by_one


@pytest.fixture
def ask(memory: Recollect) -> Ask:
    def ask(query: str, **options: Any) -> RetrieveResult:
        return memory.retrieve("a", query, **options)

    return ask


def stated(kind: str, *, id: str | None = None, at: str | None = None, **payload: Any) -> Event:
    event = {"type": kind, "payload": payload}
    return event | ({} if id is None else {"id": id}) | ({} if at is None else {"occurred_at": at})


def fact(object: str, *, subject: str = "Ann", predicate: str = "lives in", **fields: Any) -> Event:
    return stated("fact.stated", subject=subject, predicate=predicate, object=object, **fields)


def related(source: str, type: str, target: str, **payload: Any) -> Event:
    return stated("relationship.stated", source=source, type=type, target=target, **payload)


def texts(result: RetrieveResult) -> list[str]:
    return [item.text for item in result.items]


# -- each kind --------------------------------------------------------------------------------------------------------

_ALL = [
    fact("Porto", id="fact"),
    stated("entity.described", name="Rex", type="other", description="Bob's old dog"),
    stated("preference.stated", id="preference", category="communication", key="tone", value="short answers"),
    stated("procedure.recorded", id="procedure", name="tea", trigger="being thirsty", steps=["boil", "pour"]),
    related("Carl", "mentors", "Dora", source_events=["e0"]) | {"id": "relationship"},
    stated("document.added", document_id="rules", title="House rules", text="Guests leave at midnight."),
    message("the lamp is broken", id="episode"),
]


@pytest.mark.parametrize(
    ("query", "kind", "id", "text"),
    [
        ("where does Ann live, in Porto?", "fact", "fact", "Ann lives in Porto"),
        ("who is Rex?", "entity", "Rex", "**Rex** (other): Bob's old dog"),
        ("which tone of answers?", "preference", "preference", "communication.tone: short answers"),
        ("how do I boil tea?", "procedure", "procedure", "**tea** (confidence: 0.50): being thirsty: boil → pour"),
        ("whom does Carl mentor, Dora?", "relationship", "relationship", "Carl mentors Dora"),
        ("when do guests leave, at midnight?", "document", "rules#0", "House rules: Guests leave at midnight."),
        ("is the lamp broken?", "episode", "episode", "the lamp is broken"),
    ],
)
def test_each_kind_is_found_as_an_item_of_its_kind_with_its_source(
    tell: Tell, ask: Ask, memory: Recollect, query: str, kind: Any, id: str, text: str
) -> None:
    tell(*_ALL)
    result = ask(query)
    best = next(item for item in result.items if item.kind == kind)
    assert (best.id.replace("#1", "#0"), best.text, best.namespace) == (id, text, "a")
    assert 0 < best.score <= 1
    assert best.matched_by
    if kind != "entity":
        known = {event["id"] for event in memory.events("a")["items"]} | {"e0"}
        assert best.source_events
        assert set(best.source_events) <= known
    assert [item.kind for item in ask(query, kinds={kind}).items] == [kind]
    others = {"fact", "entity", "preference", "procedure", "relationship", "document", "episode"} - {kind}
    assert kind not in {item.kind for item in ask(query, kinds=others).items}


def test_what_is_known_is_found_by_meaning_too(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        memory.add([fact("red wine and dark chocolate", predicate="likes"), message("it rains here")])
        memory.embed()
        result = memory.ask("red wine and dark chocolate please", HashingEmbedder())
    best = result.items[0]
    assert best.kind == "fact"
    assert best.ranks["semantic"] == 1


# -- what no longer holds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end",
    [
        fact("Lisbon"),
        stated("fact.corrected", subject="Ann", predicate="lives in", object="Lisbon"),
        stated("fact.retracted", fact_id="old"),
        stated("memory.invalidated", memory_id="old", reason="wrong"),
        stated("memory.status_changed", memory_id="old", status="rejected"),
    ],
    ids=["superseded", "corrected", "retracted", "invalidated", "rejected"],
)
def test_what_no_longer_holds_never_comes_back_as_true(tell: Tell, ask: Ask, memory: Recollect, end: Event) -> None:
    tell(fact("Porto", id="old"))
    assert texts(ask("does Ann live in Porto?")) == ["Ann lives in Porto"]
    tell(end)
    for mode in ("active", "passive"):
        assert "Ann lives in Porto" not in texts(ask("does Ann live in Porto?", mode=mode, gate=False))
    memory.replay("a")
    assert "Ann lives in Porto" not in ask("does Ann live in Porto?").context


def test_what_holds_until_a_day_is_true_up_to_it(tell: Tell, ask: Ask, clock: list[datetime]) -> None:
    tell(fact("Porto", predicate="visits", valid_until="2026-03-02T00:00:00Z"))
    for mode in ("active", "passive"):
        assert texts(ask("does Ann visit Porto?", mode=mode)) == ["Ann visits Porto"]
    clock[0] += timedelta(days=1)
    for mode in ("active", "passive"):
        assert texts(ask("does Ann visit Porto?", mode=mode)) == []


@pytest.mark.parametrize("kind", ["preference", "procedure", "relationship"])
def test_other_kinds_that_were_invalidated_are_gone_too(tell: Tell, ask: Ask, kind: Any) -> None:
    tell(*_ALL)
    query = {"preference": "which tone of answers?", "procedure": "how do I boil tea?"}.get(
        kind, "does Carl mentor Dora?"
    )
    assert [item.kind for item in ask(query, kinds={kind}).items] == [kind]
    tell(stated("memory.invalidated", memory_id=kind, reason="wrong"))
    assert ask(query, kinds={kind}).items == ()


def test_a_document_that_was_removed_is_gone(tell: Tell, ask: Ask) -> None:
    tell(*_ALL, stated("document.removed", document_id="rules"))
    assert ask("when do guests leave, at midnight?", gate=False, kinds={"document"}).items == ()


def test_an_episode_whose_fact_was_corrected_is_marked_and_contradicts(tell: Tell, ask: Ask) -> None:
    tell(
        message("I live in Porto, near the old bridge", id="said", name="Ann"),
        fact("Porto", id="old", source_events=["said"]),
    )
    before = ask("where does she live, near which bridge?")
    assert [(item.id, item.outdated) for item in before.items] == [("said", False)]
    assert before.answer.contradiction_rate == 0
    tell(stated("fact.corrected", subject="Ann", predicate="lives in", object="Lisbon"))
    after = ask("where does she live, near which bridge?")
    [said] = [item for item in after.items if item.id == "said"]
    assert said.outdated
    assert 'near the old bridge (later, 2026-01-05: "Ann lives in Lisbon")' in after.context
    assert after.answer.contradiction_rate == 1 / len(after.items)
    assert "said" not in after.answer.authoritative


def test_what_is_stale_counts_half_and_is_unconfirmed_since_it_was_said(tell: Tell, ask: Ask) -> None:
    tell(fact("tea", predicate="likes", id="tea"))
    [fresh] = ask("does Ann like tea?").items
    tell(stated("memory.status_changed", memory_id="tea", status="stale"))
    [stale] = ask("does Ann like tea?").items
    assert stale.score == pytest.approx(fresh.score / 2, rel=1e-4)
    assert (fresh.unconfirmed_since_us, stale.outdated) == (None, False)
    assert stale.as_json()["unconfirmed_since"] == rfc3339(fresh.occurred_at_us)
    result = ask("does Ann like tea?")
    assert "Ann likes tea (not confirmed since 2026-01-05)" in result.context
    assert "no longer true" not in result.context
    # Nobody said anything else: old is not contradicted, but nothing to rely on either.
    assert (result.answer.contradiction_rate, result.answer.authoritative) == (0, ())


@pytest.mark.parametrize(
    ("event", "query"),
    [
        (stated("preference.stated", key="tone", value="short answers"), "which tone, short answers?"),
        (stated("procedure.recorded", name="tea", trigger="thirst", steps=["boil"]), "how is tea made, boil?"),
        (stated("relationship.stated", source="Ann", type="knows", target="Bob"), "does Ann know Bob?"),
    ],
)
def test_old_memories_of_every_kind_are_unconfirmed_and_not_false(
    tell: Tell, ask: Ask, event: Event, query: str
) -> None:
    tell(event | {"id": "old"}, stated("memory.status_changed", memory_id="old", status="stale"))
    result = ask(query, gate=False)
    assert "(not confirmed since 2026-01-05)" in result.context
    assert "no longer true" not in result.context
    assert result.answer.contradiction_rate == 0


def test_a_memory_that_was_confirmed_again_before_it_went_stale_has_the_later_date(tell: Tell, ask: Ask) -> None:
    later = {"occurred_at": "2026-02-07T10:00:00Z"}
    tell(fact("tea", predicate="likes", id="tea"), fact("tea", predicate="likes") | later)
    tell(stated("memory.status_changed", memory_id="tea", status="stale") | {"occurred_at": "2026-02-20T10:00:00Z"})
    assert "Ann likes tea (not confirmed since 2026-02-07)" in ask("does Ann like tea?").context


def test_less_confidence_is_less_likely(tell: Tell, ask: Ask) -> None:
    tell(fact("tea", predicate="likes", confidence=0.5), fact("tea", subject="Bob", predicate="likes"))
    scores = {item.text: item.score for item in ask("who likes tea?").items}
    assert scores["Ann likes tea"] < scores["Bob likes tea"]


def test_near_duplicates_are_told_once(tell: Tell, ask: Ask) -> None:
    tell(
        message("The red sofa came from Porto by ship", id="one"),
        message("the red sofa came from porto by ship!", id="two"),
        message("The red sofa came from Faro by train", id="three"),
    )
    found = {item.id for item in ask("where did the red sofa come from, by ship?", gate=False).items}
    assert "three" in found
    assert len(found) == 2


# -- the graph --------------------------------------------------------------------------------------------------------


def _reached(memory: Recollect, name: str) -> dict[str, float]:
    memory.parts.read_models.catch_up("a")
    with memory.parts.read_models.reading("a") as snapshot:
        rows: list[Any] = list(connection_of(snapshot).execute("SELECT id, name FROM entities"))
        names = dict(rows)
        start = next(id for id, known in names.items() if known == name)
        reached = spread_activation(snapshot.entities, [start])
        return {names[id]: strength for id, strength in reached.items()}


def test_two_steps_over_relationships_are_gone_and_no_third_one(tell: Tell, ask: Ask, memory: Recollect) -> None:
    tell(related("Uno", "knows", "Dos"), related("Dos", "knows", "Tres"), related("Tres", "knows", "Cuatro"))
    reached = _reached(memory, "Uno")
    assert reached.keys() == {"Uno", "Dos", "Tres"}
    assert 1 == reached["Uno"] > reached["Dos"] > reached["Tres"] > 0
    assert _reached(memory, "Dos").keys() == {"Uno", "Dos", "Tres", "Cuatro"}
    tell(message("yesterday Tres bought a boat", id="boat"), message("today Cuatro sold a boat", id="sold"))
    tell(*(message(f"it rains on day {day}") for day in range(5)))
    found = {item.id: item.ranks for item in ask("what is new around Uno?", gate=False).items}
    assert "graph" in found["boat"]
    assert "graph" not in found.get("sold", {})


def test_a_contradiction_is_never_followed_and_circles_end(tell: Tell, memory: Recollect) -> None:
    tell(related("Uno", "contradicts", "Dos"), related("Dos", "knows", "Tres"), related("Uno", "knows", "Cinco"))
    tell(related("Cinco", "knows", "Seis"), related("Seis", "knows", "Uno"), related("Cinco", "knows", "Cinco"))
    tell(related("Uno", "knows", "Siete", confidence=0.2), related("Uno", "knows", "Ocho", confidence=0.4))
    assert _reached(memory, "Uno").keys() == {"Uno", "Cinco", "Seis", "Ocho"}


def test_contradictions_are_shown_as_relations_of_the_answer(tell: Tell, ask: Ask) -> None:
    tell(related("Uno", "contradicts", "Dos"), message("both Uno and Dos spoke"))
    assert ask("what about Uno and Dos?").answer.relations == (("Uno", "contradicts", "Dos"),)


# -- the context ------------------------------------------------------------------------------------------------------


def test_markdown_has_stable_parts_first(tell: Tell, ask: Ask) -> None:
    tell(*_ALL, stated("preference.stated", key="language", value="answer in French", standing=True))
    context = ask("boil tea? Ann in Porto? Rex? guests at midnight? lamp broken?", mode="passive", gate=False).context
    lines = content_of(context)
    headings = [line for line in lines if line.startswith("### ")]
    assert headings == ["### Preferences", "### Known Context", "### Learned Procedures", "### Relevant History"]
    assert "- answer in French" in lines
    assert "- Ann lives in Porto (said 2026-01-05)" in lines
    assert "- [Mon 2026-01-05, 7 weeks ago] user: the lamp is broken" in lines


def test_json_is_one_line_that_can_be_read(tell: Tell, ask: Ask) -> None:
    tell(*_ALL)
    [line] = content_of(ask("does Ann live in Porto? is the lamp broken?", format="json").context)
    items = {item["kind"]: item for item in json.loads(line)["items"]}
    assert items["fact"] | {"when": "", "day": ""} == {
        "category": "referenced",
        "kind": "fact",
        "when": "",
        "day": "",
        "speaker": None,
        "text": "Ann lives in Porto (said 2026-01-05)",
        "sources": ["fact"],
    }
    assert (items["episode"]["speaker"], items["episode"]["text"]) == ("user", "the lamp is broken")


def test_the_preamble_tells_recent_from_relevant(tell: Tell, ask: Ask) -> None:
    tell(*_ALL)
    context = ask("is the lamp broken?", mode="passive", session_id="new", format="preamble").context
    recent, _, relevant = context.partition("[Potentially relevant memories]")
    assert "(fact) Ann lives in Porto" in recent
    assert "(message) user: the lamp is broken" in relevant
    assert context.splitlines()[1].startswith("[Current time: ")


@pytest.mark.parametrize("format", ["markdown", "json"])
@pytest.mark.parametrize("mode", ["active", "passive"])
def test_unchanged_memory_renders_to_unchanged_bytes_on_the_same_day(
    tell: Tell, ask: Ask, memory: Recollect, clock: list[datetime], format: str, mode: str
) -> None:
    tell(*_ALL, *(message(f"the lamp of room {room} is broken", session_id=f"s{room}") for room in range(12)))
    query = "which lamp is broken, and where does Ann live?"
    first = ask(query, mode=mode, format=format).context
    assert first
    clock[0] += timedelta(hours=3)
    assert ask(query, mode=mode, format=format).context == first
    memory.replay("a")
    assert ask(query, mode=mode, format=format).context == first


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    budget=st.integers(0, 500),
    form=st.sampled_from(["markdown", "preamble", "json"]),
    mode=st.sampled_from(["active", "passive"]),
)
def test_the_token_budget_is_never_exceeded(full: Recollect, budget: int, form: Format, mode: Mode) -> None:
    result = full.retrieve(
        "a", "the lamp, the tea, Ann, Porto", budget_tokens=budget, format=form, mode=mode, gate=False
    )
    assert result.tokens == estimate_tokens(result.context) <= budget
    assert bool(result.context) == bool(result.items)
    assert {*result.answer.authoritative, *result.answer.supporting} <= {item.id for item in result.items}


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Generator[Recollect]:
    folder = tmp_path_factory.mktemp("full")
    with Recollect(settings=load_settings(data=folder, embedding_model="none"), workers=False) as memory:
        memory.append("a", _ALL)
        memory.append("a", [message(f"The lamp {n}? " + "Tea in Porto. " * n, name=f"Ann {n}") for n in range(30)])
        yield memory


# -- aids -------------------------------------------------------------------------------------------------------------


def test_what_to_do_is_defer_scoped_or_direct(tell: Tell, ask: Ask) -> None:
    assert ask("where is the blue lamp?").answer.action == "defer"
    tell(message("the blue lamp stands on the piano", id="lamp"), *(message(f"it rains on day {n}") for n in range(20)))
    tell(fact("Porto", id="porto"))
    direct = ask("is it Porto where Ann lives?").answer
    assert (direct.action, direct.authoritative) == ("direct", ("porto",))
    assert direct.grounding >= 0.8
    assert direct.citation_coverage == 1
    scoped = ask("is the blue lamp broken?").answer
    assert scoped.action == "scoped"
    assert 0 < scoped.citation_coverage < 1
    assert ask("who invented quantum chromodynamics in Ulaanbaatar?").answer.action == "defer"


def test_what_a_bot_said_is_no_authority(tell: Tell, ask: Ask) -> None:
    tell(message("the blue lamp stands on the piano", role="assistant", id="lamp"))
    tell(*(message(f"it rains on day {n}") for n in range(20)))
    aids = ask("is the blue lamp on the piano?").answer
    assert (aids.action, aids.authoritative, aids.supporting) == ("scoped", (), ("lamp",))


def test_entities_of_question_and_answer_are_named(tell: Tell, ask: Ask) -> None:
    tell(*_ALL)
    assert ask("who is Rex?").answer.entities == ("Rex",)
