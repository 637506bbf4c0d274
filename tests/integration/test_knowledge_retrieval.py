"""Knowledge in answers: neighbours in the graph, documents that replace others, tasks, repeated texts and JSON data."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.embedders import HashingEmbedder
from support.events import Event, message

from recollect import Recollect
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.retrieval.search.knowledge_walk import neighbours
from recollect.api.retrieval.search.score_background import ScoreBackground
from recollect.api.retrieval.understanding.first_person import is_first_person
from recollect.api.settings import load_settings
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.embeddings.vectors import Vectors
from recollect.projections.search_index.knowledge_graph import GraphEdge, KnowledgeGraph

Tell = Callable[..., None]
Ask = Callable[..., RetrieveResult]


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


@pytest.fixture
def tell(memory: Recollect) -> Tell:
    """Append events."""

    def tell(*events: Event) -> None:
        memory.append("a", list(events))

    return tell


@pytest.fixture
def ask(memory: Recollect) -> Ask:
    def ask(query: str, **options: Any) -> RetrieveResult:
        return memory.retrieve("a", query, **options)

    return ask


def stated(kind: str, **payload: Any) -> Event:
    return {"type": kind, "payload": payload}


def fact(subject: str, predicate: str, object: str, **payload: Any) -> Event:
    return stated("fact.stated", subject=subject, predicate=predicate, object=object, **payload)


def relation(source: str, type: str, target: str, confidence: float = 1.0) -> Event:
    return stated("relationship.stated", source=source, type=type, target=target, confidence=confidence)


def document(id: str, title: str, text: str, *relations: tuple[str, str]) -> Event:
    listed = [{"type": type, "target": target} for type, target in relations]
    return stated("document.added", document_id=id, title=title, text=text, relations=listed)


def texts(result: RetrieveResult) -> list[str]:
    return [item.text for item in result.items]


# -- the graph --------------------------------------------------------------------------------------------------------

_VET = (
    relation("Rex", "treated by", "Dr. Huber"),
    relation("Dr. Huber", "works at", "Hauptplatz"),
    fact("Dr. Huber", "phone is", "555-1234"),
    fact("Hauptplatz", "opens at", "eight"),
    fact("Mona", "collects", "stamps"),
)


def test_neighbours_within_two_steps_come_along_and_others_do_not(tell: Tell, ask: Ask) -> None:
    tell(*_VET, fact("Linz", "has", "trams"), relation("Hauptplatz", "lies in", "Linz"))
    result = texts(ask("what about Rex?"))
    assert {"Dr. Huber's phone is 555-1234", "Dr. Huber works at Hauptplatz", "Hauptplatz opens at eight"} <= {*result}
    assert result[0] == "Rex treated by Dr. Huber"
    assert not {"Mona collects stamps", "Linz has trams"} & {*result}


def test_a_relation_of_low_confidence_connects_nothing_and_is_no_item(tell: Tell, ask: Ask) -> None:
    tell(relation("Rex", "knows", "Bello", 0.2), fact("Bello", "eats", "socks"))
    assert texts(ask("what about Rex?", gate=False)) == []


def test_a_name_is_found_by_its_plural_a_part_of_it_and_its_beginning(tell: Tell, ask: Ask) -> None:
    tell(fact("restaurant", "name is", "Nightshade"), *_VET, fact("Photographic Society", "meets on", "Mondays"))
    assert texts(ask("good restaurants?"))[0] == "restaurant's name is Nightshade"
    assert "Dr. Huber's phone is 555-1234" in texts(ask("which number has Huber?"))
    assert "Photographic Society meets on Mondays" in texts(ask("when does the photogr meet?", gate=False))


def test_statements_of_a_speaker_are_no_neighbours_of_each_other(tell: Tell, ask: Ask) -> None:
    tell(message("hello", name="Eva"), fact("Eva", "has dog", "Rex"), fact("Eva", "plays", "violin"), *_VET)
    result = texts(ask("what about Rex?"))
    assert "Eva has dog Rex" in result
    assert "Eva plays violin" not in result


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.floats(0, 1)), max_size=40),
    st.floats(0, 1),
)
def test_a_walk_ends_and_gives_no_node_more_than_its_entry(
    pairs: Sequence[tuple[int, int, float]], strength: float
) -> None:
    edges: dict[int | str, list[GraphEdge]] = {}
    for first, second, weight in pairs:
        edges.setdefault(first, []).append(GraphEdge(second, weight))
        edges.setdefault(second, []).append(GraphEdge(first, weight))
    reached = neighbours(KnowledgeGraph(edges=edges), {0: strength}, {})
    assert 0 not in reached
    assert all(0 <= value <= strength / 1.5 for value in reached.values())


# -- documents --------------------------------------------------------------------------------------------------------

_RULES = """Bikes stand in the yard, under the new roof.

Rubbish is collected on Wednesday mornings, paper on Fridays.

