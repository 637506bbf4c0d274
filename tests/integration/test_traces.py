"""Every retrieval can be explained later, and what was said of its answer counts in the next one."""

from __future__ import annotations

import json
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from support.command_line import recollect
from support.embedders import HashingEmbedder
from support.events import Event, message
from support.memory import Memory
from support.server import Server

from recollect import Recollect
from recollect.api.memory.subject_export import as_markdown
from recollect.api.result_types import Trace
from recollect.api.retrieval.answer.trace_store import (
    TraceStore,
    find_trace,
    list_traces,
    remove_old_traces,
    trace_files,
)
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.contract.result import RetrieveResult
from recollect.api.settings import load_settings
from recollect.events.envelope import now_us
from recollect.events.errors import InvalidNamespace, NotFound


@pytest.fixture
def memory(tmp_path: Path) -> Generator[Recollect]:
    with Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory:
        yield memory


def stated(kind: str, id: str | None = None, **payload: Any) -> Event:
    return {"type": kind, "payload": payload} | ({} if id is None else {"id": id})


def reasons(trace: Trace) -> dict[str, str]:
    return {drop["id"]: drop["reason"] for drop in trace["dropped"]}


# -- what a trace has -------------------------------------------------------------------------------------------------


def test_a_trace_has_the_question_as_understood_and_the_answer_as_given(memory: Recollect) -> None:
    last_week = datetime.now(UTC) - timedelta(days=7)
    moved = message("I moved to Lisbon", name="Ann", id="e1", occurred_at=last_week.isoformat())
    memory.append("a", [moved, message("Nice!", name="Bob", id="e2")])
    result = memory.retrieve("a", "where did Ann move last week?", limit=3)
    trace = memory.trace("a", result.trace_id)
    [understood] = trace["understood"]
    assert understood["keywords"] == ["move"]
    assert understood["participants"] == ["ann"]
    assert len(understood["time_ranges"]) == 1
    assert understood["cues"].keys() >= {"when", "recall", "small_talk"}
    assert (trace["query"], trace["request"], trace["trigger"]) == (
        "where did Ann move last week?",
        {"limit": 3},
        "asked",
    )
    assert trace["context"] == result.context != ""
    assert [item["id"] for item in trace["items"]] == [item.id for item in result.items] == ["e1"]
    assert trace["answer"] == result.answer.as_json()
    assert trace["degraded"] == list(result.degraded)
    assert trace["sources"] == {"e1": ["e1"]}
    assert trace["version"] == 2


def test_each_candidate_has_its_rank_in_each_list_its_features_and_its_score(tmp_path: Path) -> None:
    with Memory(tmp_path) as memory:
        said = [message(f"the sofa of shop {number}", id=f"e{number}", session_id="s") for number in range(8)]
        memory.add([*said, message("it rains", id="rain", session_id="s")])
        vectors = memory.vectors(HashingEmbedder())
        vectors.embed_new("a")
        result = memory.ask("which shop has sofa 3?", vectors)
    trace = result.explain()
    candidates = trace["candidates"]
    scores = [candidate["score"] for candidate in candidates]
    assert scores == sorted(scores, reverse=True)
    [best, *_] = candidates
    assert best["version"] == 4
    assert {"keyword", "keyword_window", "semantic", "semantic_window"} <= best["ranks"].keys()
    assert best["ranks"]["keyword"] == 1
    assert {"bm25_turn", "dense_turn", "late"} <= best["features"].keys()
    [gate] = trace["gate"]
    assert 0 < gate["grounding"] <= 1
    assert gate["weights"].endswith("hybrid")
    assert gate["measures"]["coverage"] > 0
    by_keyword = sorted(candidate["ranks"]["keyword"] for candidate in candidates if "keyword" in candidate["ranks"])
    assert by_keyword == list(range(1, len(by_keyword) + 1))


