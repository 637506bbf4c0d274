"""What retrieval keeps in memory: whatever came between two questions, it says what a fresh look at the file says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.corpora import corpora
from support.events import Event, message
from support.memory import Memory
from support.read_models import connection_of

from recollect.api.retrieval.search.keyword_search import K1, B, KeywordScores, keyword_scores
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.search_index.index_cache import IndexCache
from recollect.projections.search_index.knowledge_index import KnowledgeIndex
from recollect.projections.search_index.postings import Postings

#: Words of one length that have no other stem, so that bytes and words are in proportion.
WORDS = [f"w{number:03}" for number in range(12)]


class Said(NamedTuple):
    text: str
    session: str | None


class Expired(NamedTuple):
    #: Which of the messages so far, from the end.
    back: int


class Asked(NamedTuple):
    words: tuple[str, ...]


Step = Said | Expired | Asked
_texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
_steps: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.builds(Said, _texts, st.sampled_from(["s", "t", None])),
        st.builds(Said, _texts, st.sampled_from(["s", "t", None])),
        st.builds(Expired, st.integers(1, 5)),
        st.builds(Asked, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True).map(tuple)),
    ),
    min_size=3,
    max_size=25,
)


def _known(knowledge: KnowledgeIndex) -> list[object]:
    """Return what an index knows. The time of an entity is read when it is shown."""
    graph = knowledge.graph
    items = [item._replace(occurred_at_us=0) if item.kind == "entity" else item for item in knowledge.items]
    sources = [knowledge.outdated, knowledge.later, knowledge.outdated_versions.tolist()]
    names = [graph.names_with_stem, graph.name_words, graph.speakers, graph.hubs]
    texts = [knowledge.terms, knowledge.title_stems, knowledge.digests, knowledge.dietary_rows.tolist()]
    return [items, *sources, graph.edges, graph.rows, *names, *texts]


@given(corpus=corpora(), data=st.data())
def test_what_is_known_after_any_messages_is_what_a_fresh_look_says(corpus: list[Event], data: st.DataObject) -> None:
    half = data.draw(st.integers(1, len(corpus)))
    with TemporaryDirectory() as folder, Memory(Path(folder)) as memory:
        kept = IndexCache()
        for events in (corpus[:half], corpus[half:]):
            if events:
                memory.add(events)
            with memory.models.reading("a") as snapshot:
                fresh = _known(IndexCache().get(snapshot).knowledge)
                assert _known(kept.knowledge(snapshot)) == fresh
                assert _known(kept.get(snapshot).knowledge) == fresh


def test_the_background_brings_the_index_up_to_date_where_queries_are_answered(
    log: SqliteLog, models: ReadModels
) -> None:
    kept = IndexCache()
    log.append("a", drafts([message("I like tea.")]))
    models.catch_up("a")
    with models.reading("a") as snapshot:
        kept.knowledge(snapshot)
        assert not kept.holds(snapshot)
        kept.get(snapshot)
        assert kept.holds(snapshot)
    fact = {"subject": "Ann", "predicate": "likes", "object": "coffee"}
    log.append("a", drafts([{"type": "fact.stated", "payload": fact}]))
    models.catch_up("a")
    with models.reading("a") as snapshot:
        knowledge = kept.knowledge(snapshot)
        assert [item.object for item in knowledge.items] == ["coffee"]
        assert kept.get(snapshot).knowledge is knowledge


@given(steps=_steps, tail_events=st.sampled_from([1, 500]), entries=st.sampled_from([5, 4_000_000]))
def test_what_is_kept_in_memory_says_what_a_fresh_look_says(steps: list[Step], tail_events: int, entries: int) -> None:
    with TemporaryDirectory() as folder:
        log = SqliteLog(Path(folder) / "log.db")
        models = ReadModels(Path(folder), log)
        new_postings = partial(Postings, entries_max=entries, tail_events_max=tail_events)
        kept = IndexCache(read_versions=3, new_postings=new_postings)
        said: list[str] = []
        for number, step in enumerate([*steps, Asked(tuple(WORDS))]):
            if isinstance(step, Said):
                said.append(f"e{number}")
                log.append("a", drafts([_message(step, said[-1])]))
            elif isinstance(step, Expired) and step.back <= len(said):
                payload = {"episode_ids": [said.pop(-step.back)]}
                log.append("a", drafts([{"type": "episodes.expired", "payload": payload}]))
            elif isinstance(step, Asked):
                models.catch_up("a")
                with models.reading("a") as snapshot:
                    same(_keywords(kept, snapshot, step.words), _keywords(IndexCache(), snapshot, step.words))
        models.close()
        log.close()


@given(texts=st.lists(_texts, min_size=2, max_size=12), older=st.integers(1, 11))
def test_an_older_look_at_a_file_does_not_see_what_came_later(texts: list[str], older: int) -> None:
    older = min(older, len(texts) - 1)
    with TemporaryDirectory() as folder:
        log = SqliteLog(Path(folder) / "log.db")
        models = ReadModels(Path(folder), log)
        kept = IndexCache()
        found: list[KeywordScores] = []
        for number, text in enumerate(texts):
            log.append("a", drafts([_message(Said(text, "s"), f"e{number}")]))
            models.catch_up("a")
            with models.reading("a") as snapshot:
                found.append(_keywords(kept, snapshot, WORDS))
        with models.reading("a") as snapshot:
            same(_keywords(kept, Snapshot(connection_of(snapshot), older), WORDS), found[older - 1])
            same(_keywords(kept, snapshot, WORDS), found[-1])
        models.close()
        log.close()


def test_scores_are_those_of_the_formula_and_close_to_those_of_sqlite(log: SqliteLog, models: ReadModels) -> None:
    rng = np.random.default_rng(3)
    # Word n is in one of n + 2 texts or so: some are rare, none is in most of them.
    said = [
        " ".join(
            ["pad0"] * int(rng.integers(1, 20)) + [word for n, word in enumerate(WORDS) if not rng.integers(n + 2)]
        )
        for _ in range(120)
    ]
    log.append("a", drafts([message(text) for text in said]))
    models.catch_up("a")
    with models.reading("a") as snapshot:
        for word in WORDS[2:]:
            found = _keywords(IndexCache(), snapshot, [word])
            np.testing.assert_allclose(found.turn, _formula(said, word), rtol=1e-5)
            np.testing.assert_array_equal(found.coverage > 0, [word in text.split() for text in said])
            rows: list[tuple[Any, ...]] = (
                connection_of(snapshot)
                .execute(
                    "SELECT rowid, -bm25(episodes_fts) FROM episodes_fts WHERE episodes_fts MATCH ? ORDER BY rowid",
                    (f"{{text caption}}: {word}",),
                )
                .fetchall()
            )
            holding = len(rows)
            # Theirs has no 1 + in the logarithm, and counts words where we count bytes.
            rarity = math.log((len(said) - holding + 0.5) / (holding + 0.5))
            ours = found.turn[[version - 1 for version, _ in rows]] / found.idf[word]
            np.testing.assert_allclose(ours, [score / rarity for _, score in rows], rtol=0.05)


def _formula(said: Sequence[str], word: str) -> list[float]:
    """Robertson and Zaragoza 2009, with lengths in bytes."""
    mean = sum(map(len, said)) / len(said)
    holding = sum(word in text.split() for text in said)
    rarity = math.log(1 + (len(said) - holding + 0.5) / (holding + 0.5))
    counts = [text.split().count(word) for text in said]
    return [
        rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * len(text) / mean))
        for count, text in zip(counts, said, strict=True)
    ]


def _message(said: Said, event_id: str) -> Event:
    envelope: dict[str, Any] = {} if said.session is None else {"session_id": said.session}
    return message(said.text, id=event_id, **envelope)


def _keywords(memory: IndexCache, snapshot: Snapshot, words: Sequence[str]) -> KeywordScores:
    held = memory.get(snapshot)
    assert len(held.episodes.window_lengths) == len(held.episodes)
    return keyword_scores(snapshot, held, words)


def same(one: KeywordScores, other: KeywordScores) -> None:
    for name in KeywordScores.__struct_fields__:
        mine: Any = getattr(one, name)
        np.testing.assert_equal(mine, getattr(other, name), name)
