"""The contracts of retrieval: never fails, is never late, is the same every time, keeps to its namespace and moment."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import apsw
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.corpora import OPTIONS, QUERIES, WORDS, corpora
from support.embedders import BrokenEmbedder, HashingEmbedder, StuckEmbedder
from support.events import Event, message
from support.memory import Memory as AnyMemory
from support.memory import comparable

from recollect.api.retrieval.contract.request import Ranking, RetrieveRequest
from recollect.events.errors import StorageError
from recollect.events.validation import drafts
from recollect.projections.embeddings.embedder import Embedder
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.embeddings.vectors import EpisodeCodes, Vectors
from recollect.projections.projector import projector
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.layout import namespace_folder


class Memory(AnyMemory):
    """A memory whose questions are asked at the same moment: how old something is counts, to the last digit."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, clock=lambda: datetime(2026, 6, 1, tzinfo=UTC), **options)


@contextmanager
def _memory(*corpora: Sequence[Event], **options: Any) -> Generator[Memory]:
    """Open a memory with the namespaces a, b …, each with one of `corpora`."""
    with TemporaryDirectory() as folder, Memory(Path(folder), **options) as memory:
        for name, events in zip("ab", corpora, strict=False):
            memory.add(events, name)
        yield memory


# -- without vectors --------------------------------------------------------------------------------------------------


class _CannotReadCodes(Vectors):
    def codes(self, namespace: str, snapshot: Snapshot, versions: Sequence[int], query: Vector) -> EpisodeCodes:
        raise StorageError("the disk reports an error")


class _CannotReadTexts(Vectors):
    def cached_texts(self, namespace: str, snapshot: Snapshot, digests: Sequence[bytes]) -> Any:
        raise StorageError("the disk reports an error")


def _in_trouble(memory: Memory) -> list[Embedder | Vectors]:
    """Return every embedder and every index that is having a bad day."""
    return [
        HashingEmbedder(state="loading"),
        HashingEmbedder(state="failed"),
        BrokenEmbedder(),
        _CannotReadCodes(memory.folder, memory.models, HashingEmbedder()),
        # Not the model that embedded everything.
        HashingEmbedder("another"),
    ]


@given(corpus=corpora(), query=QUERIES, options=OPTIONS)
def test_without_vectors_the_answer_is_that_of_keywords_alone_byte_for_byte(
    corpus: list[Event], query: str, options: dict[str, Any]
) -> None:
    with _memory(corpus) as memory:
        memory.embed()
        alone = memory.ask(query, **options)
        for broken in _in_trouble(memory):
            result = memory.ask(query, broken, **options)
            # Where no episode is looked at closely, no codes are read, and nothing is broken.
            if result.degraded or not isinstance(broken, Vectors):
                assert comparable(result) == comparable(alone)
            assert all(part.startswith("semantic: ") for part in result.degraded)
            if isinstance(broken, Vectors):
                broken.close()


@given(corpus=corpora(), query=QUERIES, mode=st.sampled_from(["active", "passive"]), gate=st.booleans())
def test_when_what_is_known_cannot_be_compared_the_whole_answer_is_that_of_keywords_alone(
    corpus: list[Event], query: str, mode: str, gate: bool
) -> None:
    fact = {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "likes", "object": "tea"}}
    options: dict[str, Any] = {"mode": mode, "gate": gate}
    with _memory([*corpus, fact | {"occurred_at": "2025-01-01T10:00:00Z"}]) as memory:
        memory.embed()
        broken = _CannotReadTexts(memory.folder, memory.models, HashingEmbedder())
        assert comparable(memory.ask(query, broken, **options)) == comparable(memory.ask(query, **options))
        broken.close()


def _empty(path: Path) -> None:
    for file in path.parent.glob("vectors.db*"):
        file.unlink()


def _scribble(path: Path) -> None:
    for file in path.parent.glob("vectors.db-*"):
        file.unlink()
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x5a" * (len(content) - 4096)
    path.write_bytes(content)


def _replace(path: Path) -> None:
    _empty(path)
    path.write_bytes(b"this is no database at all" * 100)