def test_all_that_was_found_and_is_not_in_the_answer_has_its_reason(memory: Recollect) -> None:
    memory.append(
        "a",
        [
            message("the red sofa stands in the old house", id="one", name="Ann"),
            message("The red sofa stands in the old house!", id="twin", name="Bob"),
            message("the red sofa of Porto is broken and old", id="long", name="Ann"),
            message("the house has a red sofa, an old lamp and a blue door to the garden", id="last", name="Ann"),
            stated("fact.stated", "f1", subject="sofa", predicate="stands in", object="house", source_events=["one"]),
        ],
    )
    question = "where is the red sofa of the old house?"
    found = [memory.retrieve("a", question, limit=limit) for limit in (10, 2)]
    whole, few = (reasons(memory.trace("a", result.trace_id)) for result in found)
    pair = {"one", "twin"} - {item.id for item in found[0].items}
    [dropped] = pair
    kept = ({"one", "twin"} - pair).pop()
    assert whole[dropped] == f"says the same as {kept}"
    assert "over the limit" in few.values()
    if kept == "one":
        assert whole["f1"] == "told by one"
    small = memory.retrieve("a", question, budget_tokens=70)
    assert "over the token budget" in reasons(memory.trace("a", small.trace_id)).values()


def test_a_fact_that_was_read_out_of_an_answer_is_told_by_it(memory: Recollect) -> None:
    told = stated("fact.stated", "f1", subject="sofa", predicate="stands in", object="house", source_events=["one"])
    memory.append("a", [message("the red sofa stands in the old house", id="one"), told])
    result = memory.retrieve("a", "where does the red sofa stand?")
    assert [item.id for item in result.items] == ["one"]
    assert reasons(memory.trace("a", result.trace_id)) == {"f1": "told by one"}


def test_what_the_gate_kept_back_says_so(memory: Recollect) -> None:
    memory.append("a", [message(f"the sofa of shop {number} is red", id=f"e{number}") for number in range(8)])
    query = "shop opening hours of quantum chromodynamics laboratories in Reykjavik and Ulaanbaatar"
    result = memory.retrieve("a", query)
    assert (result.items, result.context, result.answer.action) == ((), "", "defer")
    kept_back = reasons(memory.trace("a", result.trace_id))
    assert set(kept_back.values()) == {"gate: nothing relevant"}
    assert memory.retrieve("a", query, gate=False).items != ()


def test_over_the_limit_of_several_namespaces_is_no_matter_of_tokens(memory: Recollect) -> None:
    texts = ["the red sofa of Porto", "a red sofa with a lamp", "sofa and chair, both red, in the hall"]
    for namespace in ("a", "b"):
        memory.append(namespace, [message(text, id=f"{namespace}{at}") for at, text in enumerate(texts)])
    result = memory.retrieve("a", "red sofa", also=("b",), limit=2)
    assert len(result.items) == 2
    assert set(reasons(memory.trace("a", result.trace_id)).values()) == {"over the limit"}


def test_a_question_of_broken_characters_is_traced_too(memory: Recollect) -> None:
    memory.append("a", message("the sofa is red", id="e1"))
    result = memory.retrieve("a", "the sofa \ud800 \0 “red”", mode="passive", session_id="s1")
    assert memory.trace("a", result.trace_id)["context"] == result.context


# -- finding it again -------------------------------------------------------------------------------------------------


def test_over_http_traces_are_listed_newest_first_and_explained_one_by_one(server: Server) -> None:
    with httpx.Client(base_url=f"{server.base}/v1/namespaces/traced", timeout=30) as http:
        http.post("/events", json=message("I love tea", id="e1"))
        asked = [http.post("/retrieve", json={"query": "tea" + "?" * number}).json()["trace_id"] for number in range(5)]
        page = http.get("/traces", params={"limit": 2}).json()
        assert [one["trace_id"] for one in page["items"]] == asked[:2:-1]
        rest = http.get("/traces", params={"after": page["next"]}).json()
        assert [one["trace_id"] for one in rest["items"]] == asked[2::-1]
        assert rest["next"] is None
        trace = http.get(f"/traces/{asked[0]}").json()
        assert (trace["query"], trace["items"][0]["id"]) == ("tea", "e1")
        for unknown in ("nothing", asked[0][:-1]):
            answer = http.get(f"/traces/{unknown}")
            assert answer.status_code == 404
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["field"] == "trace_id"
        assert httpx.get(f"{server.base}/v1/namespaces/untraced/traces/{asked[0]}").status_code == 404
        assert httpx.get(f"{server.base}/v1/namespaces/untraced/traces").json() == {"items": [], "next": None}


