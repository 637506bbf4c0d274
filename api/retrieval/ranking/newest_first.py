"""Newest first: of messages on the same thing, the newest one precedes the older ones when the present is asked for.

A logistic model of two messages decides whether the newer one updates the older one. `ops/train/changes/order.py` fits
it and prints its figures. It changes the order of the first messages alone: every message that was found stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from recollect.api.retrieval.contract.result import Item
from recollect.api.retrieval.search.search_context import SearchContext
from recollect.jobs.extraction.comparison import change_probabilities
from recollect.projections.embeddings.token_codes import Vector

#: Messages that are put in order.
FIRST_MAX = 10
#: Characters of a message that are compared.
_CHARS_MAX = 400
_NUMBER = re.compile(r"\d")
#: Weights of `update_features`, and the constant.
_WEIGHTS = np.array([0.93, -0.13, -1.35, 1.14, 1.03, 1.16], np.float32)
_CONSTANT = -3.52
#: Probability from which on a newer message goes first: of five conversations of LoCoMo, in whose questions nothing has
#: changed, no pair has it.
_UPDATES_MIN = 0.25


def newest_first(context: SearchContext, items: Sequence[Item]) -> list[Item]:
    """Return messages, best first, with those that update an older one before it, if the present is asked for."""
    count = min(FIRST_MAX, context.request.limit)
    first, ordered = items[:count], [*items[:count]]
    if not context.query.intent.present or not first:
        return [*items]
    probabilities = update_probabilities(update_features(first, cosines(context, first)))
    for place, item in enumerate(first):
        newer = first[int(np.argmax(probabilities[place]))] if probabilities[place].max() >= _UPDATES_MIN else None
        if item.later is not None:
            newer = next((other for other in first if other.id == item.later.source_event), None)
        if newer is not None:
            _put_before(ordered, newer, item)
    return [*ordered, *items[count:]]


def update_features(items: Sequence[Item], similarities: Vector) -> Vector:
    """Return the features of each message (second axis) as an update of another (first axis), shape (n, n, 6)."""
    changes = change_probabilities([item.text[:_CHARS_MAX] for item in items])
    has_number = [_NUMBER.search(item.text[:_CHARS_MAX]) is not None for item in items]
    features = np.zeros((len(items), len(items), len(_WEIGHTS)), np.float32)
    for old, item in enumerate(items):
        for new, other in enumerate(items):
            features[old, new] = (
                similarities[old, new],
                np.log1p(old),
                np.log1p(new),
                changes[new],
                item.speaker == other.speaker,
                has_number[old] and has_number[new],
            )
    # Only a newer message of lower rank can go before another one.
    is_update = [
        [new > old and other.occurred_at_us > item.occurred_at_us for new, other in enumerate(items)]
        for old, item in enumerate(items)
    ]
    features[~np.array(is_update, np.bool_)] = np.nan
    return features


def update_probabilities(features: Vector) -> Vector:
    """Return the probability of each pair; 0 for what is no pair."""
    logits = np.nan_to_num(features @ _WEIGHTS + np.float32(_CONSTANT), nan=-np.inf)
    return (1 / (1 + np.exp(-logits))).astype(np.float32)


def cosines(context: SearchContext, items: Sequence[Item]) -> Vector:
    """Return the cosines of messages with each other, shape (n, n); 0 without vectors."""
    snapshot = context.snapshot
    versions = [snapshot.episodes.version_of(item.id) or 0 for item in items]
    vectors = context.vectors.vectors_of_episodes(context.namespace, snapshot, versions)
    similarities = np.zeros((len(items), len(items)), np.float32)
    embedded = [place for place, version in enumerate(versions) if version in vectors]
    if embedded:
        rows = np.stack([vectors[versions[place]] for place in embedded])
        similarities[np.ix_(embedded, embedded)] = rows @ rows.T
    return similarities


def _put_before(ordered: list[Item], newer: Item, older: Item) -> None:
    """Move a message before another one, whose score it gets."""
    ids = [item.id for item in ordered]
    place, target = ids.index(newer.id), ids.index(older.id)
    if place > target:
        ordered.insert(target, replace(ordered.pop(place), score=ordered[target].score))
