"""Training of the comparison: fits the weights of `jobs/extraction/comparison.npz` to labelled changes.

    .venv/bin/python ops/train/changes [--write] [--folds N] [--conversations FILE ...]

Prints what cross-validation over the voices gives: of the statements that a sentence replaces, ends or corrects, how
many are found at a threshold; of the sentences that change nothing, how many would change a statement. Needs PyTorch,
which comes with sentence-transformers, and the embedding model of the product.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from labels import FOLDER, LabelledSentence, read_conversations, read_scenarios
from model import Examples, Network, examples_of, fitted, known_words, probabilities, vocabulary_of
from patterned import patterned
from variants import variants

from recollect.jobs import extraction as package
from recollect.projections.embeddings.embedder import open_embedder

_MODEL = "all-MiniLM-L6-v2"
#: People of the patterned sentences.
_PEOPLE = 900
_EPOCHS, _FOLDS = 12, 4
_THRESHOLDS = (0.5, 0.7, 0.8, 0.9, 0.95)
_TEXTS = 64


class Outcome(NamedTuple):
    """A pair with its probability of a change."""

    sentence: LabelledSentence
    number: int
    is_changed: bool
    probability: float
    #: Whether the sentence is of a conversation.
    is_natural: bool


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
    network: Network, examples: Examples, sentences: Sequence[LabelledSentence], natural: set[int], *, vectors: bool
) -> list[Outcome]:
    """Return the pairs of held-out sentences."""
    changed = probabilities(network, examples, vectors=vectors)[:, 2:].sum(1)
    return [
        Outcome(
            sentences[number],
            int(number),
            bool(relation > 1),
            float(probability),
            id(sentences[int(number)]) in natural,
        )
        for number, relation, probability in zip(examples.sentence, examples.relation, changed, strict=True)
    ]


def report(pairs: Sequence[Outcome], title: str) -> None:
    """Print what is found and what is changed wrongly at each threshold."""
    wanted = [pair for pair in pairs if pair.is_changed]
    for threshold in _THRESHOLDS:
        hits = [pair for pair in pairs if pair.probability >= threshold]
        wrong = {id(pair.sentence) for pair in hits if not pair.is_changed}
        groups: dict[str, Callable[[Outcome], bool]] = {
            "hard ones that change nothing": lambda pair: (
                not pair.is_natural and pair.sentence.change in ("none", "repeats")
            ),
            "another one beside the right one": lambda pair: pair.sentence.change not in ("none", "repeats"),
            "sentences of conversations": lambda pair: pair.is_natural,
        }
        parts = [f"{title} from {threshold}: found {sum(pair.is_changed for pair in hits)} of {len(wanted)}, wrong:"]
        for name, belongs in groups.items():
            group = {id(pair.sentence) for pair in pairs if belongs(pair)}
            parts.append(f"{len(wrong & group)} of {len(group)} {name}")
        print("; ".join(parts))


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
    default = sorted(FOLDER.parent.parent.glob("*/labels/own-*.jsonl"))
    parser.add_argument("--conversations", nargs="*", type=Path, default=default, help="labelled conversations")
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument("--folds", type=int, default=_FOLDS, help=f"parts of {_FOLDS} that are held out; 0: no report")
    arguments = parser.parse_args()
    scenarios, conversations = [*read_scenarios()], [*read_conversations(arguments.conversations)]
    natural = {id(sentence) for sentence in conversations}
    everything = [*scenarios, *variants(scenarios, 1), *patterned(_PEOPLE, 1), *conversations]
    vectors = embedded(everything)
    print(f"{len(scenarios)} labelled sentences, {len(everything)} with their variants, patterns and conversations")
    pairs: dict[bool, list[Outcome]] = {True: [], False: []}
    for fold in range(arguments.folds):
        fitted_to = [it for it in everything if zlib.crc32(it.voice.encode()) % _FOLDS != fold]
        held_out = [it for it in (*scenarios, *conversations) if zlib.crc32(it.voice.encode()) % _FOLDS == fold]
        network, vocabulary = fit(fitted_to, natural, vectors)
        examples = examples_of(held_out, vectors, vocabulary)
        for with_vectors in pairs:
            pairs[with_vectors] += outcomes(network, examples, held_out, natural, vectors=with_vectors)
    for with_vectors, of_mode in pairs.items() if arguments.folds else ():
        report(of_mode, "with vectors" if with_vectors else "words alone")
    if arguments.write:
        write(*fit(everything, natural, vectors))


if __name__ == "__main__":
    main()
