"""Choice: the messages that belong to the answer of a query, best first, and how many of them are enough."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from recollect.api.retrieval.ranking.choice_inputs import choice_inputs
from recollect.api.retrieval.ranking.choice_model import chances
from recollect.api.retrieval.ranking.ranked_episodes import RankedEpisodes
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.projection_settings import DEFAULT_MODEL

#: The lowest probability of an answer: to a question, by messages or by knowledge; of what helps in a turn of a
#: conversation.
ANSWER_MIN = 0.15
PASSIVE_ANSWER_MIN = 0.5
#: The lowest probability of an answer to what is worded as small talk, as a task, or without a topic.
DOUBTFUL_ANSWER_MIN = 0.5
#: The share of the probability of all candidates that may be left out.
LEFT_OUT_SHARE = 0.1
#: A message under this probability is left out; the first one stays.
ITEM_MIN = 0.025
#: The messages go on to this number while the probability that one of them holds the answer is lower than `HELD_MIN`,
#: and to this probability. Of held-out chats, 6.3 messages have 85 % of the evidence, as the first ten of the ranking.
UNSURE_MAX = 6
HELD_MIN = 0.8
UNSURE_ITEM_MIN = 0.012
#: The same as `ITEM_MIN` in a turn of a conversation, where nothing was asked; none has to stay.
PASSIVE_ITEM_MIN = 0.12


@dataclass(frozen=True, slots=True)
class Choice:
    """The ranked messages in the order of their probability."""

    ranked: RankedEpisodes
    #: In the order of `ranked.order`, shape (candidates,).
    probabilities: Vector
    #: The probability that memory has an answer.
    answer: float


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
    return Choice(replace(ranked, order=np.concatenate([chosen, rest])), probabilities, answer)


def enough(probabilities: Vector, *, passive: bool) -> int:
    """Return how many of the messages, best first, hold the answer as far as it can be had.

    The next one is left out when nearly all of the probability is in those before it, and one of them surely holds it.
    """
    if passive:
        return int((probabilities >= PASSIVE_ITEM_MIN).sum())
    before = np.cumsum(probabilities) - probabilities
    wanted = (before < (1 - LEFT_OUT_SHARE) * probabilities.sum()) & (probabilities >= ITEM_MIN)
    missed = np.cumprod(1 - probabilities[:UNSURE_MAX])
    unsure = (np.append(1, missed[:-1]) > 1 - HELD_MIN) & (probabilities[:UNSURE_MAX] >= UNSURE_ITEM_MIN)
    return max(1, int(wanted.sum()), int(unsure.sum()))
