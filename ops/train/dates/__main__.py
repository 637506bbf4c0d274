"""Training of the date reading: fits the weights of `projections/text/date_weights.json` to labelled sentences.

    .venv/bin/python ops/train/dates [--write]

Prints what ten-fold cross-validation over the texts gives: how many sure dates are read right, and of the dates that
would be shown, how many are right. The multinomial logit is convex, so the result does not depend on a start.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from label_files import FOLDER, LabelledText, read_labels
from numpy.typing import NDArray
from patterned_texts import patterned_texts

from recollect.projections import text as package
from recollect.projections.text.date_cues import cues_of
from recollect.projections.text.date_patterns import possible_dates
from recollect.projections.text.date_reading import FEATURES, features_of

Matrix = NDArray[np.float64]
#: Cues of fewer labels have no weights.
_COUNT_MIN = 3
#: Strength of the L2 penalty, the best of .5, .8 and 1.2 by the dates read right in cross-validation.
_PENALTY = 0.8
_FOLDS = 10
#: Weight of an expression that a completely labelled text has no label for: it is no date.
_UNLABELLED_WEIGHT = 0.5
#: Weight of a patterned sentence, of which there are thrice as many as labelled expressions.
_PATTERNED_WEIGHT = 0.1
_THRESHOLDS = (0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995)


class Example(NamedTuple):
    """An expression with what it means."""

    #: Number of the text, which is held out with all its expressions.
    text: int
    cues: list[str]
    features: Matrix
    #: The probability that each row of the features should have.
    target: Matrix
    weight: float
    #: `sure`, `unsure`, `none`, `yearless` or `unlabelled`.
    what: str
    #: The expression with its surroundings.
    words: str


def examples_of(texts: list[LabelledText], weight: float = 1.0) -> tuple[list[Example], int]:
    """Return the expressions of the texts, each with a weight, and the number of sure dates without an expression."""
    examples: list[Example] = []
    missed = 0
    for number, item in enumerate(texts):
        readings = possible_dates(item.text, item.said)
        missed += sum(
            label.what == "sure"
            and not any(reading.start < label.end and label.start < reading.end for reading in readings)
            for label in item.labels
        )
        for reading in readings:
            labels = [label for label in item.labels if reading.start < label.end and label.start < reading.end]
            if not labels and not item.complete:
                continue
            ranges = {span for label in labels for span in label.ranges}
            is_right = [(first, last - timedelta(days=1)) in ranges for first, last in reading.candidates]
            target = np.array([not any(is_right), *is_right], np.float64)
            target /= target.sum()
            what = labels[0].what if labels else "unlabelled"
            if what == "unsure":
                target = 0.5 * target + 0.5 * np.eye(len(target))[0]
            around = item.text[max(0, reading.start - 60) : reading.start], item.text[reading.end : reading.end + 30]
            examples.append(
                Example(
                    number,
                    cues_of(item.text, reading),
                    features_of(reading, readings),
                    target,
                    weight if labels else _UNLABELLED_WEIGHT,
                    what,
                    f"{item.said:%Y-%m-%d} {around[0]}[{item.text[reading.start : reading.end]}]{around[1]}".replace(
                        "\n", "/"
                    ),
                )
            )
    return examples, missed


class Model:
    """The weights of cues."""

    def __init__(self, examples: list[Example], penalty: float = _PENALTY) -> None:
        counts = Counter(cue for example in examples for cue in set(example.cues))
        self.cues = {
            cue: row for row, cue in enumerate(sorted(cue for cue, count in counts.items() if count >= _COUNT_MIN))
        }
        inputs, features, targets, present = self._arrays(examples)
        weights = np.array([example.weight for example in examples])

        def loss(flat: Matrix) -> tuple[float, Matrix]:
            rows = flat.reshape(len(self.cues), len(FEATURES))
            probabilities = _softmax(np.einsum("nf,nkf->nk", inputs @ rows, features), present)
            # An expression with several right candidates needs the sum of their probabilities only.
            mass = np.where(targets > 0, probabilities, 0)
            shared = mass.sum(axis=1, keepdims=True)
            is_mixed = (targets[:, 0] > 0) & (targets[:, 1:].sum(axis=1) > 0)
            wanted = np.where(is_mixed[:, None], targets, mass / np.maximum(shared, 1e-300))
            of_one: Matrix = -np.log(np.maximum(shared[:, 0], 1e-300))
            of_mixed: Matrix = -(targets * np.log(np.maximum(probabilities, 1e-300))).sum(axis=1)
            value = float(weights[is_mixed] @ of_mixed[is_mixed] + weights[~is_mixed] @ of_one[~is_mixed])
            gradient = inputs.T @ np.einsum("nk,nkf->nf", (probabilities - wanted) * weights[:, None], features)
            return value + penalty / 2 * float(flat @ flat), gradient.ravel() + penalty * flat

        start = np.zeros(len(self.cues) * len(FEATURES))
        # scipy comes with sentence-transformers and has no types.
        optimize: Any = import_module("scipy.optimize")
        result = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 400})
        self.rows: Matrix = np.reshape(result.x, (len(self.cues), len(FEATURES)))

    def _arrays(self, examples: list[Example]) -> tuple[Matrix, Matrix, Matrix, NDArray[np.bool_]]:
        """Return cues (n, c), features (n, k, f), targets (n, k), and which of the k candidates there are (n, k)."""
        most = max(len(example.target) for example in examples)
        inputs = np.zeros((len(examples), len(self.cues)))
        features = np.zeros((len(examples), most, len(FEATURES)))
        targets = np.zeros((len(examples), most))
        present = np.zeros((len(examples), most), np.bool_)
        for row, example in enumerate(examples):
            # As in the reading: a cue that is given twice counts twice.
            for cue in example.cues:
                if cue in self.cues:
                    inputs[row, self.cues[cue]] += 1
            size = len(example.target)
            features[row, :size], targets[row, :size], present[row, :size] = example.features, example.target, True
        return inputs, features, targets, present

    def probabilities(self, examples: list[Example]) -> list[Matrix]:
        """Return the probabilities of the candidates of each example, no date first."""
        inputs, features, _, present = self._arrays(examples)
        scores = _softmax(np.einsum("nf,nkf->nk", inputs @ self.rows, features), present)
        return [row[: len(example.target)] for row, example in zip(scores, examples, strict=True)]


def _softmax(scores: Matrix, present: NDArray[np.bool_]) -> Matrix:
    scores = np.where(present, scores, -np.inf)
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def cross_validated(examples: list[Example], patterned: list[Example], penalty: float) -> list[Matrix]:
    """Return the probabilities of each example by a model that was fitted without its text.

    Parameters:
        patterned: examples that are always fitted to.
    """
    order = np.random.default_rng(7).permutation(max(example.text for example in examples) + 1)
    results: list[Matrix] = [np.zeros(0)] * len(examples)
    for fold in range(_FOLDS):
        held_out = [row for row, example in enumerate(examples) if order[example.text] % _FOLDS == fold]
        fitted = [example for example in examples if order[example.text] % _FOLDS != fold]
        model = Model([*fitted, *patterned], penalty)
        for row, probabilities in zip(held_out, model.probabilities([examples[row] for row in held_out]), strict=True):
            results[row] = probabilities
    return results


def report(examples: list[Example], probabilities: list[Matrix], missed: int, *, wrong: bool) -> None:
    """Print how many sure dates are read right, and how many of those shown at each threshold are."""
    likelihood = np.mean(
        [np.log(max(1e-9, p[e.target > 0].sum())) for e, p in zip(examples, probabilities, strict=True)]
    )
    tops = [int(p[1:].argmax()) + 1 for p in probabilities]
    right = [bool(example.target[top] > 0) for example, top in zip(examples, tops, strict=True)]
    is_sure = [example.what == "sure" for example in examples]
    sure = sum(is_sure) + missed
    read = sum(right[row] for row, wanted in enumerate(is_sure) if wanted)
    print(f"{len(examples)} expressions, log likelihood {likelihood:.4f}")
    print(f"sure dates read right: {read} of {sure} ({read / sure:.1%}), {missed} without an expression")
    for threshold in _THRESHOLDS:
        shown = [row for row, p in enumerate(probabilities) if p[tops[row]] >= threshold]
        shown = [row for row in shown if examples[row].what != "unlabelled"]
        correct = sum(right[row] for row in shown)
        share = sum(right[row] and is_sure[row] for row in shown) / sure
        print(f"from {threshold}: {correct} of {len(shown)} right, {share:.1%} of the sure dates")
    for row, p in enumerate(probabilities) if wrong else ():
        example, top = examples[row], p[tops[row]]
        if not right[row] and (is_sure[row] or top > 0.9):
            wanted = int(example.target.argmax())
            print(f"{top:.3f} none {p[0]:.2f} {example.what} {wanted}/{tops[row]} {example.words}")


def main() -> None:
    """Fit, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=sorted(FOLDER.glob("*-train.jsonl")))
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument("--penalty", type=float, default=_PENALTY)
    parser.add_argument("--weight", type=float, default=_PATTERNED_WEIGHT)
    parser.add_argument("--wrong", action="store_true", help="list what is read wrongly")
    arguments = parser.parse_args()
    texts = [item for path in arguments.paths for item in read_labels(path)]
    examples, missed = examples_of(texts)
    patterned, _ = examples_of([*patterned_texts()], arguments.weight)
    report(examples, cross_validated(examples, patterned, arguments.penalty), missed, wrong=arguments.wrong)
    if arguments.write:
        model = Model([*examples, *patterned], arguments.penalty)
        lines = [
            f"{json.dumps(cue)}: {json.dumps([round(float(value), 2) for value in model.rows[row]])}"
            for cue, row in model.cues.items()
        ]
        about = (
            f"Weights of date_reading.py, written by ops/train/dates from {len(examples)} expressions in {len(texts)} "
            f"texts and {len(patterned)} patterned ones: of each cue, the weight of each feature of a candidate."
        )
        content = (
            f'{{"about": {json.dumps(about)},\n"features": {json.dumps(FEATURES)},\n"weights": {{\n'
            + ",\n".join(lines)
            + "\n}}\n"
        )
        (Path(package.__path__[0]) / "date_weights.json").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
