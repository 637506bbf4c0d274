"""Training of the statement reader: fits the weights of `jobs/extraction/reader_weights.npz` to labelled sentences.

    .venv/bin/python ops/train/reader [--write]

One voice in five is held out: prints how well the reader decides on those sentences, by words alone and with vectors.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from label_files import LabelledSentence, labelled_sentences
from numpy.typing import NDArray

from recollect.jobs import extraction as package
from recollect.jobs.extraction.clause_features import BUCKETS, clause_features
from recollect.jobs.extraction.clauses import clauses
from recollect.jobs.extraction.statement_reader import HEADS, clause_vector
from recollect.projections.embeddings.embedder import open_embedder
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding

# These libraries have no types.
sparse: Any = import_module("scipy.sparse")
linear_model: Any = import_module("sklearn.linear_model")
metrics: Any = import_module("sklearn.metrics")

Matrix = NDArray[np.float32]
#: Inverse strength of the L2 penalty: the best of .05, .1, .2 and .5 by the same folds.
_C = 0.15
#: Length of a vector beside a feature of words, which is 1: the best of 2, 3, 4, 8 and 12 by folds over the voices.
_VECTOR_LENGTH = 4.0
_BATCH = 64
_INT8_MAX = 127


class Examples:
    """The clauses of labelled sentences, with features, vectors and labels."""

    def __init__(self, sentences: list[LabelledSentence], embeddings: list[TokenEmbedding]) -> None:
        rows: list[list[int]] = []
        vectors: list[Any] = []
        self.labels: dict[str, list[int]] = {head: [] for head in HEADS}
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
                for head, classes in HEADS.items():
                    self.labels[head].append(classes.index(sentence.parts[best].labels[head]))
        ends = np.cumsum([0, *(len(row) for row in rows)])
        indices = np.concatenate([np.array(row) for row in rows])
        self.words = sparse.csr_matrix((np.ones(len(indices), np.float32), indices, ends), shape=(len(rows), BUCKETS))
        self.vectors: Matrix = np.array(vectors, np.float32)

    def inputs(self, *, with_vectors: bool) -> Any:
        """Return the matrix that a model reads."""
        return (
            sparse.hstack([self.words, sparse.csr_matrix(self.vectors * _VECTOR_LENGTH)]).tocsr()
            if with_vectors
            else self.words
        )


def fitted(examples: Examples, *, with_vectors: bool) -> dict[str, NDArray[Any]]:
    """Return the arrays of one model, by name."""
    inputs = examples.inputs(with_vectors=with_vectors)
    weights: list[Matrix] = []
    biases: list[Matrix] = []
    for head, classes in HEADS.items():
        model = linear_model.LogisticRegression(C=_C, max_iter=1_000).fit(inputs, examples.labels[head])
        coefficients: Any = model.coef_
        intercept: Any = model.intercept_
        if len(classes) == 2:
            coefficients, intercept = (
                np.vstack((-coefficients, coefficients)) / 2,
                np.array((-intercept[0], intercept[0])) / 2,
            )
        weights.append(np.asarray(coefficients, np.float32).T)
        biases.append(np.asarray(intercept, np.float32))
    matrix = np.hstack(weights)
    words = matrix[:BUCKETS]
    scale: Matrix = np.asarray(np.abs(words).max(axis=0) / _INT8_MAX, np.float32)
    name = "both" if with_vectors else "words"
    arrays: dict[str, NDArray[Any]] = {
        f"{name}_words": np.asarray(np.round(words / scale), np.int8),
        f"{name}_scale": scale,
        f"{name}_bias": np.concatenate(biases),
    }
    return arrays | ({"both_vectors": (matrix[BUCKETS:] * _VECTOR_LENGTH).astype(np.float16)} if with_vectors else {})


def scores(arrays: dict[str, NDArray[Any]], examples: Examples, *, with_vectors: bool) -> Matrix:
    """Return the scores of all classes, shape (clauses, classes)."""
    name = "both" if with_vectors else "words"
    result = examples.words @ (arrays[f"{name}_words"] * arrays[f"{name}_scale"]) + arrays[f"{name}_bias"]
    return result + examples.vectors @ arrays["both_vectors"].astype(np.float32) if with_vectors else result


def report(found: Matrix, examples: Examples) -> None:
    """Print precision and recall of the classes that decide something."""
    start = 0
    for head, classes in HEADS.items():
        part = np.exp(found[:, start : start + len(classes)])
        part /= part.sum(axis=1, keepdims=True)
        start += len(classes)
        labels = np.array(examples.labels[head])
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
    sentences = [*labelled_sentences()]
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
        print("words and vectors" if with_vectors else "words alone")
        report(scores(arrays, held_out, with_vectors=with_vectors), held_out)
    if arguments.write:
        path = Path(package.__path__[0]) / "reader_weights.npz"
        np.savez_compressed(path, allow_pickle=False, **arrays)
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