@pytest.mark.parametrize("damage", [_empty, _scribble, _replace])
@pytest.mark.parametrize("mode", ["active", "passive"])
def test_a_vector_file_that_is_gone_or_damaged_leaves_the_answer_of_keywords(
    tmp_path: Path, damage: Any, mode: str
) -> None:
    said = [message(f"sofa {word}", id=f"e{at}", session_id="s1") for at, word in enumerate(WORDS)]
    told = {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "likes", "object": "sofa"}}
    with Memory(tmp_path) as memory:
        memory.add([*said, told])
        memory.embed()
        options: dict[str, Any] = {"mode": mode, "session_id": "s1", "kinds": {"episode", "fact"}}
        alone = memory.ask("the sofa of lisbon", **options)
    damage(namespace_folder(tmp_path, "a") / "vectors.db")
    with Memory(tmp_path) as memory:
        result = memory.ask("the sofa of lisbon", HashingEmbedder(), **options)
        assert comparable(result) == comparable(alone)
        assert result.degraded
        assert all(part.startswith("semantic: ") for part in result.degraded)


@pytest.mark.parametrize("mode", ["active", "passive"])
def test_a_stuck_model_costs_nothing_but_its_own_part(tmp_path: Path, mode: str) -> None:
    rex = {"type": "entity.described", "payload": {"name": "Rex", "description": "a dog"}}
    said = [message(f"Rex saw number {number}", id=f"e{number}", session_id="s1") for number in range(3_000)]
    with Memory(tmp_path) as memory:
        for start in range(0, len(said), 1_000):
            memory.add([*said[start : start + 1_000]])
        memory.add([rex])
        memory.add([message("Rex is somebody's dog, the guide said")], "b")
        options: dict[str, Any] = {
            "mode": mode,
            "session_id": "s2" if mode == "passive" else None,
            "also": ("b",),
            "limit": 30,
        }
        query = "what did Rex see, number 7 or 2999?"
        alone = memory.ask(query, **options)
        stuck = StuckEmbedder()
        # Embedded with the same tag, so that the query is all that is missing.
        vectors = memory.vectors(stuck)
        vectors.embed_new("b")
        # Six times what the keywords need on an idle machine: only the model runs out of time.
        memory.budget_ms = 3_000
        asking = memory.retriever(vectors)
        asking.retrieve("a", RetrieveRequest(query="warm", ranking="keyword"))
        # The model answers when it is let go: this call returns before, or the test ends with another answer.
        late = asking.retrieve("a", RetrieveRequest(query=query, **options))
        stuck.let_go.set()
        assert comparable(late) == comparable(alone)
        assert late.degraded == ("semantic: 3000 of 3000 not embedded yet", "semantic: out of time")


# -- any query --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """A memory that nobody writes to any more."""
    corpus = [
        message("Ann moved to Lisbon", name="Ann", session_id="s1", id="e1"),
        message("他住在东京的一间小公寓里 and 'the sofa'", name="Bob", session_id="s1", id="e2"),
        {"type": "fact.stated", "payload": {"subject": "Ann", "predicate": "lives in", "object": "Lisbon"}},
        {"type": "relationship.stated", "payload": {"source": "Ann", "type": "knows", "target": "Bob"}},
        {"type": "document.added", "payload": {"document_id": "d", "title": "100 %_\\ rules", "text": "Be kind."}},
    ]
    with Memory(tmp_path_factory.mktemp("spoken")) as memory:
        memory.add(corpus)
        memory.embed()
        yield memory


_any_bytes = st.one_of(
    st.text(max_size=200),
    st.binary(max_size=200).map(lambda raw: raw.decode("utf-8", "surrogateescape")),
    st.lists(st.sampled_from(["Ann", " ", '"', "'", "*", "NEAR(", "%", "\\", "\0", "\ud800", "?", "\n", "京"])).map(
        "".join
    ),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=_any_bytes, options=OPTIONS, ranking=st.sampled_from(get_args(Ranking)))
@example(query='"AND" OR NEAR(a b) * ^ { } : - + () text:x', options={"mode": "passive"}, ranking="weighted")
@example(query="in the 31st of February 9999, " * 40, options={}, ranking="weighted")
@example(query="\0", options={"kinds": {"fact"}}, ranking="weighted")
def test_no_query_of_any_bytes_raises_in_any_mode_format_or_ranking(
    spoken: Memory, query: str, options: dict[str, Any], ranking: Ranking
) -> None:
    for embedder in (None, HashingEmbedder()):
        result = spoken.ask(query, embedder, ranking=ranking, **options)
        assert [part for part in result.degraded if not part.startswith("semantic: turned off")] == []
        result.context.encode()
        assert result.explain()["understood"]


