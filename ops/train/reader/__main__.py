"""Training of the statement reader: its encoder of sentences, and `jobs/extraction/reader_weights.npz`.

    .venv/bin/python ops/train/reader [--encoder] [--write]

One voice and one chat in five are held out: prints how well the reader decides on those sentences, by words alone and
with vectors. The encoder takes 14 minutes on two processors; without `--encoder` the one of the package is used, and
words alone are fitted again.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from encoder import allowed, trained
from label_files import (
    NO_RULE,
    LabelledSentence,
    changes,
    chat_sentences,
    drawn_sentences,
    labelled_sentences,
    requests,
    rules,
)
from numpy.typing import NDArray

from recollect.jobs import extraction as package
from recollect.jobs.extraction.clause_features import BUCKETS, WORD_ROWS, clause_features
from recollect.jobs.extraction.clauses import clauses
from recollect.jobs.extraction.statement_reader import HEADS, clause_vector
from recollect.jobs.extraction.statements import AMONG_PEOPLE_RULE_MIN, KEEP_BY_WORDS_MIN, KEEP_MIN, RULE_MIN
from recollect.projections import embeddings as embeddings_package
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.projection_settings import READING_MODEL

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
#: Share of the words alone in the scores of words and vectors.
_BLEND = 0.4
_SHARES = (0.0, 0.2, 0.4, 0.6)
#: The probabilities by which the product decides on a class, with vectors and by words alone.
_DECISIONS = {"yes": (KEEP_MIN, KEEP_BY_WORDS_MIN), "rules": (RULE_MIN, AMONG_PEOPLE_RULE_MIN)}
#: Columns of each head.
_WIDTHS = [len(classes) for classes in HEADS.values()]
#: A score and a probability that a number of 32 bits can hold.
_SCORE_MAX = 60.0
_FLOOR = 1e-30
_BATCH = 64
_WEIGHTS = Path(package.__path__[0]) / "reader_weights.npz"
_ADAPTER = Path(embeddings_package.__path__[0]) / "reading_adapter.npz"
_INT8_MAX = 127


class Examples:
    """The clauses of labelled sentences, with features, vectors and labels.

    Parameters:
        embeddings: of the sentences; None where no vectors are needed.
    """

    def __init__(self, sentences: Sequence[LabelledSentence], embeddings: Sequence[TokenEmbedding] | None) -> None:
        rows: list[list[int]] = []
        vectors: list[Any] = []
        #: The class of each head; -1: not known.
        self.labels: dict[str, list[int]] = {head: [] for head in HEADS}
        #: The columns of the classes that the labels allow.
        self.allowed: list[NDArray[np.bool_]] = []
        #: Whether nothing is known of the clause but that it is not a rule.
        self.is_drawn: list[bool] = []
        self.texts: list[str] = []
        for place, sentence in enumerate(sentences):
            for clause in clauses(sentence.text):
                shared = [min(clause.end, part.end) - max(clause.start, part.start) for part in sentence.parts]
                best = int(np.argmax(shared))
                if shared[best] <= 0:
                    continue
                before, after = sentence.text[: clause.start], sentence.text[clause.end :]
                rows.append(clause_features(clause.text, before, after, to_assistant=sentence.to_assistant))
                if embeddings is not None:
                    vectors.append(clause_vector(embeddings[place], clause))
                self.texts.append(clause.text)
                self._add(sentence.parts[best].labels)
        ends = np.cumsum([0, *(len(row) for row in rows)])
        indices = np.concatenate([np.array(row) for row in rows])
        values = np.where(indices < WORD_ROWS, 1, _PIECE_LENGTH).astype(np.float32)
        self.words = sparse.csr_matrix((values, indices, ends), shape=(len(rows), BUCKETS))
        self.vectors: Matrix = np.array(vectors, np.float32)

    def _add(self, labels: dict[str, str]) -> None:
        """Add the labels of a clause."""
        for head, classes in HEADS.items():
            label = labels.get(head)
            self.labels[head].append(classes.index(label) if label in classes else -1)
        self.allowed.append(np.array([*allowed(labels)]))
        self.is_drawn.append(labels.get("act") == NO_RULE)


def fitted(examples: Examples) -> dict[str, NDArray[Any]]:
    """Return the arrays of the model of words: the minimum of the logistic losses of all heads and the L2 penalty."""
    inputs = examples.words
    transposed = inputs.T.tocsr()
    columns = sum(_WIDTHS)
    allowed = np.array(examples.allowed)

    def loss(flat: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        weights = flat.reshape(-1, columns).astype(np.float32)
        probabilities = softmax(inputs @ weights[:-1] + weights[-1])
        # Of the classes that a label allows, any is right.
        right = np.maximum(by_head(np.where(allowed, probabilities, 0)), _FLOOR)
        rest = probabilities - np.where(allowed, probabilities, 0) / np.repeat(right, _WIDTHS, axis=1)
        gradient = np.vstack((transposed @ rest, rest.sum(axis=0)))
        gradient[:-1] += weights[:-1] / _C
        value = -np.log(right).sum() + (weights[:-1] ** 2).sum() / (2 * _C)
        return float(value), gradient.ravel().astype(np.float64)

    start = np.zeros((BUCKETS + 1) * columns)
    options = {"maxiter": _ITERATIONS, "maxcor": 6}
    result: Any = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    matrix: Matrix = result.x.reshape(-1, columns).astype(np.float32)
    # The reader counts a piece of a word as 1, like a word.
    matrix[WORD_ROWS:BUCKETS] *= _PIECE_LENGTH
    return _arrays("words", matrix[:BUCKETS], matrix[-1])


def _arrays(name: str, words: Matrix, bias: Matrix) -> dict[str, NDArray[Any]]:
    """Return the stored arrays of a model."""
    scale: Matrix = np.asarray(np.abs(words).max(axis=0) / _INT8_MAX, np.float32)
    whole = np.asarray(np.round(words / np.where(scale, scale, 1)), np.int8)
    return {f"{name}_words": whole, f"{name}_scale": scale, f"{name}_bias": bias}


def blended(arrays: dict[str, NDArray[Any]], heads: dict[str, NDArray[Any]], share: float) -> dict[str, NDArray[Any]]:
    """Return the model whose scores are a share of those of the words and the rest of those of the encoder's heads."""
    words: Any = arrays["words_words"] * arrays["words_scale"] * share
    bias: Any = share * arrays["words_bias"] + (1 - share) * heads["bias"]
    both = _arrays("both", words, bias)
    return arrays | both | {"both_vectors": ((1 - share) * heads["vectors"]).astype(np.float16)}


