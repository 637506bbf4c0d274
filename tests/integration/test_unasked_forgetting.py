"""Forgetting unasked: what people say to each other and to assistants makes memory forget nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.jobs.forgetting.forget_requests import forget_requests
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import pair_reader
from recollect.projections.projection_settings import FORGETTING_MODEL

LIVES = sorted((Path(__file__).parents[2] / "ops" / "trials" / "lives").glob("*.json"))


def test_no_message_of_a_conversation_without_requests_is_carried_out(embedder: SentenceEmbedder) -> None:
    read = pair_reader(FORGETTING_MODEL, embedder)
    events = [event for path in LIVES for event in json.loads(path.read_text(encoding="utf-8"))["events"]]
    said = [(event["text"], event["speaker"]) for event in events if event["role"] == "user"]
    assert len(said) > 500
    requests = [it for text, name in said for it in forget_requests(text, name, read)]
    assert [it.text for it in requests if it.is_sure] == []
    # What is not sure is asked back; nothing is forgotten by it.
    assert len(requests) <= 0.01 * len(said)


@pytest.mark.parametrize(
    "text",
    [
        "drop the sauce and bring the plates over",
        "they pushed my surgery to the 3rd, so cancel the taxi",
        "no need to ask me twice, send the list",
        "that must have been hard, losing the house like that",
        "our boiler is gone for good, the new one works",
    ],
)
def test_an_order_a_change_and_sympathy_are_not_carried_out(embedder: SentenceEmbedder, text: str) -> None:
    assert forget_requests(text, "Ann", pair_reader(FORGETTING_MODEL, embedder)) == []


@pytest.mark.parametrize(
    "text",
    [
        "hm, can you lose what I said about the loan",
        "wrong window!! get rid of that address please",
        "scrap the bit about my sister's wedding, I made it up",
    ],
)
def test_a_request_in_everyday_words_is_carried_out(embedder: SentenceEmbedder, text: str) -> None:
    assert forget_requests(text, "Ann", pair_reader(FORGETTING_MODEL, embedder))


@pytest.mark.parametrize("text", ["Et mes poumons, on n'en a pas parlé, d'accord ?", "forget the screenplays"])
def test_what_may_be_a_request_is_asked_back(embedder: SentenceEmbedder, text: str) -> None:
    requests = forget_requests(text, "Ann", pair_reader(FORGETTING_MODEL, embedder))
    assert [it.is_sure for it in requests] == [False]