@pytest.mark.parametrize(
    ("field", "moment", "found"),
    [
        ("since", "0001-01-01T00:00:00+14:00", True),
        ("until", "0001-01-01T00:00:00+14:00", False),
        ("since", "9999-12-31T23:59:59-14:00", False),
        ("until", "9999-12-31T23:59:59-14:00", True),
    ],
)
def test_the_ends_of_time_are_times_like_any_other(spoken: Memory, field: str, moment: str, found: bool) -> None:
    for time_expression in ("last week", "two years ago in May", "next summer"):
        query = f"did Ann move to Lisbon {time_expression}?"
        result = spoken.ask(query, HashingEmbedder(), gate=False, **{field: moment})
        assert result.degraded == ()
        assert ("e1" in [item.id for item in result.items]) is found


@pytest.mark.parametrize(
    "query",
    [
        "\n" * 500_000,
        " " * 500_000,
        "?" * 500_000,
        "a" * 1_000_000,
        "user: " * 100_000,
        "ha" * 400_000,
        "\n \n" * 300_000,
    ],
    ids=["lines", "spaces", "marks", "letters", "roles", "laughter", "empty lines"],
)
def test_half_a_million_signs_of_anything_before_a_question_take_nothing_from_its_answer(
    spoken: Memory, query: str
) -> None:
    result = spoken.ask(f"{query}\n\nWhere did Ann move to, Lisbon?", HashingEmbedder())
    assert result.degraded == ()
    assert "e1" in [item.id for item in result.items]


# -- the budget -------------------------------------------------------------------------------------------------------


def test_a_read_model_that_another_process_writes_to_is_read_as_it_is(tmp_path: Path) -> None:
    with Memory(tmp_path, budget_ms=500) as memory:
        memory.add([message("the sofa is red", id="e1")])
        asking = memory.retriever()
        asking.retrieve("a", RetrieveRequest(query="sofa"))
        memory.log.append("a", drafts([message("the sofa is blue", id="e2")]))
        other = apsw.Connection(str(namespace_folder(tmp_path, "a") / "000001.db"))
        other.execute("BEGIN EXCLUSIVE")
        result = asking.retrieve("a", RetrieveRequest(query="sofa"))
        assert [item.id for item in result.items] == ["e1"]
        assert "projection: 1 of 2 events not folded yet" in result.degraded
        other.execute("ROLLBACK")
        other.close()
        assert len(asking.retrieve("a", RetrieveRequest(query="sofa")).items) == 2


def test_a_slow_catch_up_is_cut_off_and_what_was_folded_is_answered_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fold = projector.apply_event

    def slowly(*arguments: Any) -> None:
        time.sleep(3.1)
        fold(*arguments)

    # One event takes longer than the 60 % of the budget that catching up may take; the rest is enough to answer.
    with Memory(tmp_path, budget_ms=5_000, first_batch_events=1) as memory:
        memory.add([message("the sofa is red", id="e1")])
        # A handler is never that slow: this simulates a slow disk.
        monkeypatch.setattr(projector, "apply_event", slowly)
        memory.log.append("a", drafts([message(f"sofa number {number}", id=f"s{number}") for number in range(100)]))
        result = memory.ask("sofa red")
        assert "projection: 99 of 101 events not folded yet" in result.degraded
        assert {item.id for item in result.items} == {"e1", "s0"}


@pytest.mark.parametrize("mode", ["active", "passive"])
def test_the_first_question_to_20000_episodes_is_answered_in_whole(tmp_path: Path, mode: str) -> None:
    said = [
        message(f"number {number} of the sofa", id=f"e{number}", session_id=f"s{number // 50}")
        for number in range(20_000)
    ]
    with Memory(tmp_path) as memory:
        for start in range(0, len(said), 1_000):
            memory.log.append("a", drafts(said[start : start + 1_000]))
        memory.models.replay("a")
        result = memory.ask("what about number 19999 and the sofa?", mode=mode)
        assert "e19999" in [item.id for item in result.items]
        assert result.degraded == ("semantic: turned off; name a model in RECOLLECT_EMBEDDING_MODEL",)


# -- the same every time ----------------------------------------------------------------------------------------------


