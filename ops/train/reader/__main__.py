"""Training of the statement reader: fits the weights of `jobs/extraction/reader_weights.npz` to labelled sentences.

    .venv/bin/python ops/train/reader [--write]

One voice in five is held out: prints how well the reader decides on those sentences, by words alone and with vectors.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from label_files import NO_RULE, LabelledSentence, drawn_sentences, labelled_sentences
from numpy.typing import NDArray

from recollect.jobs import extraction as package
from recollect.jobs.extraction.clause_features import BUCKETS, WORD_ROWS, clause_features
from recollect.jobs.extraction.clauses import clauses
from recollect.jobs.extraction.statement_reader import HEADS, clause_vector
from recollect.projections.embeddings.embedder import open_embedder
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding

# These libraries have no types.
sparse: Any = import_module("scipy.sparse")
optimize: Any = import_module("scipy.optimize")
metrics: Any = import_module("sklearn.metrics")

Matrix = NDArray[np.float32]
#: Inverse strength of the L2 penalty: the best of .05, .1, .2 and .5 by folds over the voices.
_C = 0.15
#: Iterations of the optimiser; the figures of held-out voices no longer change after half of them.
_ITERATIONS = 120
#: Value of a feature of a piece of a word beside one of a word, which is 1: the best of 0, .4, .5 and 1.
_PIECE_LENGTH = 0.4
#: Length of a vector beside a feature of words, which is 1: the best of 2, 3, 4, 8 and 12 by the same folds.
_VECTOR_LENGTH = 4.0
#: Share of the words alone in the scores of acts: average precision of rules .77 with 0, .80 with .5, .76 with 1.
_BLEND = 0.5
#: Columns of each head.
_WIDTHS = [len(classes) for classes in HEADS.values()]
#: A score and a probability that a number of 32 bits can hold.
_SCORE_MAX = 60.0
_FLOOR = 1e-30
_BATCH = 64
_INT8_MAX = 127


class Examples:
    """The clauses of labelled sentences, with features, vectors and labels."""

    def __init__(self, sentences: list[LabelledSentence], embeddings: list[TokenEmbedding]) -> None:
        rows: list[list[int]] = []
        vectors: list[Any] = []
        #: The class of each head; -1: not known.
        self.labels: dict[str, list[int]] = {head: [] for head in HEADS}
        #: The columns of the classes that the labels allow.
        self.allowed: list[NDArray[np.bool_]] = []
        self.texts: list[str] = []
        for sentence, embedding in zip(sentences, embeddings, strict=True):
            for clause in clauses(sentence.text):
                shared = [min(clause.end, part.end) - max(clause.start, part.start) for part in sentence.parts]
                best = int(np.argmax(shared))
                if shared[best] <= 0:
                    continue
                before, after = sentence.text[: clause.start], sentence.text[clause.end :]
                rows.append(clause_features(clause.text, before, after, to_assistant=sentence.to_assistant))
                vectors.append(clause_vector(embedding, clause))
                self.texts.append(clause.text)
                self._add(sentence.parts[best].labels)
        ends = np.cumsum([0, *(len(row) for row in rows)])
        indices = np.concatenate([np.array(row) for row in rows])
        values = np.where(indices < WORD_ROWS, 1, _PIECE_LENGTH).astype(np.float32)
        self.words = sparse.csr_matrix((values, indices, ends), shape=(len(rows), BUCKETS))
        self.vectors: Matrix = np.array(vectors, np.float32)

    def _add(self, labels: Mapping[str, str]) -> None:
        """Add the labels of a clause."""
        allowed: list[bool] = []
        for head, classes in HEADS.items():
            label = labels.get(head)
            self.labels[head].append(classes.index(label) if label in classes else -1)
            barred = ("rules", "unrules") if label == NO_RULE else ()
            allowed += [label == name if label in classes else name not in barred for name in classes]
        self.allowed.append(np.array(allowed))


def fitted(examples: Examples, *, with_vectors: bool) -> dict[str, NDArray[Any]]:
    """Return the arrays of one model, by name: the minimum of the logistic losses of all heads and the L2 penalty."""
    inputs = examples.words
    transposed = inputs.T.tocsr()
    dense: Matrix = examples.vectors * _VECTOR_LENGTH if with_vectors else examples.vectors[:, :0]
    columns = sum(_WIDTHS)
    allowed = np.array(examples.allowed)

    def loss(flat: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        weights = flat.reshape(-1, columns).astype(np.float32)
        found = inputs @ weights[:BUCKETS] + dense @ weights[BUCKETS:-1] + weights[-1]
        probabilities = softmax(found)
        # Of the classes that a label allows, any is right.
        right = np.maximum(by_head(np.where(allowed, probabilities, 0)), _FLOOR)
        rest = probabilities - np.where(allowed, probabilities, 0) / np.repeat(right, _WIDTHS, axis=1)
        gradient = np.vstack((transposed @ rest, dense.T @ rest, rest.sum(axis=0)))
        gradient[:-1] += weights[:-1] / _C
        value = -np.log(right).sum() + (weights[:-1] ** 2).sum() / (2 * _C)
        return float(value), gradient.ravel().astype(np.float64)

    start = np.zeros((BUCKETS + dense.shape[1] + 1) * columns)
    options = {"maxiter": _ITERATIONS, "maxcor": 6}
    result: Any = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    matrix: Matrix = result.x.reshape(-1, columns).astype(np.float32)
    # The reader counts a piece of a word as 1, like a word.
    matrix[WORD_ROWS:BUCKETS] *= _PIECE_LENGTH
    words = matrix[:BUCKETS]
    scale: Matrix = np.asarray(np.abs(words).max(axis=0) / _INT8_MAX, np.float32)
    name = "both" if with_vectors else "words"
    arrays: dict[str, NDArray[Any]] = {
        f"{name}_words": np.asarray(np.round(words / scale), np.int8),
        f"{name}_scale": scale,
        f"{name}_bias": matrix[-1],
    }
    vectors = (matrix[BUCKETS:-1] * _VECTOR_LENGTH).astype(np.float16)
    return arrays | ({"both_vectors": vectors} if with_vectors else {})


def blended(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the model of words and vectors; its scores of acts are the mean of those of both models."""
    shares = np.repeat([_BLEND if head == "act" else 0 for head in HEADS], _WIDTHS).astype(np.float32)
    words, both = (arrays[f"{name}_words"] * arrays[f"{name}_scale"] for name in ("words", "both"))
    matrix: Matrix = both * (1 - shares) + words * shares
    scale: Matrix = np.abs(matrix).max(axis=0) / _INT8_MAX
    return arrays | {
        "both_words": np.round(matrix / scale).astype(np.int8),
        "both_scale": scale,
        "both_bias": arrays["both_bias"] * (1 - shares) + arrays["words_bias"] * shares,
        "both_vectors": (arrays["both_vectors"] * (1 - shares)).astype(np.float16),
    }


