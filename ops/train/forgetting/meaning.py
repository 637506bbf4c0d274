"""Meaning: fits how sure it is that a request means its likeliest sentence, on scenes that no network has seen."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from label_files import unseen_rows
from numpy.typing import NDArray

from recollect.jobs.forgetting.forget_matches import leader
from recollect.jobs.forgetting.forget_model import Encoders
from recollect.jobs.forgetting.forget_requests import forget_requests
from recollect.projections.text.sentences import split_sentences

# The library's types are incomplete.
linear_model: Any = import_module("sklearn.linear_model")

#: Weight of a scene whose named messages are taken out: people seldom ask to forget what they never said.
_ABSENT_WEIGHT = 0.15
#: Messages of other scenes that make a conversation longer.
_FURTHER = 10
_THRESHOLDS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8)


class Example(NamedTuple):
    """The likeliest sentence for a request."""

    #: `asked`; `absent`: what it names was not said; `none`: it asks for nothing.
    kind: str
    features: list[float]
    is_right: bool


def examples(*, held_out: bool, encoders: Encoders) -> list[Example]:
    """Return the examples of the scenes that the networks have not seen, each in a short and in a long conversation.

    Parameters:
        encoders: what finds requests, and compares them with what was said.
    """
    rows = [*unseen_rows(held_out=held_out)]
    others = [text for row in rows for text in row["said"] if not text.startswith("a: ")]
    chance = random.Random(1)
    scenes = [(row, more) for row in rows for more in ([], chance.sample(others, _FURTHER))]
    return [it for row, more in scenes for it in _of_scene(row, more, encoders)]


def fitted_meaning(found: Sequence[Example]) -> NDArray[Any]:
    """Return the weights of the features, and the bias."""
    weights = [_ABSENT_WEIGHT if it.kind == "absent" else 1.0 for it in found]
    inputs, labels = np.array([it.features for it in found]), [it.is_right for it in found]
    scales = inputs.std(0)
    model = linear_model.LogisticRegression(max_iter=500).fit(inputs / scales, labels, weights)
    return np.asarray([*(model.coef_[0] / scales), *model.intercept_], np.float32)


def report_meaning(found: Sequence[Example], weights: NDArray[Any], title: str) -> None:
    """Print what would be forgotten from each probability."""
    odds = np.array([it.features for it in found]) @ weights[:-1] + weights[-1]
    for threshold in _THRESHOLDS:
        acts = 1 / (1 + np.exp(-odds)) >= threshold
        counts = [
            f"{kind} {sum(it.is_right for it, does in zip(found, acts, strict=True) if does and it.kind == kind)} right"
            f" {sum(not it.is_right for it, does in zip(found, acts, strict=True) if does and it.kind == kind)} wrong"
            f" of {sum(it.kind == kind for it in found)}"
            for kind in ("asked", "absent", "none")
        ]
        print(f"meaning, {title} from {threshold}: {'; '.join(counts)}")


def _of_scene(row: Any, further: Sequence[str], encoders: Encoders) -> Iterator[Example]:
    said = [(str(place), text) for place, text in enumerate(row["said"]) if not text.startswith("a: ")]
    more = [(f"further {place}", text) for place, text in enumerate(further) if text not in row["said"]]
    for text, named, *_ in row["ask"]:
        ids = {str(place) for place in named}
        yield from _likeliest("asked" if ids else "absent", text, [*more, *said], ids, encoders)
        if ids:
            yield from _likeliest("absent", text, [*more, *(it for it in said if it[0] not in ids)], set(), encoders)
    for text in row["none"]:
        yield from _likeliest("none", text, [*more, *said], set(), encoders)


def _likeliest(
    kind: str, text: str, said: Sequence[tuple[str, str]], named: set[str], encoders: Encoders
) -> Iterator[Example]:
    sentences = [(id, sentence) for id, message in said for sentence in split_sentences(message)]
    if not sentences:
        return
    sources, texts = zip(*sentences, strict=True)
    for request in forget_requests(text.replace(" || ", " "), "Ann", encoders.read_pairs)[:1]:
        if not request.previous:
            _, features, best = leader(request.text, request.odds, texts, sources, encoders)
            yield Example(kind, features, sources[best] in named)
