"""Training of the date reading: fits its weights to labelled sentences.

    OMP_NUM_THREADS=1 .venv/bin/python ops/train/dates [--encoder] [--write]

The words alone are read by the weights of `date_weights.json`, a multinomial logit, which is convex, so the result does
not depend on a start; ten-fold cross-validation says how good it is. With `--encoder` (6 minutes), an encoder is
trained whose vectors are inputs of the logit as well (`dates_adapter.npz`, `date_vector_weights.npz`). Prints of the
held-out files how many sure dates are read right, and of the dates that would be shown, how many are right.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from date_encoder import DateEncoder, trained
from expressions import Expression, Matrix, expressions_of
from label_files import FOLDER, read_labels
from numpy.typing import NDArray
from patterned_texts import patterned_texts

from recollect.projections import embeddings
from recollect.projections import text as package
from recollect.projections.text.date_reading import FEATURES

#: Cues of fewer labels have no weights.
_COUNT_MIN = 3
#: Strength of the L2 penalty, the best of .5, .8 and 1.2 by the dates read right in cross-validation.
_PENALTY = 0.8
_FOLDS = 10
#: Weight of a patterned sentence in the model of words, of which there are as many as labelled expressions; it is 1 for
#: the encoder, which learns more from them.
_PATTERNED_WEIGHT = 0.1
#: The files that the model of words is fitted to: with those of the second and third writer it shows fewer dates right.
_WORD_FILES = ("given-train", "own-train")
_THRESHOLDS = (0.9, 0.95, 0.97, 0.98, 0.985, 0.988, 0.99, 0.995)


class Model:
    """The weights of cues."""

    def __init__(self, expressions: list[Expression], penalty: float = _PENALTY) -> None:
        counts = Counter(cue for expression in expressions for cue in set(expression.cues))
        self.cues = {
            cue: row for row, cue in enumerate(sorted(cue for cue, count in counts.items() if count >= _COUNT_MIN))
        }
        inputs, features, targets, present = self._arrays(expressions)
        weights = np.array([expression.weight for expression in expressions])

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

    def _arrays(self, expressions: list[Expression]) -> tuple[Matrix, Matrix, Matrix, NDArray[np.bool_]]:
        """Return cues (n, c), features (n, k, f), targets (n, k), and which of the k candidates there are (n, k)."""
        most = max(len(expression.target) for expression in expressions)
        inputs = np.zeros((len(expressions), len(self.cues)))
        features = np.zeros((len(expressions), most, len(FEATURES)))
        targets = np.zeros((len(expressions), most))
        present = np.zeros((len(expressions), most), np.bool_)
        for row, expression in enumerate(expressions):
            # As in the reading: a cue that is given twice counts twice.
            for cue in expression.cues:
                if cue in self.cues:
                    inputs[row, self.cues[cue]] += 1
            size = len(expression.target)
            features[row, :size], targets[row, :size], present[row, :size] = (
                expression.features,
                expression.target,
                True,
            )
        return inputs, features, targets, present

    def probabilities(self, expressions: list[Expression]) -> list[Matrix]:
        """Return the probabilities of the candidates of each expression, no date first."""
        inputs, features, _, present = self._arrays(expressions)
        scores = _softmax(np.einsum("nf,nkf->nk", inputs @ self.rows, features), present)
        return [row[: len(expression.target)] for row, expression in zip(scores, expressions, strict=True)]


def _softmax(scores: Matrix, present: NDArray[np.bool_]) -> Matrix:
    scores = np.where(present, scores, -np.inf)
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def cross_validated(expressions: list[Expression], patterned: list[Expression], penalty: float) -> list[Matrix]:
    """Return the probabilities of each expression by a model that was fitted without its text.

    Parameters:
        patterned: expressions that are always fitted to.
    """
    order = np.random.default_rng(7).permutation(max(expression.text for expression in expressions) + 1)
    results: list[Matrix] = [np.zeros(0)] * len(expressions)
    for fold in range(_FOLDS):
        held_out = [row for row, expression in enumerate(expressions) if order[expression.text] % _FOLDS == fold]
        fitted = [expression for expression in expressions if order[expression.text] % _FOLDS != fold]
        model = Model([*fitted, *patterned], penalty)
        for row, probabilities in zip(
            held_out, model.probabilities([expressions[row] for row in held_out]), strict=True
        ):
            results[row] = probabilities
    return results


def report(expressions: list[Expression], probabilities: list[Matrix], missed: int, *, wrong: bool) -> None:
    """Print how many sure dates are read right, and how many of those shown at each threshold are."""
    likelihood = np.mean(
        [np.log(max(1e-9, p[e.target > 0].sum())) for e, p in zip(expressions, probabilities, strict=True)]
    )
    tops = [int(p[1:].argmax()) + 1 for p in probabilities]
    right = [bool(expression.target[top] > 0) for expression, top in zip(expressions, tops, strict=True)]
    is_sure = [expression.what == "sure" for expression in expressions]
    sure = sum(is_sure) + missed
    read = sum(right[row] for row, wanted in enumerate(is_sure) if wanted)
    print(f"{len(expressions)} expressions, log likelihood {likelihood:.4f}")
    print(f"sure dates read right: {read} of {sure} ({read / sure:.1%}), {missed} without an expression")
    for threshold in _THRESHOLDS:
        shown = [row for row, p in enumerate(probabilities) if p[tops[row]] >= threshold]
        shown = [row for row in shown if expressions[row].what != "unlabelled"]
        correct = sum(right[row] for row in shown)
        share = sum(right[row] and is_sure[row] for row in shown) / sure
        print(f"from {threshold}: {correct} of {len(shown)} right, {share:.1%} of the sure dates")
    for row, p in enumerate(probabilities) if wrong else ():
        expression, top = expressions[row], p[tops[row]]
        if not right[row] and (is_sure[row] or top > 0.9):
            wanted = int(expression.target.argmax())
            print(f"{top:.3f} none {p[0]:.2f} {expression.what} {wanted}/{tops[row]} {expression}")


def held_out_report(encoder: DateEncoder, *, wrong: bool) -> None:
    """Print what an encoder reads in the held-out files."""
    for path in sorted(FOLDER.glob("*-heldout.jsonl")):
        expressions, missed = expressions_of([*read_labels(path)])
        print(path.stem)
        report(expressions, encoder.probabilities(expressions), missed, wrong=wrong)


def write_words(model: Model, about: str) -> None:
    """Write the weights of the words into the package."""
    lines = [
        f"{json.dumps(cue)}: {json.dumps([round(float(value), 2) for value in model.rows[row]])}"
        for cue, row in model.cues.items()
    ]
    content = (
        f'{{"about": {json.dumps(about)},\n"features": {json.dumps(FEATURES)},\n"weights": {{\n'
        + ",\n".join(lines)
        + "\n}}\n"
    )
    (Path(package.__path__[0]) / "date_weights.json").write_text(content, encoding="utf-8")


def write_encoder(encoder: DateEncoder) -> None:
    """Write the adapter and the weights of cues and vectors into the package."""
    adapter: dict[str, Any] = encoder.adapter()
    weights: dict[str, Any] = encoder.weights()
    np.savez_compressed(Path(embeddings.__path__[0]) / "dates_adapter.npz", **adapter)
    np.savez_compressed(Path(package.__path__[0]) / "date_vector_weights.npz", **weights)


def main() -> None:
    """Fit, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", action="store_true", help="train the encoder instead of the model of words")
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument("--penalty", type=float, default=_PENALTY)
    parser.add_argument("--wrong", action="store_true", help="list what is read wrongly")
    arguments = parser.parse_args()
    files = sorted(FOLDER.glob("*-train.jsonl"))
    if arguments.encoder:
        texts = [item for path in files for item in read_labels(path)]
        encoder = trained([*expressions_of(texts)[0], *expressions_of([*patterned_texts()])[0]])
        held_out_report(encoder, wrong=arguments.wrong)
        if arguments.write:
            write_encoder(encoder)
        return
    texts = [item for path in files if path.stem in _WORD_FILES for item in read_labels(path)]
    expressions, missed = expressions_of(texts, encoder=False)
    patterned, _ = expressions_of([*patterned_texts()], _PATTERNED_WEIGHT, encoder=False)
    results = cross_validated(expressions, patterned, arguments.penalty)
    report(expressions, results, missed, wrong=arguments.wrong)
    if arguments.write:
        write_words(
            Model([*expressions, *patterned], arguments.penalty),
            f"Weights of date_reading.py, written by ops/train/dates from {len(expressions)} expressions in "
            f"{len(texts)} texts and {len(patterned)} patterned ones: of each cue, the weight of each feature of a "
            "candidate.",
        )


if __name__ == "__main__":
    main()