def heads_of(arrays: Mapping[str, NDArray[Any]], share: float) -> dict[str, NDArray[Any]]:
    """Return the heads of the encoder of the package, of which its weights hold a share."""
    bias = arrays["both_bias"] - share * arrays["words_bias"]
    return {"vectors": arrays["both_vectors"].astype(np.float32) / (1 - share), "bias": bias / (1 - share)}


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
        if head == "act":
            rules = part[np.array(examples.is_drawn), classes.index("rules")]
            over = ", ".join(f"{(rules >= least).sum()} over {least}" for least in (0.45, *_DECISIONS["rules"]))
            print(f"  {len(rules)} clauses that are drawn and no rules: {over}")
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
            for least in _DECISIONS.get(name, ()):
                taken = part[:, number] >= least
                right = f"{is_it[taken].mean():.1%} right, {taken[is_it].mean():.1%} of all"
                print(f"      from {least}: {taken.sum()} clauses, {right}")


def main() -> None:
    """Train, print the figures of the held-out voices, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", action="store_true", help="train the encoder of sentences, too")
    parser.add_argument("--write", action="store_true", help="write the weights into the package")
    arguments = parser.parse_args()
    sentences = [*labelled_sentences(), *drawn_sentences(), *chat_sentences()]
    if arguments.encoder:
        more = [*sentences, *requests(), *changes()]
        adapter, heads = trained([it for it in more if not it.is_held_out])
        # The figures are those of the files: the reader finds the adapter in the package.
        np.savez_compressed(_ADAPTER, allow_pickle=False, **adapter)
    else:
        with np.load(_WEIGHTS) as stored:
            heads = heads_of(stored, _BLEND)
    unread = [it for it in (*sentences, *rules()) if it.is_held_out]
    train = Examples([it for it in sentences if not it.is_held_out], None)
    held_out = Examples(unread, _embeddings(unread))
    print(f"{len(sentences)} sentences; {train.words.shape[0]} clauses to train on, {held_out.words.shape[0]} held out")
    words = fitted(train)
    print("words alone")
    report(scores(words, held_out, with_vectors=False), held_out)
    for share in _SHARES:
        print(f"words and vectors, {share:.0%} of the words")
        report(scores(blended(words, heads, share), held_out, with_vectors=True), held_out)
    if arguments.write:
        np.savez_compressed(_WEIGHTS, allow_pickle=False, **blended(words, heads, _BLEND))
        print(f"{_WEIGHTS}: {_WEIGHTS.stat().st_size / 1e6:.2f} MB")


def _embeddings(sentences: Sequence[LabelledSentence]) -> list[TokenEmbedding]:
    """Return the embeddings of sentences by the encoder of the package."""
    embedder = SentenceEmbedder(READING_MODEL)
    embedder.start()
    if not embedder.wait_ready(120):
        raise SystemExit(f"The encoder does not load: {embedder.reason}")
    return [
        embedding
        for start in range(0, len(sentences), _BATCH)
        for embedding in embedder.embed_tokens([Stretch(it.text) for it in sentences[start : start + _BATCH]])
    ]


if __name__ == "__main__":
    main()