A note of the doctor is needed from the third day on."""


def test_a_passage_of_a_document_comes_without_the_others(tell: Tell, ask: Ask) -> None:
    tell(document("rules", "House", _RULES))
    assert texts(ask("when is the rubbish collected?")) == [f"House: {_RULES.splitlines()[2]}"]


_OLD = document("old", "Refund policy 2024", "Refunds are possible within 14 days.", ("governs", "Refunds"))
_NEW = document(
    "new", "Refund policy 2026", "Refunds are possible within 30 days.", ("supersedes", "old"), ("governs", "Refunds")
)
_BLOG = document(
    "blog", "Blog", "Refunds are possible within 90 days, I heard.", ("contradicts", "new"), ("mentions", "Refunds")
)


@pytest.mark.parametrize("order", [(_OLD, _NEW, _BLOG), (_BLOG, _NEW, _OLD)])
def test_a_replaced_and_a_contradicted_document_rank_below_and_are_marked(
    tell: Tell, ask: Ask, order: Sequence[Event]
) -> None:
    tell(*order)
    result = ask("within how many days are refunds possible?")
    assert result.items[0].id == "new#0"
    assert result.answer.authoritative == ("new#0",)
    assert result.answer.contradiction_rate == pytest.approx(2 / 3)
    assert "14 days. (outdated: replaced by Refund policy 2026)" in result.context
    assert "I heard. (contradicted by Refund policy 2026)" in result.context
    by_id = {item.id: item.as_json() for item in result.items}
    assert (by_id["old#0"]["outdated"], by_id["old#0"].get("replaced_by")) == (True, "Refund policy 2026")
    assert (by_id["blog#0"]["outdated"], by_id["blog#0"].get("contradicted_by")) == (False, "Refund policy 2026")


def test_the_new_document_stands_in_for_the_one_that_the_words_match(tell: Tell, ask: Ask) -> None:
    tell(document("old", "Rules 2023", "Grills: electric ones only."))
    tell(document("new", "Rules 2026", "No fires of any sort.", ("supersedes", "old")))
    assert [item.id for item in ask("electric grills?").items] == ["new#0", "old#0"]
    tell(stated("document.removed", document_id="new"))
    [old] = ask("electric grills?").items
    assert (old.id, old.outdated) == ("old#0", False)


# -- tasks, questions and ratings -------------------------------------------------------------------------------------


def test_a_task_finds_its_procedure_and_a_choice_its_preference(tell: Tell, ask: Ask) -> None:
    tell(
        stated(
            "procedure.recorded", name="Deploy to Vercel", trigger="user asks to deploy an app", steps=["run tests"]
        ),
        stated("preference.stated", category="formatting", key="bullets", value="no"),
        relation("Kira", "owned by", "Otto"),
        fact("Otto", "dislikes", "Docker"),
        message("morning", name="Otto"),
    )
    result = texts(ask("can you deploy the Kira app like last time?", gate=False))
    assert any(text.startswith("**Deploy to Vercel**") for text in result)
    assert "Otto dislikes Docker" in result
    assert texts(ask("should I use bullets?")) == ["formatting.bullets: no"]


def test_one_bad_rating_lowers_a_procedure_and_does_not_remove_it(tell: Tell, ask: Ask) -> None:
    tell(stated("procedure.recorded", name="Release", trigger="release day", steps=["tag", "publish"]) | {"id": "p"})
    scores: list[float] = []
    for _ in range(2):
        result = ask("how do we release?")
        scores.append(result.items[0].score)
        tell(stated("retrieval.rated", trace_id=result.trace_id, rating="misleading", memory_ids=["p"]))
    assert scores[1] < scores[0]


def test_a_question_about_a_stranger_is_not_answered_by_another_person(tell: Tell, ask: Ask) -> None:
    tell(fact("Mona", "works as", "nurse"))
    assert texts(ask("where does Mona work?")) == ["Mona works as nurse"]
    assert texts(ask("where does Felix work?")) == []


def test_the_pronouns_of_the_first_person_are_recognised() -> None:
    assert all(map(is_first_person, ["What's my job?", "do I know her?", "Wo wohne ich?", "где мой паспорт?"]))
    assert not any(map(is_first_person, ["Where does Mona live?", "is it raining?", ""]))


class NarrowConeEmbedder(HashingEmbedder):
    """The same bag of words in a narrow cone: all cosines are high, as those of some models are."""

    def embed_tokens(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        return [self._narrowed(embedding) for embedding in super().embed_tokens(stretches)]

    def embed_query(self, text: str) -> TokenEmbedding:
        return self._narrowed(super().embed_query(text))

    def _narrowed(self, embedding: TokenEmbedding) -> TokenEmbedding:
        vector = embedding.vector + np.float32(0.25)
        return embedding._replace(vector=vector / np.float32(np.linalg.norm(vector)))


def _deviations(embedder: HashingEmbedder) -> list[float]:
    vectors = cast(Vectors, SimpleNamespace(embedder=embedder, basis=embedder.basis))
    query, near, far = embedder.embed(["red wine and chocolate", "red wine", "a train that is late"])
    cosines = np.array([query @ near, query @ far], np.float32)
    return ScoreBackground().deviations(vectors, query, cosines).tolist()


def test_deviations_are_alike_for_a_model_whose_cosines_are_all_high() -> None:
    (near, far), (narrow_near, narrow_far) = _deviations(HashingEmbedder()), _deviations(NarrowConeEmbedder("cone"))
    assert near > 3 * abs(far)
    assert abs(narrow_near - near) < 0.3 * near
    assert abs(narrow_far - far) < 0.3 * near


# -- repeated texts, data, layers and pins ----------------------------------------------------------------------------


def test_the_same_words_of_a_speaker_are_one_item_with_all_sources(tell: Tell, ask: Ask) -> None:
    tell(*(message("My code is 4711.", name="Kay") | {"id": f"k{n}"} for n in range(40)))
    tell(message("my code is 4711", name="Bo") | {"id": "bo"})
    items = {item.speaker: item for item in ask("what is the code, 4711?", gate=False).items}
    assert {*items} == {"Kay", "Bo"}
    assert items["Kay"].id == "k39"
    assert items["Bo"].source_events == ("bo",)
    assert {*items["Kay"].source_events} == {f"k{n}" for n in range(40)}


def test_data_is_found_by_its_names_and_values(tell: Tell, ask: Ask) -> None:
    for number, name in ((17, "Ida Holm"), (18, "Per Lind")):
        data = {"orderNumber": number, "customer": {"fullName": name}, "lines": [{"sku_code": "LAMP-9"}]}
        tell({"type": "message.added", "payload": {"role": "tool:shop", "data": data}})
    assert "Ida Holm" in texts(ask("order number 17", gate=False))[0]
    assert "Per Lind" in texts(ask("customer Lind", gate=False))[0]
    assert len(texts(ask("sku code", gate=False))) == 2


def test_an_action_is_found_by_details_and_tags_and_shows_the_details(tell: Tell, ask: Ask) -> None:
    tell(stated("action.recorded", text="Build failed", tags=["nightly"], details={"exitCode": 2, "log": "no zlib"}))
    assert texts(ask("zlib", gate=False)) == ["Build failed (exit Code: 2, log: no zlib)"]
    assert texts(ask("nightly", gate=False)) == ["Build failed (exit Code: 2, log: no zlib)"]


def test_the_layer_of_a_fact_is_kept_and_proactive_facts_and_pinned_messages_are_in_the_profile(
    tell: Tell, ask: Ask
) -> None:
    tell(fact("Ann", "arrives on", "Monday", layer="proactive"), message("mind the dog") | {"id": "dog"})
    tell(*(message(f"it rains on day {n}") for n in range(20)), stated("memory.pinned", memory_id="dog"))
    result = ask("hi", mode="passive", session_id="new")
    profile = [item for item in result.items if "profile" in item.ranks]
    assert {item.text for item in profile} == {"Ann arrives on Monday", "mind the dog"}
    assert {item.as_json()["layer"] for item in profile} == {"proactive", "episodic"}


# -- guidance ---------------------------------------------------------------------------------------------------------


def test_a_question_is_no_authority_and_neither_is_what_another_one_says(tell: Tell, ask: Ask) -> None:
    tell(message("Does the blue lamp stand on the piano?", name="Bo") | {"id": "question"})
    tell(message("The blue lamp of Ann stands on the piano.", name="Bo") | {"id": "bo"})
    tell(message("The piano is mine, and so is the blue lamp.", name="Ann") | {"id": "ann"})
    answer = ask("does Ann have the blue lamp on the piano?", gate=False).answer
    assert not {"question", "bo"} & {*answer.authoritative}


def test_a_document_that_only_mentions_what_another_one_governs_supports_the_answer(
    memory: Recollect, tell: Tell, ask: Ask
) -> None:
    tell(
        document("policy", "Travel policy", "Flights are booked in second class.", ("governs", "Travel")),
        document("news", "Intranet news", "Travel: some booked first class flights last year.", ("mentions", "Travel")),
    )
    guidance = ask("Which class is booked for travel flights?").answer
    assert guidance is not None
    assert (guidance.authoritative, guidance.supporting) == (("policy#0",), ("news#0",))
    assert guidance.entities == ("Travel",)
    assert guidance.relations == (("policy", "governs", "Travel"), ("news", "mentions", "Travel"))
    assert {edge["source"] for edge in memory.graph("a", "travel")["edges"]} == {"policy", "news"}


def test_an_alias_finds_what_is_stated_under_the_name(tell: Tell, ask: Ask) -> None:
    tell(
        stated("entity.described", name="Nightshade", type="project", aliases=["NS", "Shade"]),
        fact("Nightshade", "is written in", "Rust"),
        message("The weather is nice."),
    )
    for question in ("Which language is Shade written in?", "Which language is NS written in?"):
        assert ask(question).items[0].text == "Nightshade is written in Rust"
