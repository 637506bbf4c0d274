"""Samples: what the choice model reads of each question and turn, with the candidates that belong to it."""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from given_conversations import given_chats
from labelled_chats import Asked, Chat, crop_of, read_asks, read_chats
from msgspec import Struct
from msgspec.structs import replace

from recollect.api.retrieval.contract.request import RetrieveRequest
from recollect.api.retrieval.ranking.candidates import Mask
from recollect.api.retrieval.ranking.choice_inputs import ChoiceInputs, choice_inputs
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.projection_settings import DEFAULT_MODEL

sys.path.append(str(Path(__file__).parents[2]))
from evaluation.conversations import Conversation
from evaluation.retrieval_benchmark import RetrievalBenchmark

#: Given conversations that are held out, and one in five of the others.
_HELD_OUT = ("conv-41", "beam-100K-2", "beam-100K-5", "beam-100K-8", "Kenta_Tanaka")
_HELD_OUT_EVERY = 5
#: The set of the questions of general knowledge, and how many each labelled chat, and its crop, is asked.
GENERAL = "general"
_GENERAL_QUESTIONS = {"chats": 12, "crops": 4}
#: Questions of other chats of the set, which have no answer: as many for each of four others.
_FOREIGN_CHATS = 4
_FOREIGN_QUESTIONS = {"friendsqa": 6, "locomo": 6}


class Sample(Struct, frozen=True, kw_only=True):
    """A question or a turn, with the candidates of the product."""

    chat: str
    set_name: str
    #: The query.
    text: str
    is_turn: bool
    #: Whether the question is one of another chat, or of general knowledge.
    is_foreign: bool
    #: As in `Asked`.
    is_near_general: bool
    #: Shape (candidates, `CANDIDATE_FEATURES`), and (`QUERY_FEATURES`,).
    features: Vector
    query: Vector
    #: The embedding of the query, shape (dimensions,).
    embedding: Vector
    #: The candidates that belong to the answer, shape (candidates,).
    gold: Mask
    #: Messages that belong to the answer, among the candidates or not.
    gold_count: int


def is_held_out(set_name: str, chat: str) -> bool:
    """Return whether a chat is not trained on."""
    if set_name in ("locomo", "beam", "realmem"):
        return chat.endswith(_HELD_OUT)
    if set_name == "friendsqa":
        return int(chat.rpartition("-")[2]) % _HELD_OUT_EVERY == _HELD_OUT_EVERY - 1
    return chat.startswith("held-out") or sum(map(ord, chat)) % _HELD_OUT_EVERY == 0


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
            yield from _general_samples(bench, chat)
            if chat.set_name == "chats":
                crop = crop_of(chat, number)
                bench.load_crop(_conversation(crop), _conversation(chat), _no_progress)
                yield from _samples(bench, crop, [])
                yield from _general_samples(bench, crop)
            print(f"asked {chat.name}", file=sys.stderr, flush=True)
    finally:
        bench.close()


def _conversation(chat: Chat) -> Conversation:
    return Conversation(chat.name, chat.set_name, [*chat.events], [])


def _no_progress(what: str, done: int, total: int | None) -> None:
    pass


def _general_samples(bench: RetrievalBenchmark, chat: Chat) -> Iterator[Sample]:
    """Yield the samples of some questions of general knowledge; those of a held-out writer go to the held-out chats."""
    name = chat.name.removesuffix("-crop")
    lines = [line.text for line in read_asks(held_out=is_held_out(chat.set_name, name)) if not line.asks_memory]
    count = _GENERAL_QUESTIONS.get(chat.set_name, 0)
    asked = [Asked(query=text, gold=()) for text in random.Random(chat.name).sample(lines, count)]
    yield from _samples(bench, replace(chat, asked=[]), asked, GENERAL)


def _samples(
    bench: RetrievalBenchmark, chat: Chat, foreign: Sequence[Asked], set_name: str | None = None
) -> Iterator[Sample]:
    """Yield the samples of a chat's own questions and turns, and of questions of others.

    Parameters:
        set_name: the name of their set; None: that of the chat.
    """
    set_name = set_name or chat.set_name
    versions = {event["id"]: version for version, event in enumerate(chat.events, start=1)}
    for asked, is_foreign in [*((one, False) for one in chat.asked), *((one, True) for one in foreign)]:
        read = _inputs(bench, chat, asked, is_foreign=is_foreign)
        if read is None:
            continue
        inputs, candidates, embedding = read
        gold = [] if is_foreign else [versions[id] for id in asked.gold if id in versions]
        yield Sample(
            chat=chat.name.removesuffix("-crop"),
            set_name=set_name,
            text=asked.query,
            is_turn=asked.is_turn,
            is_foreign=is_foreign,
            is_near_general=asked.is_near_general,
            features=inputs.features,
            query=inputs.query,
            embedding=embedding,
            gold=np.isin(candidates, gold),
            gold_count=len(gold),
        )


class _Read(NamedTuple):
    """The inputs of a question, the versions of its candidates, and its embedding."""

    inputs: ChoiceInputs
    candidates: Sequence[int]
    embedding: Vector


def _inputs(bench: RetrievalBenchmark, chat: Chat, asked: Asked, *, is_foreign: bool) -> _Read | None:
    """Return the inputs of a question; None when there is nothing to choose."""
    mode = "passive" if asked.is_turn else "active"
    fields = {
        "query": asked.query,
        "mode": mode,
        "until": None if is_foreign else asked.until,
        "speaker": asked.speaker,
    }
    request = RetrieveRequest.model_validate({name: value for name, value in fields.items() if value is not None})

    def read(ranked: RankedEpisodes) -> _Read | None:
        inputs, semantics = choice_inputs(ranked), ranked.signals.semantics
        if inputs is None or semantics is None:
            return None
        rows = ranked.candidates.rows[inputs.candidates]
        return _Read(inputs, ranked.context.episodes.versions[rows].tolist(), semantics.embedding.vector)

    return bench.parts.retriever.rank(_conversation(chat).namespace, request, read, chat.visible(asked))
