"""Training of the salience of statements: fits the weights of `jobs/extraction/statement_salience.py`.

    OMP_NUM_THREADS=1 .venv/bin/python ops/train/salience [--write]

Prints how many statements of held-out chats are kept, and how many of these are good, alone or with the one before.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.jobs import extraction
from recollect.jobs.extraction.author_text import author_text
from recollect.jobs.extraction.spoken_sentences import sentences
from recollect.jobs.extraction.statement_salience import CLASSES, WEIGHTS, inputs_of
from recollect.jobs.extraction.statements import JOINED_MIN, place_of, read_sentences, says_something, statements
from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.reading_encoder import Embed
from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.projection_settings import READING_MODEL
from recollect.projections.text.sentence_language import language_of

sys.path.append(str(Path(__file__).parents[1] / "reader"))
label_files: Any = import_module("label_files")
linear_model: Any = import_module("sklearn.linear_model")

_LABELS = Path(__file__).parent / "labels"
#: Passing statements, and those that are not claims of their writer, are left out.
_LETTERS = {"g": "good", "c": "context", "t": "passing", "w": "passing"}
#: Inverse strength of the penalty: of .02, .05 and .15 the best by the training chats.
_C = 0.05
_THRESHOLDS = (0.4, 0.5, 0.6, 0.7)
#: The weight of a plain sentence beside a statement of a chat: chats have few short sentences and few languages.
_PLAIN_WEIGHT = 0.25
_PLAIN_CHARS_MAX = 120
_CJK = ("\u3040", "\u9fff")


class Example(NamedTuple):
    """A labelled statement."""

    inputs: NDArray[np.float64]
    label: str
    #: Whether its message has a sentence before it, to which it can be joined.
    follows: bool


def labels_of(pattern: str) -> dict[str, dict[str, str]]:
    """Return the labels of statements by message and words."""
    labels: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path in sorted(_LABELS.glob(pattern)):
        for line in path.read_text(encoding="utf-8").splitlines():
            message, letter, words = line.split("|", 2)
            labels[message][words] = _LETTERS[letter]
    return labels


def examples(labels: dict[str, dict[str, str]], embed: Embed | None) -> Iterator[Example]:
    """Yield the labelled statements of the chats as the reader reads them; None: by words alone."""
    for chat in label_files.chats():
        for event in chat.events:
            if not (labelled := labels.get(event["id"])):
                continue
            payload = event["payload"]
            said = [it.said for it in sentences(author_text(payload["text"], payload.get("name") or "user"))]
            read = read_sentences(said, to_assistant=True, embed=embed)
            for number, parts in enumerate(read):
                for statement in statements(said[number], parts):
                    if (label := labelled.get(statement.text)) is not None:
                        place = place_of(statement, said, number)
                        follows = number > 0 and says_something(read[number - 1])
                        yield Example(inputs_of(statement.clauses, place), label, follows)


def plain_examples(origin: str, embed: Embed | None, *, held_out: bool) -> Iterator[Example]:
    """Yield the statements of sentences that the reader is trained on: what lasts is good, the rest is passing."""
    for sentence in label_files.labelled_sentences(origin):
        text = sentence.text
        is_chosen = origin == "own-plain" or _is_foreign(text)
        if not is_chosen or sentence.is_held_out != held_out or len(text) > _PLAIN_CHARS_MAX:
            continue
        [read] = read_sentences([text], to_assistant=sentence.to_assistant, embed=embed)
        for statement in statements(text, read):
            labels = [it.labels for it in sentence.parts if it.start < statement.end and statement.start < it.end]
            if known := [it for it in labels if "keep" in it]:
                is_good = any(it["keep"] == "yes" and it.get("act", "states") == "states" for it in known)
                label = "good" if is_good else "passing"
                yield Example(inputs_of(statement.clauses, place_of(statement, [text], 0)), label, follows=False)


def _is_foreign(text: str) -> bool:
    return language_of(text) is not None or any(_CJK[0] <= char <= _CJK[1] for char in text)


def fitted(read: Sequence[Example], plain: Sequence[Example]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weights, shape (inputs, classes), and the biases."""
    every = [*read, *plain]
    inputs, labels = np.array([it.inputs for it in every]), np.array([CLASSES.index(it.label) for it in every])
    weights = [1.0] * len(read) + [_PLAIN_WEIGHT] * len(plain)
    model: Any = linear_model.LogisticRegression(C=_C, max_iter=5_000).fit(inputs, labels, sample_weight=weights)
    weight: Any = model.coef_.T.round(5)
    bias: Any = model.intercept_.round(5)
    return weight, bias


def report(title: str, weights: tuple[NDArray[np.float64], NDArray[np.float64]], read: Sequence[Example]) -> None:
    """Print what is kept of statements from several probabilities on."""
    scores = np.array([it.inputs for it in read]) @ weights[0] + weights[1]
    shares: NDArray[np.float64] = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    good, context = shares[:, 0], shares[:, 1]
    follows = np.array([it.follows for it in read])
    labels: NDArray[np.str_] = np.array([it.label for it in read])
    is_joined: NDArray[np.bool_] = follows & (context >= JOINED_MIN * (good + context))
    is_right: NDArray[np.bool_] = (labels == "good") | (is_joined & (labels == "context"))
    probability: NDArray[np.float64] = np.where(is_joined, good + context, good)
    print(f"{title}: {len(read)} statements, {(labels == 'good').sum()} good, {(labels == 'context').sum()} need more")
    print(f"  joined: {is_joined.sum()}, {(labels[is_joined] == 'context').sum()} of them need it")
    for least in _THRESHOLDS:
        kept: NDArray[np.bool_] = probability >= least
        print(f"  from {least}: {kept.sum()} kept, {is_right[kept].mean():.1%} right, {(kept & is_right).sum()} right")


def main() -> None:
    """Fit, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights")
    arguments = parser.parse_args()
    embedder = SentenceEmbedder(READING_MODEL)
    embedder.start()
    if not embedder.wait_ready(120):
        raise SystemExit(f"The encoder does not load: {embedder.reason}")

    def embed(texts: Sequence[str]) -> Any:
        return embedder.embed_tokens([Stretch(text) for text in texts])

    arrays: dict[str, Any] = {}
    for name, reading in (("vectors", embed), ("words", None)):
        sources = ("own-plain", "own")
        plain = [it for source in sources for it in plain_examples(source, reading, held_out=False)]
        weight, bias = fitted([*examples(labels_of("train-*.txt"), reading)], plain)
        report(f"{name}, chats", (weight, bias), [*examples(labels_of("held-out.txt"), reading)])
        for source, title in zip(sources, ("plain sentences", "other languages"), strict=True):
            report(f"{name}, {title}", (weight, bias), [*plain_examples(source, reading, held_out=True)])
        arrays |= {name: weight, f"{name}_bias": bias}
    if arguments.write:
        path = Path(extraction.__path__[0]) / WEIGHTS
        np.savez_compressed(path, allow_pickle=False, **arrays)
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