def test_a_trace_belongs_to_its_namespace(memory: Recollect) -> None:
    memory.append("a", message("tea"))
    result = memory.retrieve("a", "tea")
    with pytest.raises(NotFound):
        memory.trace("b", result.trace_id)
    with pytest.raises(InvalidNamespace):
        memory.trace("../etc", result.trace_id)


def _result(memory: Recollect, query: str) -> tuple[RetrieveRequest, RetrieveResult]:
    return RetrieveRequest(query=query), memory.retrieve("a", query)


def test_files_are_bounded_and_the_oldest_traces_go_first(memory: Recollect, tmp_path: Path) -> None:
    folder = tmp_path / "bounded"
    traces = TraceStore(folder, bytes_max=40_000)
    ids: list[str] = []
    for number in range(80):
        request, result = _result(memory, f"number {number} " + "x" * 300)
        traces.add("a", request, result)
        traces.flush()
        ids.append(result.trace_id)
        assert sum(file.stat().st_size for file in trace_files(folder)) <= 40_000
    assert find_trace(folder, "a", ids[0]) is None
    kept = [trace["trace_id"] for trace in list_traces(folder, "a", "", 100)]
    assert kept == ids[::-1][: len(kept)]
    assert 5 < len(kept) < 80
    traces.close()


def test_old_traces_are_removed_also_when_no_retrieval_follows(memory: Recollect, tmp_path: Path) -> None:
    folder = tmp_path / "aged"
    traces = TraceStore(folder)
    for query in ("long ago", "lately"):
        traces.add("a", *_result(memory, query))
    traces.close()
    [file] = trace_files(folder)
    old, new = (json.loads(line) for line in file.read_bytes().splitlines())
    old["at"] = "2024-01-01T00:00:00.5Z"
    file.write_text(f"{json.dumps(old)}\n{json.dumps(new)}\n")
    TraceStore(folder, days_max=3_650).close()
    assert len(list_traces(folder, "a", "", 9)) == 2
    TraceStore(folder, days_max=1).close()
    assert [trace["query"] for trace in list_traces(folder, "a", "", 9)] == ["lately"]
    assert remove_old_traces(folder, now_us() + 1_000_000) == 1
    assert trace_files(folder) == []


def test_a_trace_that_cannot_be_written_costs_neither_the_answer_nor_the_ones_after_it(
    memory: Recollect, tmp_path: Path
) -> None:
    folder = tmp_path / "blocked"
    folder.write_text("no folder")
    traces = TraceStore(folder)
    traces.add("a", *_result(memory, "one"))
    traces.flush()
    folder.unlink()
    request, result = _result(memory, "two")

    def explain() -> dict[str, Any]:
        raise ValueError("nobody knows")

    traces.add("a", request, replace(result, explain=explain))
    traces.flush()
    traces.add("a", request, result)
    traces.flush()
    assert find_trace(folder, "a", result.trace_id) is not None
    traces.close()


def test_sql_reads_candidates_and_reasons(memory: Recollect, tmp_path: Path) -> None:
    memory.append("a", [message("the red sofa stands in the hall", id="e1"), message("the red sofa is gone", id="e2")])
    result = memory.retrieve("a", "where is the red sofa?", limit=1)
    memory.close()
    query = "SELECT query, trace_id, len(candidates::JSON[]) AS n, dropped->>'$[0].reason' AS why FROM traces"
    done = recollect("sql", query, "--format", "json", data=tmp_path)
    assert done.returncode == 0, done.stderr
    [row] = json.loads(done.stdout)
    assert row == {"query": "where is the red sofa?", "trace_id": result.trace_id, "n": 2, "why": "over the limit"}


