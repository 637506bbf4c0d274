"""Training of the choice model: which messages belong to the answer of a question, and whether memory has one.

    OMP_NUM_THREADS=1 .venv/bin/python ops/train/relevance [--cache FILE] [--write]

Prints the evidence among the first messages of held-out chats by the order of the ranking and by the model, how many
messages are enough, and how many unanswerable questions are silent. README.md is the model card.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from asks_fit import fitted, messages_of, with_logit, with_logit_of_others, write
from labelled_chats import AskLine, read_asks
from network import Scales, trained, weights_of
from samples import GENERAL, Sample, is_held_out, samples

from recollect.api.retrieval.ranking import choice_model
from recollect.api.retrieval.ranking.choice import enough, enough_in_turn
from recollect.api.retrieval.ranking.choice_inputs import QUERY_FEATURES, ChoiceInputs
from recollect.api.retrieval.ranking.choice_model import Weights, chances
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import LOAD_SECONDS_MAX
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.projection_settings import DEFAULT_MODEL
from recollect.projections.search_index.episode_arrays import Ints

GIVEN = Path(__file__).parents[4] / "shared" / "data"
_WEIGHTS = Path(choice_model.__file__).parent / "choice_weights.npz"
#: Networks whose probabilities are averaged.
_SEEDS = (1, 2)
_SETS = ("chats", "crops", "locomo", "beam", "friendsqa", "everyday", "realmem", GENERAL)
#: How often a question of general knowledge that is near to its chat is trained on: there are few. Those of crops once,
#: since most of them are not near to the messages that the crop has.
_NEAR_GENERAL_TIMES = 4
_FIRST = (1, 3, 5, 10)
#: Shares of answers that may be lost by silence.
_LOST = (0.01, 0.03, 0.05)
_LIMIT = 10


class Judged(NamedTuple):
    """A held-out sample with the probabilities of the model."""

    sample: Sample
    items: Vector
    answer: float

    def recall(self, candidates: Ints) -> float:
        """Return the share of the evidence among some candidates."""
        return float(self.sample.gold[candidates].sum()) / self.sample.gold_count

    @property
    def best_first(self) -> Ints:
        """Return the candidates by falling probability."""
        return np.argsort(-self.items, kind="stable")


def main() -> None:
    """Train and report; write the weights when asked to."""
    parser = argparse.ArgumentParser(prog="ops/train/relevance", description=__doc__)
    parser.add_argument("--cache", type=Path, help="file for the samples, which take most of the time")
    parser.add_argument("--given", type=Path, default=GIVEN, help="folder of the given conversations")
    parser.add_argument("--write", action="store_true", help="replace the weights of the package")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        read = samples(arguments.cache, arguments.given, Path(folder))
    # A question whose evidence is not a candidate teaches nothing about candidates.
    usable = [sample for sample in read if len(sample.gold) > 1]
    training = [sample for sample in usable if not is_held_out(sample.set_name, sample.chat)]
    lines = _embedded_lines()
    asks = fitted(messages_of(training, lines))
    training = with_logit_of_others(training, lines)
    training += [it for it in training if it.is_near_general and it.set_name == "chats"] * (_NEAR_GENERAL_TIMES - 1)
    scales = Scales.of(training)
    weights = [weights_of(trained(training, scales, seed), scales) for seed in _SEEDS]
    stored = {f"{number}.{name}": value for number, part in enumerate(weights) for name, value in part.items()}
    print(f"{len(training)} samples; {sum(value.size for value in stored.values())} numbers")
    held_out = [with_logit(sample, asks) for sample in usable if is_held_out(sample.set_name, sample.chat)]
    report([judged(sample, choice_model.stacked(stored)) for sample in held_out])
    if arguments.write:
        write(asks)
        rounded: dict[str, Any] = {name: value.astype(np.float16) for name, value in stored.items()}
        np.savez_compressed(_WEIGHTS, **rounded)


def _embedded_lines() -> dict[AskLine, Vector]:
    """Return the lines of `asks/` that are trained on, with their embeddings."""
    embedder = SentenceEmbedder(DEFAULT_MODEL)
    embedder.start()
    if not embedder.wait_ready(LOAD_SECONDS_MAX):
        raise SystemExit(f"The embedding model is not ready: {embedder.reason}")
    return {line: embedder.embed_query(line.text).vector for line in read_asks(held_out=False)}


def judged(sample: Sample, weights: Weights) -> Judged:
    """Return a sample with the probabilities of the model."""
    inputs = ChoiceInputs(np.arange(len(sample.gold)), sample.features, sample.query)
    return Judged(sample, *chances(inputs, weights))


def report(all: Sequence[Judged]) -> None:
    """Print what the model finds in the held-out samples of each set."""
    for name in _SETS:
        questions = [one for one in all if one.sample.set_name == name and not one.sample.is_turn]
        _print_order(name, questions)
        _print_silence(questions)
    for name in _SETS:
        turns = [one for one in all if one.sample.set_name == name and one.sample.is_turn]
        _print_order(f"{name} turns", turns)
        _print_silence(turns)


def _print_order(name: str, judged: Sequence[Judged]) -> None:
    """Print the share of the evidence among the first messages, by the ranking and by the model."""
    answered = [one for one in judged if one.sample.gold_count]
    if not answered:
        return

    def mean(recall: Callable[[Judged], float]) -> str:
        return f"{100 * np.mean([recall(one) for one in answered]):.1f}"

    ranking = "  ".join(mean(lambda one, k=k: one.recall(np.arange(min(k, len(one.items))))) for k in _FIRST)
    model = "  ".join(mean(lambda one, k=k: one.recall(one.best_first[:k])) for k in _FIRST)
    counts = [min(_LIMIT, _count(one)) for one in answered]
    chosen = [one.recall(one.best_first[:count]) for one, count in zip(answered, counts, strict=True)]
    print(f"{name:15} {len(answered):4} answered: first {_FIRST} by the ranking {ranking}; by the model {model}")
    print(f"{'':10} chosen: {100 * np.mean(chosen):.1f} % of the evidence in {np.mean(counts):.1f} messages")


def _count(judged: Judged) -> int:
    """Return how many messages are shown, as in a retrieval."""
    probabilities = np.sort(judged.items)[::-1]
    if not judged.sample.is_turn:
        return enough(probabilities)
    asks_memory = bool(judged.sample.query[QUERY_FEATURES.index("asks_memory")] > 0)
    return enough_in_turn(probabilities, asks_memory=asks_memory)


def _kind(sample: Sample) -> str:
    """Return the kind of a question without an answer."""
    if sample.is_near_general:
        return "near general"
    return "foreign" if sample.is_foreign else "near"


def _print_silence(judged: Sequence[Judged]) -> None:
    """Print the share of questions without an answer under the threshold that loses some of the others."""
    answered = [one.answer for one in judged if one.sample.gold_count]
    for kind in ("near", "near general", "foreign"):
        silent = [one.answer for one in judged if not one.sample.gold_count and _kind(one.sample) == kind]
        if answered and silent:
            thresholds = [float(np.quantile(answered, lost)) for lost in _LOST]
            shares = "  ".join(f"{100 * np.mean(np.array(silent) < at):.0f} % under {at:.2f}" for at in thresholds)
            print(f"{'':10} {len(silent)} {kind} unanswerable, silent where {_LOST} of the answers are lost: {shares}")


if __name__ == "__main__":
    main()
