"""Of many candidates, those that the other features put first are compared by their tokens and texts."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest
from support.embedders import HashingEmbedder
from support.events import message
from support.memory import Memory

from recollect.api.retrieval.candidate_ranking import COMPARED_MAX
from recollect.projections.embeddings.vectors import Vectors

#: Messages with a word of every question, so that more are candidates than are compared.
_SHOPS = 2 * COMPARED_MAX
_RARE = "the shop in Lund sells 14 lamps and one sofa"


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Generator[Memory]:
    with Memory(tmp_path_factory.mktemp("memory")) as memory:
        said = [message(f"shop {number} has a sofa", id=f"e{number}", session_id="s") for number in range(_SHOPS)]
        memory.add([*said, message(_RARE, id="rare", session_id="s")])
        memory.vectors(HashingEmbedder()).embed_new("a")
        yield memory


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of messages whose tokens each query was compared with."""
    counts: list[int] = []
    codes = Vectors.codes

    def counted(self: Vectors, namespace: str, snapshot: Any, versions: Sequence[int], query: Any) -> Any:
        counts.append(len(versions))
        return codes(self, namespace, snapshot, versions, query)

    monkeypatch.setattr(Vectors, "codes", counted)
    return counts


def test_a_question_is_compared_with_the_tokens_of_the_first_candidates_only(
    memory: Memory, compared: list[int]
) -> None:
    result = memory.ask("which shop has a sofa in Lund?", memory.vectors(HashingEmbedder()))
    assert result.items[0].id == "rare"
    assert compared == [COMPARED_MAX]


def test_a_long_message_is_compared_with_the_tokens_of_all_candidates(memory: Memory, compared: list[int]) -> None:
    text = "I was in Lund with my sister all day, and " + "we looked for a sofa in one more shop, and then " * 6
    memory.ask(text, memory.vectors(HashingEmbedder()))
    assert compared[0] > COMPARED_MAX


def test_what_a_text_counts_is_found_among_the_first_candidates(memory: Memory) -> None:
    result = memory.ask("how many lamps does the shop in Lund sell?", memory.vectors(HashingEmbedder()))
    [best, *_] = result.explain()["candidates"]
    assert best["features"]["counts_asked"] == 1
