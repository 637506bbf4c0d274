"""Choice: the messages that belong to the answer of a query, best first, and how many of them are enough."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from recollect.api.retrieval.ranking.choice_inputs import QUERY_FEATURES, choice_inputs
from recollect.api.retrieval.ranking.choice_model import chances
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.projection_settings import DEFAULT_MODEL

#: The lowest probability of an answer: to a question, by messages or by knowledge; of what helps in a turn of a
#: conversation.
ANSWER_MIN = 0.15
PASSIVE_ANSWER_MIN = 0.6
#: The lowest probability of a fact, and of other knowledge, where a query does not ask for what is remembered; of any
#: answer, where no model reads the query and it is worded as small talk, as a task, or without a topic.
DOUBTFUL_ANSWER_MIN = 0.5
#: How many times as much evidence matters as a line without it (F-measure). Of held-out chats, 5.8 messages have 84 %
#: of the evidence, and 2.8 have 91 % where the memory has at most 18.
EVIDENCE_WEIGHT = 5.0
#: The lowest probability of a message in a turn of a conversation, and where the turn is worded as if for a memory.
#: Figures in `ops/train/relevance/README.md`.
PASSIVE_ITEM_MIN = 0.25
PASSIVE_ASKED_ITEM_MIN = 0.15
#: Messages in a turn, at most.
PASSIVE_ITEMS_MAX = 3


class Choice(Struct, frozen=True):
    """The ranked messages in the order of their probability."""

    ranked: RankedEpisodes
    #: In the order of `ranked.order`, shape (candidates,).
    probabilities: Vector
    #: The probability that memory has an answer in a message.
    answer: float
    #: Whether the query asks for what is remembered, rather than for general knowledge.
    asks_memory: bool


def choose(ranked: RankedEpisodes) -> Choice | None:
    """Return the order by probability; None without vectors of the model that the weights are trained with."""
    if ranked.context.vectors.embedder.name != DEFAULT_MODEL:
        return None
    inputs = choice_inputs(ranked)
    if inputs is None:
        return None
    items, answer = chances(inputs)
    best_first = np.argsort(-items, kind="stable")
    chosen = inputs.candidates[best_first]
    rest = ranked.order[~np.isin(ranked.order, chosen)]
    # What is behind the candidates of the model has the lowest probability, falling with the rank.
    behind = items.min() / np.arange(2, len(rest) + 2)
    probabilities = np.concatenate([items[best_first], behind]).astype(np.float32)
    asks_memory = bool(inputs.query[QUERY_FEATURES.index("asks_memory")] > 0)
    return Choice(replace(ranked, order=np.concatenate([chosen, rest])), probabilities, answer, asks_memory)


def enough_in_turn(probabilities: Vector, *, asks_memory: bool) -> int:
    """Return how many of the messages are shown, best first, where the query is a turn of a conversation."""
    item_min = PASSIVE_ASKED_ITEM_MIN if asks_memory else PASSIVE_ITEM_MIN
    return min(PASSIVE_ITEMS_MAX, int((probabilities >= item_min).sum()))


def enough(probabilities: Vector, of_facts: Sequence[float] = ()) -> int:
    """Return how many of the messages are shown, best first, where the query is a question.

    As many as have the highest expected F-measure with `EVIDENCE_WEIGHT` as its beta: the evidence that is shown,
    divided by a weighted sum of the lines that are shown and the evidence that there is (Chinchor 1992).

    Parameters:
        of_facts: the probabilities of knowledge that is shown with them.
    """
    evidence = sum(of_facts) + np.concatenate([[0], np.cumsum(probabilities)])
    lines = len(of_facts) + np.arange(len(evidence))
    measure = evidence / np.maximum(1, lines + EVIDENCE_WEIGHT**2 * evidence[-1])
    fewest = 0 if of_facts else 1
    return fewest + int(np.argmax(measure[fewest:]))
