"""Samples: what the choice model reads of each question and turn, with the candidates that belong to it."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from given_conversations import given_chats
from labelled_chats import Asked, Chat, crop_of, read_chats

from recollect.api.evaluation.conversations import Conversation
from recollect.api.evaluation.retrieval_benchmark import RetrievalBenchmark
from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.choice_inputs import ChoiceInputs, choice_inputs
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.projection_settings import DEFAULT_MODEL

#: Questions of other chats of the set, which have no answer: as many for each of four others.
_FOREIGN_CHATS = 4
_FOREIGN_QUESTIONS = {"friendsqa": 6, "locomo": 6}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A question or a turn, with the candidates of the product."""

    chat: str
    set_name: str
    is_turn: bool
    #: Whether the question is one of another chat.
    is_foreign: bool
    #: Shape (candidates, `CANDIDATE_FEATURES`), and (`QUERY_FEATURES`,).
    features: Vector
    query: Vector
    #: The candidates that belong to the answer, shape (candidates,).
    gold: Mask
    #: Messages that belong to the answer, among the candidates or not.
    gold_count: int


def samples(cache: Path | None, given: Path, data: Path) -> list[Sample]:
    """Return the samples of all chats, of the cache when there is one.

    Parameters:
        cache: a file with the samples of an earlier run, or for those of this one.
        given: the folder of the given conversations; without it, the chats of the repository alone are read.
        data: an empty folder for the memories.
    """
    if cache is not None and cache.exists():
        return pickle.loads(cache.read_bytes())
    collected = [*_collected(given, data)]
    if cache is not None:
        cache.write_bytes(pickle.dumps(collected))
    return collected


def _collected(given: Path, data: Path) -> Iterator[Sample]:
    """Yield the samples, chat by chat."""
    own = read_chats()
    chats = [*own, *(given_chats(given) if given.is_dir() else ())]
    bench = RetrievalBenchmark(data, DEFAULT_MODEL)
    try:
        bench.wait(_no_progress)
        questions = {chat.name: [one for one in chat.asked if one.gold and not one.is_turn] for chat in chats}
        sets = {chat.name: chat.set_name for chat in chats}
        chance = random.Random(7)
        for number, chat in enumerate(chats):
            bench.load(_conversation(chat), _no_progress)
            peers = [name for name in questions if name != chat.name and sets[name] == chat.set_name]
            foreign = [
                one
                for name in chance.sample(peers, min(_FOREIGN_CHATS, len(peers)))
                for one in chance.sample(
                    questions[name], min(_FOREIGN_QUESTIONS.get(chat.set_name, 2), len(questions[name]))
                )
            ]
            yield from _samples(bench, chat, foreign)
            if chat.set_name == "chats":
                crop = crop_of(chat, number)
                bench.load_crop(_conversation(crop), _conversation(chat), _no_progress)
                yield from _samples(bench, crop, [])
            print(f"asked {chat.name}", file=sys.stderr, flush=True)
    finally:
        bench.close()


def _conversation(chat: Chat) -> Conversation:
    return Conversation(chat.name, chat.set_name, [*chat.events], [])


def _no_progress(what: str, done: int, total: int | None) -> None:
    pass


def _samples(bench: RetrievalBenchmark, chat: Chat, foreign: Sequence[Asked]) -> Iterator[Sample]:
    """Yield the samples of a chat's own questions and turns, and of questions of others."""
    versions = {event["id"]: version for version, event in enumerate(chat.events, start=1)}
    for asked, is_foreign in [*((one, False) for one in chat.asked), *((one, True) for one in foreign)]:
        read = _inputs(bench, chat, asked, is_foreign=is_foreign)
        if read is None:
            continue
        inputs, candidates = read
        gold = [] if is_foreign else [versions[id] for id in asked.gold if id in versions]
        yield Sample(
            chat=chat.name.removesuffix("-crop"),
            set_name=chat.set_name,
            is_turn=asked.is_turn,
            is_foreign=is_foreign,
            features=inputs.features,
            query=inputs.query,
            gold=np.isin(candidates, gold),
            gold_count=len(gold),
        )


def _inputs(
    bench: RetrievalBenchmark, chat: Chat, asked: Asked, *, is_foreign: bool
) -> tuple[ChoiceInputs, Sequence[int]] | None:
    """Return the inputs of a question with the versions of the candidates; None when there is nothing to choose."""
    mode = "passive" if asked.is_turn else "active"
    fields = {
        "query": asked.query,
        "mode": mode,
        "until": None if is_foreign else asked.until,
        "speaker": asked.speaker,
    }
    request = RetrieveRequest.model_validate({name: value for name, value in fields.items() if value is not None})

    def read(ranked: RankedEpisodes) -> tuple[ChoiceInputs, Sequence[int]] | None:
        inputs = choice_inputs(ranked)
        if inputs is None:
            return None
        rows = ranked.candidates.rows[inputs.candidates]
        return inputs, ranked.context.episodes.versions[rows].tolist()

    return bench.parts.retriever.rank(_conversation(chat).namespace, request, read, chat.visible(asked))
