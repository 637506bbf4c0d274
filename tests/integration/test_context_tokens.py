"""The tokens of contexts of real conversations, as a real model counts them."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import orjson
import pytest
from support.data import conversations

from recollect import Recollect
from recollect.api.settings import load_settings

_BUDGETS = (120, 300, 800, 3_500)
_QUESTIONS = 20


@pytest.mark.long
@pytest.mark.skipif("RECOLLECT_TEST_LLM_URL" not in os.environ, reason="no model: `ops/llm serve` says how to have one")
@pytest.mark.parametrize("pattern", ["locomo-conv-2*.json", "beam-100K-1.json"])
def test_a_context_fits_its_budget_by_the_count_of_a_model(pattern: str, tmp_path: Path) -> None:
    conversation = orjson.loads(conversations(pattern)[0].read_bytes())
    tokenize = os.environ["RECOLLECT_TEST_LLM_URL"].removesuffix("/v1") + "/tokenize"
    with (
        Recollect(settings=load_settings(data=tmp_path, embedding_model="none"), workers=False) as memory,
        httpx.Client() as server,
    ):
        memory.append("a", conversation["events"])
        memory.settle("a")
        for question in conversation["questions"][:_QUESTIONS]:
            for budget_tokens in _BUDGETS:
                context = memory.retrieve("a", question["query"], budget_tokens=budget_tokens, limit=40).context
                counted = len(server.post(tokenize, json={"content": context}).raise_for_status().json()["tokens"])
                assert counted <= budget_tokens, context
