from __future__ import annotations

import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.embedders import BrokenEmbedder, HashingEmbedder, StuckEmbedder
from support.events import message
from support.memory import comparable

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.retrieval.retriever import Retriever
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.errors import InvalidNamespace
from recollect.events.validation import drafts
from recollect.projections.embeddings.embedder import Embedder, NoEmbedder, SentenceEmbedder
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.text import text_flags

Ask = Callable[..., RetrieveResult]

_CONVERSATION = [
    message(text, name=name, session_id=session, id=f"e{number}", occurred_at=f"2026-0{session[1]}-01T10:0{number}:00Z")
    for number, (session, name, text) in enumerate(
        [
            ("s1", "Ann", "I moved to Lisbon last week"),
            ("s1", "Bob", "How is the new flat?"),
            ("s1", "Ann", "Lovely, with a view of the Tagus"),
            ("s2", "Bob", "My dog Rex ate the sofa"),
            ("s2", "Ann", "Poor Rex, poor sofa"),
            ("s3", "Bob", "他住在东京的一间小公寓里"),
            ("s3", "Ann", "Die Straßenbahn fährt über die Brücke"),
            ("s3", "Bob", ""),
        ],
        start=1,
    )
]
_REX = {"type": "entity.described", "payload": {"name": "Rex", "type": "other", "description": "Bob's beagle"}}


@pytest.fixture
def ask(tmp_path: Path, log: SqliteLog, models: ReadModels, history: History) -> Generator[Ask]:
    """Ask namespace "a", which holds the conversation, with any embedder."""
    log.append("a", drafts(_CONVERSATION))
    open_parts: list[Retriever | Vectors] = []
    ready: dict[int, Retriever] = {}

    def run(query: str, *, embedder: Embedder | None = None, namespace: str = "a", **options: Any) -> RetrieveResult:
        embedder = embedder or _OFF
        if id(embedder) not in ready:
            vectors = Vectors(tmp_path, models, embedder)
            models.catch_up("a")
            if not isinstance(embedder, BrokenEmbedder):
                vectors.embed_new("a")
            ready[id(embedder)] = Retriever(models, history, lambda: vectors, budget_ms=10_000, fence_key=_FENCE_KEY)
            open_parts.extend([ready[id(embedder)], vectors])
        return ready[id(embedder)].retrieve(namespace, RetrieveRequest(query=query, **options))

    yield run
    for part in open_parts:
        part.close()


#: The same for all retrievers, whose answers are compared.
_FENCE_KEY = b"fence"
_OFF = NoEmbedder()
_READY = HashingEmbedder()


def ids(result: RetrieveResult) -> list[str]:
    return [item.id for item in result.items]


def test_an_item_says_what_matched_it_where_it_comes_from_and_when(ask: Ask) -> None:
    [item, *_] = ask("where is the flat?", embedder=_READY).items
    assert item.source_events == ("e2",)
    assert (item.speaker, item.session_id, item.kind) == ("Bob", "s1", "episode")
    assert item.as_json()["occurred_at"] == "2026-01-01T10:02:00Z"
    assert set(item.matched_by) == set(item.ranks)
    assert {"keyword", "keyword_window", "semantic", "semantic_window"} <= set(item.matched_by)


def test_what_was_appended_is_found_by_the_very_next_call(ask: Ask, log: SqliteLog) -> None:
    for number in range(5):
        [event] = log.append("a", drafts([message(f"the password is swordfish{number}")]))
        assert ids(ask(f"swordfish{number}")) == [event.id]


def test_the_turn_before_makes_an_answer_findable(ask: Ask) -> None:
    result = ask("how is the flat?")
    found = {item.id: item.ranks for item in result.items}
    assert found["e3"].keys() == {"keyword_window"}


def test_who_is_asked_about_is_taken_for_the_speaker_not_for_a_word(ask: Ask) -> None:
    [first, *_] = ask("what did Ann say about the sofa?").items
    assert first.id == "e5"


def test_an_entity_leads_to_what_names_it_and_what_is_known_about_it(ask: Ask, log: SqliteLog) -> None:
    log.append("a", drafts([_REX]))
    result = ask("tell me about Rex")
    assert [item.kind for item in result.items][:2] == ["entity", "episode"]
    assert "- **Rex** (other): Bob's beagle" in result.context
    assert {"e4", "e5"} <= {item.id for item in result.items if "graph" in item.ranks}
    assert [item.kind for item in ask("tell me about Rex", kinds={"entity"}).items] == ["entity"]


@pytest.mark.parametrize(
    ("query", "found"), [("东京", "e6"), ("小公寓在哪里", "e6"), ("Strassenbahn Brücke", "e7"), ("brucke", "e7")]
)
def test_other_languages_are_found(ask: Ask, query: str, found: str) -> None:
    assert found in ids(ask(query))