# -- ratings ----------------------------------------------------------------------------------------------------------


def _ids(result: RetrieveResult) -> list[str]:
    return [item.id for item in result.items]


def _rated(result: RetrieveResult, rating: str, *ids: str) -> Event:
    return stated("retrieval.rated", trace_id=result.trace_id, rating=rating, memory_ids=list(ids))


@pytest.mark.parametrize(("rating", "up"), [("useful", True), ("noise", False), ("misleading", False)])
def test_what_was_rated_moves_up_or_down_and_stays_there_after_a_replay(
    memory: Recollect, rating: str, up: bool
) -> None:
    said = [f"the red sofa of {place} has a number" for place in ("Porto", "Lisbon", "Faro", "Braga")]
    memory.append("a", [message(text, id=f"e{at}", occurred_at="2026-01-05T10:00:00Z") for at, text in enumerate(said)])
    question = "which red sofa has a number?"
    before = memory.retrieve("a", question)
    order = _ids(before)
    assert len(order) == 4
    rated = order[-1] if up else order[0]
    for _ in range(3):
        memory.append("a", _rated(before, rating, rated))
    after = _ids(memory.retrieve("a", question))
    assert after.index(rated) < order.index(rated) if up else after.index(rated) > order.index(rated)
    memory.replay("a")
    assert _ids(memory.retrieve("a", question)) == after
    assert _ids(memory.retrieve("a", question, as_of=4)) == order


@pytest.mark.parametrize(("rating", "up"), [("useful", True), ("misleading", False)])
def test_what_is_known_is_rated_alike(memory: Recollect, rating: str, up: bool) -> None:
    memory.append(
        "a",
        [stated("fact.stated", place, subject="sofa", predicate="was in", object=place) for place in ("Porto", "Faro")],
    )
    before = memory.retrieve("a", "where was the sofa?", kinds={"fact"})
    scores = {item.id: item.score for item in before.items}
    memory.append("a", _rated(before, rating, "Porto"))
    memory.replay("a")
    after = {item.id: item.score for item in memory.retrieve("a", "where was the sofa?", kinds={"fact"}).items}
    assert after["Faro"] == pytest.approx(scores["Faro"])
    assert (after.get("Porto", 0.0) > scores["Porto"]) == up
    assert after.get("Porto", 0.0) != scores["Porto"]


def test_a_line_that_was_cut_off_hides_no_other_trace(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    whole = b'{"trace_id": "t1", "namespace": "a", "query": "tea"}\n'
    (folder / "1.ndjson").write_bytes(
        b'{"trace_id": "t0", "namespace": "a", "answer": {}\n' + whole + b'{"trace_id": "t1'
    )
    assert find_trace(folder, "a", "t1") == {"trace_id": "t1", "namespace": "a", "query": "tea"}
    assert [trace["trace_id"] for trace in list_traces(folder, "a", "", 10)] == ["t1"]
    assert find_trace(folder, "a", "t0") is None


def test_an_export_of_a_subject_has_the_retrievals_that_are_about_them_without_what_others_said(
    memory: Recollect,
) -> None:
    memory.append("team", message("I am allergic to nuts.", id="ann-1", name="Ann"))
    memory.append("team", message("My salary is 5000 euros.", id="bob-1", name="Bob"))
    memory.append("team", message("I collect stamps of Norway.", id="bob-2", name="Bob"))
    memory.settle("team")
    for query in ("Who is allergic to nuts?", "stamps of Norway", "Is Ann here?", "allergic to nuts, or a salary?"):
        memory.retrieve("team", query)
    memory.parts.trace_store.flush()
    exported = memory.export_subject("team", "Ann")
    text = as_markdown(exported)
    assert [(trace["query"], [item["id"] for item in trace["items"]]) for trace in exported["traces"]] == [
        ("", ["ann-1"]),
        ("Is Ann here?", ["ann-1"]),
        ("", ["ann-1"]),
    ]
    assert "allergic" in text
    assert "5000" not in text
    assert "Norway" not in text
