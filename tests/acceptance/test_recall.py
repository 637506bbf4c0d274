"""Ranking on a real conversation with known answers; all of them: `python ops/evaluation retrieval FOLDER`."""

from __future__ import annotations

from pathlib import Path

import pytest
from evaluation.retrieval_benchmark import run_retrieval_bench
from support.data import conversations

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def ignore(what: str, done: int, total: int | None) -> None:
    pass


@pytest.mark.parametrize(
    ("model", "turn_at_10", "session_at_10"),
    [("all-MiniLM-L6-v2", 80, 92), ("none", 71, 87)],
)
@pytest.mark.long
def test_evidence_in_a_real_conversation_is_found(
    tmp_path: Path, model: str, turn_at_10: float, session_at_10: float
) -> None:
    files = conversations("locomo-conv-30.json")
    report = run_retrieval_bench(files, tmp_path, model, ignore)
    row = report.rows()[0]
    assert row["turn@10"] >= turn_at_10
    assert row["sess@10"] >= session_at_10
    assert "locomo" in report.render()