def test_limits_of_time_session_and_count_hold(ask: Ask) -> None:
    query = "sofa flat lisbon"
    for embedder in (_OFF, _READY):
        assert set(ids(ask(query, embedder=embedder, since="2026-02-01T00:00:00Z"))) <= {"e4", "e5", "e6", "e7", "e8"}
        assert set(ids(ask(query, embedder=embedder, until="2026-02-01T00:00:00Z"))) <= {"e1", "e2", "e3"}
        assert set(ids(ask(query, embedder=embedder, session_id="s2", gate=False))) == {"e4", "e5"}
        assert len(ask(query, embedder=embedder, limit=2, gate=False).items) == 2


def test_a_larger_limit_shows_more_of_the_same_order(ask: Ask) -> None:
    few, many = (ids(ask("the sofa of the flat", embedder=_READY, limit=limit)) for limit in (2, 7))
    assert many[:2] == few


def test_what_comes_later_is_never_likelier_and_known_things_do_not_change_the_order_of_episodes(
    ask: Ask, log: SqliteLog
) -> None:
    query = "what did Ann say about the sofa and the flat?"
    alone = ask(query, embedder=_READY, kinds={"episode"}, limit=8)
    log.append("a", drafts([_REX, *(_fact(f"f{n}", f"sofa number {n} of the flat") for n in range(3))]))
    together = ask(query, embedder=_READY, limit=20)
    assert {"episode", "fact"} <= {item.kind for item in together.items}
    for result in (alone, together):
        scores = [item.score for item in result.items]
        assert scores == sorted(scores, reverse=True)
    assert [item.id for item in together.items if item.kind == "episode"] == ids(alone)


def _fact(id: str, what: str) -> dict[str, Any]:
    payload = {"subject": "Ann", "predicate": f"likes {id}", "object": what}
    return {"type": "fact.stated", "id": id, "payload": payload}


@pytest.mark.parametrize("alike", [False, True])
def test_what_a_speaker_says_again_is_shown_once_with_all_its_sources(
    ask: Ask, log: SqliteLog, monkeypatch: pytest.MonkeyPatch, alike: bool
) -> None:
    if alike:
        # As if all texts had the same key.
        monkeypatch.setattr(text_flags, "_KEYS", 1)
    said = [("e20", "Bob", "The gate code? Ask REX, at noon!"), ("e21", "Bob", "the gate code:  ask rex at noon")]
    said += [("e22", "Ann", "Is the gate code known to Rex?"), ("e23", "Bob", "the gate code: ask rex at nine")]
    log.append("a", drafts([message(text, name=name, id=id, session_id="s4") for id, name, text in said]))
    found = {item.id: item.source_events for item in ask("who knows the gate code of Rex?", gate=False).items}
    assert {id: found.get(id) for id, _, _ in said} == {
        "e20": None, "e21": ("e21", "e20"), "e22": ("e22",), "e23": ("e23",)
    }  # fmt: skip


def test_nothing_of_another_namespace_appears(ask: Ask, log: SqliteLog) -> None:
    log.append("b", drafts([message("the sofa of someone else", id="other")]))
    assert ids(ask("sofa", namespace="b")) == ["other"]
    assert "other" not in ids(ask("sofa of someone else", embedder=_READY))


def test_an_unknown_namespace_and_an_empty_query_find_nothing(ask: Ask) -> None:
    for result in (ask("sofa", namespace="nobody"), ask(""), ask("   \n")):
        assert (result.context, result.items, result.tokens) == ("", (), 0)


def test_a_bad_name_is_refused(ask: Ask) -> None:
    with pytest.raises(InvalidNamespace):
        ask("x", namespace="../etc")


def test_without_vectors_the_answer_is_that_of_keywords_alone_byte_for_byte(ask: Ask) -> None:
    for query in ("where is the flat?", "what did Ann say about Rex?", "东京", "sofa"):
        alone = ask(query)
        assert alone.degraded == (f"semantic: {_OFF.reason}",)
        for embedder in (HashingEmbedder(state="loading"), HashingEmbedder(state="failed"), BrokenEmbedder("broken")):
            result = ask(query, embedder=embedder)
            assert comparable(result) == comparable(alone)
            assert len(result.degraded) == 1
            assert result.degraded[0].startswith("semantic: ")


def test_what_is_not_embedded_yet_is_counted(ask: Ask, log: SqliteLog) -> None:
    ask("sofa", embedder=_READY)
    log.append("a", drafts([message("a new sofa", id="new")]))
    result = ask("sofa", embedder=_READY)
    assert result.degraded == ("semantic: 1 of 9 not embedded yet",)
    assert "new" in ids(result)


@pytest.mark.parametrize("text", ["I moved to Porto", "my new boss is called Henrike", "the rent is 840 now"])
def test_a_message_is_found_before_it_is_embedded(
    ask: Ask, log: SqliteLog, embedder: SentenceEmbedder, text: str
) -> None:
    ask("sofa", embedder=embedder)
    log.append("a", drafts([message(text, name="Ann", id="new")]))
    result = ask(f"what about {text}?", embedder=embedder)
    assert result.degraded == ("semantic: 1 of 9 not embedded yet",)
    assert "new" in ids(result)


