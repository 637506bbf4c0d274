"""Training of the comparison: fits the weights of `jobs/extraction/comparison.npz` to labelled changes.

    .venv/bin/python ops/train/changes [--write] [--folds N]

Prints what cross-validation over the voices gives, and the lives that are held out: of the statements that a sentence
replaces, ends or corrects, how many are found at a threshold, and how many others. Needs PyTorch, which comes with
sentence-transformers, and the embedding model of the product.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from labels import FOLDER, LabelledSentence, read_conversations, read_scenarios
from lives import FOLDER as LIVES
from lives import labelled_lives
from model import Examples, Network, examples_of, fitted, known_words, probabilities, vocabulary_of
from patterned import patterned
from variants import variants

from recollect.jobs import extraction as package
from recollect.projections.embeddings.embedder import open_embedder

_MODEL = "all-MiniLM-L6-v2"
#: People of the patterned sentences.
_PEOPLE = 60
#: One sentence in so many of the conversations that state no change: most are alike.
_ONE_IN = 4
#: Times that the sentences of lives are fitted to: there are few, and they are what the product meets.
_REPEATED = 4
_EPOCHS, _FOLDS = 5, 4
_THRESHOLDS = (0.3, 0.5, 0.7, 0.85, 0.9, 0.95)
_TEXTS = 64


class Outcome(NamedTuple):
    """A pair with its probability of a change."""

    sentence: LabelledSentence
    is_changed: bool
    probability: float


def embedded(sentences: Sequence[LabelledSentence]) -> dict[str, Any]:
    """Return the vectors of the texts of sentences."""
    texts = sorted({text for it in sentences for text in (it.text, *(prior.text for prior in it.statements))})
    embedder = open_embedder(_MODEL)
    embedder.start()
    if not embedder.wait_ready(120):
        raise SystemExit(f"The embedding model is not ready: {embedder.reason}")
    rows = [row for at in range(0, len(texts), _TEXTS) for row in embedder.embed(texts[at : at + _TEXTS])]
    return dict(zip(texts, rows, strict=True))


def fit(sentences: Sequence[LabelledSentence], natural: set[int], vectors: dict[str, Any]) -> tuple[Network, list[str]]:
    """Return a network that is fitted to sentences, and its vocabulary."""
    vocabulary = vocabulary_of(sentences, known_words(sentences))
    examples = examples_of(sentences, vectors, vocabulary)
    is_natural = np.array([id(sentences[int(number)]) in natural for number in examples.sentence])
    return fitted(examples, len(vocabulary), is_natural, epochs=_EPOCHS, seed=1), vocabulary


def outcomes(
    network: Network, examples: Examples, sentences: Sequence[LabelledSentence], *, vectors: bool = True
) -> list[Outcome]:
    """Return the pairs of held-out sentences."""
    changed = probabilities(network, examples, vectors=vectors)[:, 2:].sum(1)
    return [
        Outcome(sentences[int(number)], bool(relation > 1), float(probability))
        for number, relation, probability in zip(examples.sentence, examples.relation, changed, strict=True)
    ]


def report(pairs: Sequence[Outcome], title: str) -> None:
    """Print how many changes are found at each threshold, and how many pairs are taken for one wrongly."""
    wanted = sum(pair.is_changed for pair in pairs)
    for threshold in _THRESHOLDS:
        hits = [pair.is_changed for pair in pairs if pair.probability >= threshold]
        found, wrong = sum(hits), len(hits) - sum(hits)
        print(f"{title} from {threshold}: found {found} of {wanted}, wrong {wrong} of {len(pairs) - wanted} pairs")


def write(network: Network, vocabulary: Sequence[str]) -> None:
    """Write the weights into the package, with half precision."""
    arrays = {name: array.numpy().astype(np.float16) for name, array in network.state_dict().items()}
    text = np.frombuffer("\n".join(vocabulary).encode(), np.uint8)
    path = Path(package.__path__[0]) / "comparison.npz"
    np.savez_compressed(path, vocabulary=text, **arrays)
    print(f"{path}: {path.stat().st_size >> 10} KiB, {len(vocabulary)} cues")


def main() -> None:
    """Fit, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument("--folds", type=int, default=_FOLDS, help=f"parts of {_FOLDS} that are held out; 0: no report")
    arguments = parser.parse_args()
    conversations = [*read_conversations(sorted(FOLDER.parents[1].glob("reader/labels/own-*.jsonl")))][::_ONE_IN]
    lives = {path.stem: [*labelled_lives(path)] for path in sorted(LIVES.glob("*.txt"))}
    train(
        [*read_scenarios()],
        conversations,
        [it for name in lives if name != "held-out" for it in lives[name]],
        lives["held-out"],
        folds=arguments.folds,
        writes=arguments.write,
    )


def train(
    scenarios: Sequence[LabelledSentence],
    conversations: Sequence[LabelledSentence],
    lives: Sequence[LabelledSentence],
    held_out: Sequence[LabelledSentence],
    *,
    folds: int,
    writes: bool,
) -> None:
    """Fit to labelled sentences, and print what is found in those that are held out."""
    natural = {id(sentence) for sentence in conversations}
    everything = [*scenarios, *variants(scenarios, 1), *patterned(_PEOPLE, 1), *conversations, *[*lives] * _REPEATED]
    vectors = embedded([*everything, *held_out])
    print(f"{len(scenarios)} labelled sentences, {len(lives)} of lives, {len(everything)} with variants and patterns")
    pairs: list[Outcome] = []
    for fold in range(folds):
        fitted_to = [it for it in everything if zlib.crc32(it.voice.encode()) % _FOLDS != fold]
        of_fold = [it for it in (*scenarios, *lives) if zlib.crc32(it.voice.encode()) % _FOLDS == fold]
        network, vocabulary = fit(fitted_to, natural, vectors)
        pairs += outcomes(network, examples_of(of_fold, vectors, vocabulary), of_fold)
    if folds:
        report([pair for pair in pairs if not pair.sentence.voice.startswith("life ")], "scenarios")
        report([pair for pair in pairs if pair.sentence.voice.startswith("life ")], "lives")
    network, vocabulary = fit(everything, natural, vectors)
    for with_vectors in (True, False):
        examples = examples_of(held_out, vectors, vocabulary)
        title = "held-out lives" if with_vectors else "held-out lives, words alone"
        report(outcomes(network, examples, held_out, vectors=with_vectors), title)
    if writes:
        write(network, vocabulary)


if __name__ == "__main__":
    main()