@given(corpus=corpora(), query=QUERIES, options=OPTIONS, data=st.data())
def test_the_answer_is_the_same_for_new_retrievers_after_a_replay_and_however_it_was_loaded(
    corpus: list[Event], query: str, options: dict[str, Any], data: st.DataObject
) -> None:
    half = data.draw(st.integers(0, len(corpus)))
    with _memory(corpus[:half] or [message("x", id="first")]) as memory:
        vectors = memory.vectors(HashingEmbedder())
        grown = memory.retriever(vectors)
        request = RetrieveRequest(query=query, **options)
        # Asked half way, so that the rest is added to what is in memory.
        grown.retrieve("a", request)
        if corpus[half:]:
            memory.add(corpus[half:])
        vectors.embed_new("a")
        expected = comparable(grown.retrieve("a", request))
        assert comparable(grown.retrieve("a", request)) == expected
        assert comparable(memory.retriever(vectors).retrieve("a", request)) == expected
        memory.models.replay("a")
        assert comparable(grown.retrieve("a", request)) == expected
        assert comparable(memory.retriever(vectors).retrieve("a", request)) == expected


@pytest.mark.parametrize(
    ("later", "query"),
    [
        # Who writes is whom "I" means, a person, and no neighbour of everything that is known of the others.
        (message("hello", name="Rex"), "What do I like?"),
        (message("hello", name="rex"), "What do I like?"),
        (message("hello", name="Rex"), "What does the bridge like?"),
        # An entity has the date of the last message that names it.
        (message("We saw the Old Bridge", name="Ann"), "Old Bridge"),
    ],
)
def test_a_message_that_changes_how_facts_are_ranked_or_dated_changes_the_next_answer(
    tmp_path: Path, later: Event, query: str
) -> None:
    known: list[Event] = [
        message("good morning", name="Ann"),
        {"type": "entity.described", "payload": {"name": "Old Bridge", "description": "a bridge of stone"}},
        {"type": "entity.described", "payload": {"name": "Rex", "description": "keeps the bridge"}},
        {"type": "relationship.stated", "payload": {"source": "Rex", "type": "keeps", "target": "Old Bridge"}},
        {"type": "fact.stated", "payload": {"subject": "Rex", "predicate": "likes", "object": "tea"}},
        {"type": "fact.stated", "payload": {"subject": "Zoë", "predicate": "likes", "object": "Rex"}},
    ]
    known = [event | {"occurred_at": "2025-01-01T10:00:00Z"} for event in known]
    request = RetrieveRequest(query=query, kinds=frozenset({"fact", "entity"}))
    with Memory(tmp_path) as memory:
        memory.add(known)
        grown = memory.retriever()
        before = comparable(grown.retrieve("a", request))
        memory.add([later | {"occurred_at": "2025-03-01T10:00:00Z"}])
        after = comparable(grown.retrieve("a", request))
        assert after["items"] != before["items"]
        assert after == comparable(memory.retriever().retrieve("a", request))


# -- namespaces -------------------------------------------------------------------------------------------------------


@given(mine=corpora(), theirs=corpora(), query=QUERIES, options=OPTIONS)
def test_nothing_of_another_namespace_changes_an_answer_and_with_also_nothing_of_a_third_one(
    mine: list[Event], theirs: list[Event], query: str, options: dict[str, Any]
) -> None:
    with _memory(mine) as alone, _memory(mine, theirs) as beside:
        for memory in (alone, beside):
            memory.embed("a")
        answers = [comparable(memory.ask(query, HashingEmbedder(), **options)) for memory in (alone, beside)]
        assert answers[0] == answers[1]
        secret = message("swordfish sofa lisbon rex tea", id="secret")
        beside.add([secret], "c")
        with_both = beside.ask(query, HashingEmbedder(), also=("b",), **options)
        assert {item.namespace for item in with_both.items} <= {"a", "b"}
        assert "swordfish" not in with_both.context


def test_the_same_namespace_again_in_also_adds_nothing(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        memory.add([message("the sofa is red", id="e1"), message("the sofa is blue", id="e2")])
        memory.add([message("a sofa elsewhere", id="b1")], "b")
        assert comparable(memory.ask("sofa", also=("a",))) == comparable(memory.ask("sofa"))
        assert comparable(memory.ask("sofa", also=("b", "b"))) == comparable(memory.ask("sofa", also=("b",)))
        assert {item.id for item in memory.ask("sofa", also=("b",)).items} == {"e1", "e2", "b1"}