def test_a_question_that_names_little_is_answered_by_keywords_that_are_sure(ask: Ask) -> None:
    assert "e1" in ids(ask("did I move?"))
    assert not ids(ask("thanks, you too!"))


def test_the_same_question_gets_the_same_answer(ask: Ask) -> None:
    first, second = (ask("sofa and flat", embedder=_READY) for _ in range(2))
    assert comparable(first) == comparable(second)
    assert first.trace_id != second.trace_id


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.one_of(
        st.text(max_size=200), st.binary(max_size=100).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
    )
)
@example(query='"AND" OR NEAR(a b) * ^ { } : - + () text:x')
@example(query="\0 sofa \ud800")
@example(query="%_\\%")
def test_no_query_raises_whatever_its_bytes(ask: Ask, query: str) -> None:
    for embedder in (_OFF, _READY):
        result = ask(query, embedder=embedder)
        assert not [part for part in result.degraded if not part.startswith("semantic: turned off")]


def test_a_pasted_log_of_50_000_characters_is_answered_by_its_rare_words(ask: Ask) -> None:
    noise = " ".join(f"line{number} error the of" for number in range(3_000))
    result = ask(f"Why did my sofa vanish? {noise}", embedder=_READY)
    assert ids(result)[0] in {"e4", "e5"}


def test_a_message_of_1_mib_is_found_and_comes_as_the_part_with_the_words_of_the_question(
    ask: Ask, log: SqliteLog
) -> None:
    before, after = "Some words of a pasted file. " * 9_000, "Других слов больше здесь нет. " * 9_000
    ask("warm")
    log.append("a", drafts([message(f"{before}The zebra Ulla eats marigolds. {after}", id="long", session_id="s3")]))
    result = ask("What does the zebra Ulla eat?")
    [item] = [item for item in result.items if item.id == "long"]
    assert len(item.text) <= 32_768 + 4
    assert "The zebra Ulla eats marigolds" in item.text
    assert "marigolds" in result.context


def test_a_budget_that_is_over_at_once_still_gives_an_answer(
    tmp_path: Path, log: SqliteLog, models: ReadModels, history: History
) -> None:
    log.append("a", drafts(_CONVERSATION))
    vectors = Vectors(tmp_path, models, _OFF)
    retriever = Retriever(models, history, lambda: vectors, budget_ms=0.001)
    result = retriever.retrieve("a", RetrieveRequest(query="sofa"))
    assert result.version >= 0
    retriever.close()
    vectors.close()


def test_a_model_that_is_too_slow_is_left_out_and_the_answer_is_that_of_keywords_alone(
    tmp_path: Path, ask: Ask, models: ReadModels, history: History
) -> None:
    alone = ask("where is the flat?")
    embedder = StuckEmbedder()
    vectors = Vectors(tmp_path, models, embedder)
    vectors.embed_new("a")
    retriever = Retriever(models, history, lambda: vectors, budget_ms=300, fence_key=_FENCE_KEY)
    result = retriever.retrieve("a", RetrieveRequest(query="where is the flat?"))
    embedder.let_go.set()
    assert result.degraded == ("semantic: out of time",)
    assert comparable(result) == comparable(alone)
    retriever.close()
    vectors.close()


def test_a_parked_namespace_answers_from_before_and_says_so(
    ask: Ask, log: SqliteLog, models: ReadModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("poisoned")

    ask("sofa")
    # A handler that fails: no event that the catalogue takes makes one of today fail.
    monkeypatch.setattr("recollect.projections.projector.projector.apply_event", fail)
    log.append("a", drafts([message("new sofa")]))
    result = ask("sofa")
    assert "projection: parked at version 9: ValueError: poisoned" in result.degraded
    assert ids(result)[0] in {"e4", "e5"}


def test_a_full_disk_leaves_what_was_folded_before_readable(small_disk: Path, log: SqliteLog) -> None:
    models = ReadModels(small_disk, log)
    history = History(small_disk, log, models)
    vectors = Vectors(small_disk, models, _OFF)
    retriever = Retriever(models, history, lambda: vectors, budget_ms=60_000)
    log.append("a", drafts(_CONVERSATION))
    assert "e1" in ids(retriever.retrieve("a", RetrieveRequest(query="lisbon")))
    log.append("a", drafts([message(f"sofa {number} " + "x" * 3_000) for number in range(1_000)]))

    result = retriever.retrieve("a", RetrieveRequest(query="lisbon"))
    assert "e1" in ids(result)
    assert any("The disk is full; free some space" in part for part in result.degraded)
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert retriever.retrieve("a", RetrieveRequest(query="lisbon")).version == 1_008
    retriever.close()
    history.close()
    vectors.close()
    models.close()
