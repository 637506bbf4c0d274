"""Logit: a logistic regression over the names of inputs, as both models of codes are."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from recollect.events import intake

# This library has no complete types.
linear_model: Any = import_module("sklearn.linear_model")
feature_extraction: Any = import_module("sklearn.feature_extraction")

#: Weights next to zero are left out.
_WEIGHT_MIN = 0.02


class Logit:
    """A fitted logit.

    Parameters:
        fitted: the names of the inputs of each example.
        labels: whether each is one.
        penalty: the inverse strength of the L2 penalty.
        count_min: examples that an input occurs in, at least.
    """

    def __init__(
        self, fitted: Sequence[Collection[str]], labels: Sequence[bool], *, penalty: float, count_min: int
    ) -> None:
        self._vectorizer = feature_extraction.DictVectorizer()
        matrix = self._vectorizer.fit_transform([dict.fromkeys(names, 1) for names in fitted])
        self._kept = np.flatnonzero(np.asarray((matrix > 0).sum(axis=0)).ravel() >= count_min)
        self._model = linear_model.LogisticRegression(C=penalty, max_iter=3_000, fit_intercept=False)
        self._model.fit(matrix[:, self._kept], labels)

    def probabilities(self, read: Sequence[Collection[str]]) -> list[float]:
        """Return the probability of each example; 0 for one without inputs."""
        matrix = self._vectorizer.transform([dict.fromkeys(names, 1) for names in read])
        found = self._model.predict_proba(matrix[:, self._kept])[:, 1]
        return [float(p) if names else 0.0 for p, names in zip(found, read, strict=True)]

    def weights(self) -> dict[str, float]:
        """Return the weights that matter, by their inputs."""
        names = self._vectorizer.get_feature_names_out()[self._kept]
        weighted = zip(names, self._model.coef_[0], strict=True)
        return {str(name): round(float(weight), 2) for name, weight in weighted if abs(weight) >= _WEIGHT_MIN}


def write(name: str, table: dict[str, Any]) -> None:
    """Write a file of weights into the package."""
    content = json.dumps(table, ensure_ascii=False, separators=(",", ":"))
    (Path(intake.__path__[0]) / name).write_text(f"{content}\n", encoding="utf-8")