def softmax(found: Matrix) -> Matrix:
    """Return the probabilities of the classes of each head."""
    powers: Matrix = np.exp(np.clip(found, -_SCORE_MAX, _SCORE_MAX))
    return powers / np.repeat(by_head(powers), _WIDTHS, axis=1)


def by_head(values: Matrix) -> Matrix:
    """Return the sums of the classes of each head."""
    return np.add.reduceat(values, np.cumsum([0, *_WIDTHS[:-1]]), axis=1)


def scores(arrays: dict[str, NDArray[Any]], examples: Examples, *, with_vectors: bool) -> Matrix:
    """Return the scores of all classes, shape (clauses, classes)."""
    name = "both" if with_vectors else "words"
    counts = examples.words.astype(bool).astype(np.float32)
    result = counts @ (arrays[f"{name}_words"] * arrays[f"{name}_scale"]) + arrays[f"{name}_bias"]
    return result + examples.vectors @ arrays["both_vectors"].astype(np.float32) if with_vectors else result


def report(found: Matrix, examples: Examples) -> None:
    """Print precision and recall of the classes that decide something."""
    probabilities = softmax(found)
    start = 0
    for head, classes in HEADS.items():
        part = probabilities[:, start : start + len(classes)]
        start += len(classes)
        is_known = np.array(examples.labels[head]) >= 0
        labels = np.array(examples.labels[head])[is_known]
        part = part[is_known]
        print(f"  {head}: {np.mean(part.argmax(axis=1) == labels):.3f} of {len(labels)} right")
        for number, name in enumerate(classes):
            is_it = labels == number
            if head in ("kind", "about") or name in ("no", "none", "states", "talks") or is_it.sum() < 5:
                continue
            precision, recall, _ = metrics.precision_recall_curve(is_it, part[:, number])
            at = {goal: max(recall[precision >= goal], default=0) for goal in (0.5, 0.7, 0.85, 0.95)}
            figures = " ".join(f"{share:.2f} at {goal}" for goal, share in at.items())
            average = metrics.average_precision_score(is_it, part[:, number])
            print(f"    {name:9} n {is_it.sum():4} average precision {average:.3f}, recall {figures}")


def main() -> None:
    """Train, print the figures of the held-out voices, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    arguments = parser.parse_args()
    sentences = [*labelled_sentences(), *drawn_sentences()]
    embedder = open_embedder("all-MiniLM-L6-v2")
    embedder.start()
    if not embedder.wait_ready(120):
        raise SystemExit(f"The embedding model does not load: {embedder.reason}")
    embeddings = [
        embedding
        for start in range(0, len(sentences), _BATCH)
        for embedding in embedder.embed_tokens([Stretch(it.text) for it in sentences[start : start + _BATCH]])
    ]
    pairs = [*zip(sentences, embeddings, strict=True)]
    train, held_out = (
        Examples(
            [it for it, _ in pairs if it.is_held_out is wanted], [e for it, e in pairs if it.is_held_out is wanted]
        )
        for wanted in (False, True)
    )
    print(f"{len(sentences)} sentences; {train.words.shape[0]} clauses to train on, {held_out.words.shape[0]} held out")
    arrays: dict[str, NDArray[Any]] = {}
    for with_vectors in (False, True):
        arrays |= fitted(train, with_vectors=with_vectors)
        arrays = blended(arrays) if with_vectors else arrays
        print("words and vectors" if with_vectors else "words alone")
        report(scores(arrays, held_out, with_vectors=with_vectors), held_out)
    if arguments.write:
        path = Path(package.__path__[0]) / "reader_weights.npz"
        np.savez_compressed(path, allow_pickle=False, **arrays)
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
