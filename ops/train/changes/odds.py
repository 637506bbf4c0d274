"""Odds: fits the two logits of `jobs/extraction/change_odds.py` to labelled pairs, and prints what they find."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from labelled_pairs import Bools, Floats, LabelledPairs, ReadRelations, groups

from recollect.jobs import extraction
from recollect.jobs.extraction.change_features import VECTOR_FEATURES
from recollect.jobs.extraction.change_odds import first_inputs, odds_inputs
from recollect.jobs.extraction.comparison import CHANGES, HINTED, READ_MIN

# A library that has no types.
linear_model: Any = import_module("sklearn.linear_model")
_FOLDS = 5
#: Inverse strength of the L2 penalty.
_PENALTY = 0.01
_THRESHOLDS = (0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8)


class Rows(NamedTuple):
    """Pairs as the inputs of a logit, shape (n, inputs), with which of them are a change, and their conversations."""

    inputs: Floats
    is_change: Bools
    sources: Sequence[str]

    def where(self, is_kept: Bools) -> Rows:
        """Return some of the rows."""
        sources = [source for source, keeps in zip(self.sources, is_kept, strict=True) if keeps]
        return Rows(self.inputs[is_kept], self.is_change[is_kept], sources)


class Logit(NamedTuple):
    """A fitted logit: the weights of its inputs, and the bias."""

    weight: Floats
    bias: float

    def probabilities(self, inputs: Floats) -> Floats:
        """Return the probability of a change of each row."""
        return (1 / (1 + np.exp(-(inputs @ self.weight + self.bias)))).astype(np.float32)


def first_rows(sentences: Sequence[LabelledPairs], *, rules: bool) -> Rows:
    """Return the pairs of statements, or of rules, as inputs of the first logit."""
    return _rows(
        sentences, [first_inputs(it.pairs.inputs) for it in sentences], [it.pairs.is_rule == rules for it in sentences]
    )


def by_words(rows: Rows) -> Rows:
    """Return rows of the first logit without what the vectors say."""
    if not len(rows.inputs):
        return rows
    inputs = rows.inputs.copy()
    # Behind the vectors are the hint of the sentence, and the two places that `first_inputs` adds.
    end = inputs.shape[1] - len(HINTED) - 2
    inputs[:, end - VECTOR_FEATURES : end] = 0
    return rows._replace(inputs=inputs)


def odds_rows(sentences: Sequence[LabelledPairs], first: Sequence[Logit], read: ReadRelations, *, rules: bool) -> Rows:
    """Return the pairs that the encoder reads as inputs of the second logit.

    Parameters:
        first: the first logit, of statements and of rules.
        read: the encoder.
    """
    chosen = [(it, first_probabilities(it, first) >= READ_MIN) for it in sentences]
    chosen = [(it, some) for it, some in chosen if (some & (it.pairs.is_rule == rules)).any()]
    sentences, places = [it for it, _ in chosen], [some for _, some in chosen]
    texts = [it.texts(place) for it, some in zip(sentences, places, strict=True) for place in _numbers(some)]
    changes = (change for some in groups(texts) for change in read(some)[:, CHANGES].sum(axis=1).tolist())
    inputs: list[Floats] = []
    for it, some in zip(sentences, places, strict=True):
        encoder = np.full(len(some), np.nan, np.float32)
        encoder[some] = [next(changes) for _ in range(int(some.sum()))]
        inputs.append(odds_inputs(it.pairs.inputs, encoder, it.pairs.is_plain))
    kept = [some & (it.pairs.is_rule == rules) for it, some in zip(sentences, places, strict=True)]
    return _rows(sentences, inputs, kept)


def first_probabilities(it: LabelledPairs, first: Sequence[Logit]) -> Floats:
    """Return the probability of a change of each pair of a sentence by the first logit, of statements and of rules."""
    inputs = first_inputs(it.pairs.inputs)
    of_statements, of_rules = (logit.probabilities(inputs) for logit in first)
    return np.where(it.pairs.is_rule, of_rules, of_statements)


def _rows(sentences: Sequence[LabelledPairs], inputs: Sequence[Floats], kept: Sequence[Bools]) -> Rows:
    rows: list[Floats] = []
    changes: list[bool] = []
    sources: list[str] = []
    for it, of_sentence, some in zip(sentences, inputs, kept, strict=True):
        for place in _numbers(some):
            if it.relations[place] is not None:
                rows.append(of_sentence[place])
                changes.append(it.is_change(place))
                sources.append(it.source)
    return Rows(np.array(rows, np.float32), np.array(changes, np.bool_), sources)


def _numbers(some: Bools) -> list[int]:
    """Return the places that are true."""
    return np.flatnonzero(some).tolist()


def joined(*parts: Rows) -> Rows:
    """Return rows together."""
    sources = [source for part in parts for source in part.sources]
    inputs = np.concatenate([part.inputs for part in parts if len(part.inputs)])
    return Rows(inputs, np.concatenate([part.is_change for part in parts]), sources)


def fitted(rows: Rows) -> Logit:
    """Return a logit that is fitted to pairs; its inputs are standardised for the penalty only."""
    inputs = rows.inputs.astype(np.float64)
    mean, deviation = inputs.mean(axis=0), np.maximum(inputs.std(axis=0), 1e-6)
    model = linear_model.LogisticRegression(C=_PENALTY, max_iter=1_000)
    model.fit((inputs - mean) / deviation, rows.is_change)
    weight = model.coef_[0] / deviation
    return Logit(weight.astype(np.float32), float(model.intercept_[0] - mean @ weight))


def folds(rows: Rows, more: Rows) -> Floats:
    """Return the probability of each row by a logit that is fitted to the other conversations, and to more rows."""
    fold = np.array([zlib.crc32(source.encode()) % _FOLDS for source in rows.sources])
    read = np.zeros(len(fold), np.float32)
    for number in range(_FOLDS):
        read[fold == number] = fitted(joined(rows.where(fold != number), more)).probabilities(
            rows.inputs[fold == number]
        )
    return read


def report(title: str, read: Floats, is_change: Bools) -> None:
    """Print how many pairs have a probability, and how many of them are a change."""
    counts = [f"{least}: {is_change[read >= least].sum()} of {(read >= least).sum()}" for least in _THRESHOLDS]
    print(f"{title}: {is_change.sum()} changes of {len(is_change)} pairs; right from {'; '.join(counts)}", flush=True)


def write(**logits: tuple[Logit, Logit]) -> None:
    """Write the logits of statements and of rules into the package, by name."""
    arrays: dict[str, Floats] = {}
    for name, both in logits.items():
        arrays[name] = np.stack([it.weight for it in both])
        arrays[f"{name}_bias"] = np.array([it.bias for it in both], np.float32)
    path = Path(extraction.__path__[0]) / "odds_weights.npz"
    np.savez_compressed(path, **arrays)  # pyright: ignore[reportArgumentType]
