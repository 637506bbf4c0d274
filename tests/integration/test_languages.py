from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.events import Event, message
from support.languages import TALKS
from support.read_models import connection_of

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.retriever import Retriever
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.validation import drafts
from recollect.projections.embeddings.embedder import NoEmbedder
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels
from recollect.projections.search_index.episode_arrays import empty_episode_arrays
from recollect.projections.text.segments import search_segments

#: Questions of all languages together that may miss the first three.
_MISSES_MAX = 2


@pytest.fixture
def retriever(tmp_path: Path, models: ReadModels, history: History) -> Generator[Retriever]:
    """A retriever that has no embedding model."""
    vectors = Vectors(tmp_path, models, NoEmbedder())
    retriever = Retriever(models, history, lambda: vectors, budget_ms=10_000)
    yield retriever
    retriever.close()
    vectors.close()


def talk(language: str) -> list[Event]:
    return [
        message(text, name="A", session_id=f"{language}{number // 4}", id=f"{language}{number}")
        for number, text in enumerate(TALKS[language].turns)
    ]


def found(retriever: Retriever, query: str, limit: int = 3) -> list[str]:
    return [item.id for item in retriever.retrieve("a", RetrieveRequest(query=query, limit=limit)).items]


def ungated(retriever: Retriever, query: str) -> Sequence[Item]:
    return retriever.retrieve("a", RetrieveRequest(query=query, gate=False)).items


def missed(retriever: Retriever, language: str) -> list[str]:
    """Return the questions whose answer is not among the first three."""
    asked = TALKS[language].questions
    return [query for query, answer in asked if f"{language}{answer}" not in found(retriever, query)]


@pytest.mark.parametrize("language", TALKS)
def test_questions_are_answered_in_a_memory_of_one_language(
    log: SqliteLog, retriever: Retriever, language: str
) -> None:
    log.append("a", drafts(talk(language)))
    assert len(missed(retriever, language)) <= 1


def test_questions_are_answered_in_a_memory_of_all_languages(log: SqliteLog, retriever: Retriever) -> None:
    for language in TALKS:
        log.append("a", drafts(talk(language)))
    misses = [query for language in TALKS for query in missed(retriever, language)]
    assert len(misses) <= _MISSES_MAX, misses


def test_a_replay_says_the_same_as_live_folding(log: SqliteLog, models: ReadModels) -> None:
    for language in TALKS:
        for event in talk(language):
            log.append("a", drafts([event]))
            models.catch_up("a")
    assert models.check("a").is_equal


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("猫叫什么名字", "他养了一只猫，名字叫豆豆"),
        ("она любит собак", "Собака Анны любит гулять"),
        ("Schlüssel", "Der Hausschlüssel liegt unter dem Topf"),
        ("IPHONE照片", "我用iPhone拍照"),
        ("ｶﾒﾗ", "新しいカメラを買った"),
        ("동물병원에", "동물병원은 어디예요"),
        ("Welche Strasse?", "Die Straße ist gesperrt"),
    ],
)
def test_what_is_known_is_found_like_what_was_said(log: SqliteLog, retriever: Retriever, query: str, text: str) -> None:
    document = {"document_id": "d", "title": "T", "text": text}
    log.append("a", drafts([{"type": "document.added", "payload": document}, message(text, id="e")]))
    for kind in ("document", "episode"):
        request = RetrieveRequest(query=query, kinds=frozenset({kind}), gate=False)
        assert ["keyword" in item.ranks for item in retriever.retrieve("a", request).items] == [True]


def test_a_summary_is_found_by_the_signs_of_what_it_stands_for(log: SqliteLog, retriever: Retriever) -> None:
    events = talk("chinese")[:4]
    summary = {"text": "他们聊了家里的事。", "source_events": [event["id"] for event in events]}
    log.append("a", drafts([*events, {"type": "episodes.compressed", "id": "sum", "payload": summary}]))
    expired = {"episode_ids": [event["id"] for event in events]}
    log.append("a", drafts([{"type": "episodes.expired", "payload": expired}]))
    for query in ("豆豆这只猫", "去爬山", "聊了家里什么事"):
        found = [item for item in ungated(retriever, query) if "keyword" in item.ranks]
        assert found
        assert {item.summary_id or item.id for item in found} == {"sum"}


def test_a_turn_is_as_long_as_its_text_whatever_it_is_found_by(log: SqliteLog, models: ReadModels) -> None:
    text = "他住在东京的一间小公寓里"
    log.append("a", drafts([message(text)]))
    models.catch_up("a")
    with models.reading("a") as snapshot:
        roster = empty_episode_arrays(0).extended(snapshot.episodes, snapshot.version)
        terms = list(connection_of(snapshot).execute("SELECT terms FROM episodes"))
    assert list(roster.lengths) == [len(text.encode())]
    assert terms == [(" ".join(search_segments(text)),)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I moved to Lisbon last week",
        "Where does Zoë’s naïve café friend live?",
        "The Germans say und a lot",
        "What is von der Leyen called?",
        "Bring the hat and the bin, or die",
        "We drove from Berlin via Vienna, all of us, and it was a long ride 🎉",
        "ok",
        "lol",
    ],
)
def test_english_gives_no_segments(text: str) -> None:
    assert search_segments(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("他住在东京", ["他住", "住在", "在东", "东京", "住", "东", "京"]),
        ("犬を飼う", ["犬", "飼"]),
        ("コーヒー", ["コー", "ーヒ", "ヒー"]),
        ("강아지를", ["강아", "아지", "지를"]),
        ("книги", ["книг"]),
        ("Die Straße", ["strass"]),
        ("Er fliegt mit den Kindern", ["flieg", "kind"]),
        ("Sie sucht den Hausschlüssel", ["such", "schlussel", "lussel", "ussel"]),
    ],
)
def test_other_writing_gives_pairs_signs_and_stems(text: str, expected: list[str]) -> None:
    assert search_segments(text) == expected


@given(
    st.one_of(
        st.text(max_size=200),
        st.text(st.sampled_from("аяёйщЖäöüßẞ漢字かなカナー강아ไทยุ้ aeiou.\ud800\u0308ｶﾞ\u1100\u1161x"), max_size=60),
    )
)
def test_segments_never_raise_and_are_always_the_same(text: str) -> None:
    found = search_segments(text)
    assert found == search_segments(text)
    assert all(term and not term.isspace() for term in found)
