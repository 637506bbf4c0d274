"""Training of the comparison: fits the weights of `jobs/extraction/comparison.npz` to labelled changes.

    .venv/bin/python ops/train/changes [--write] [--folds N]
    .venv/bin/python ops/train/changes --encoder [--write]
    .venv/bin/python ops/train/changes --conversations [--write]

With `--encoder`, trains the encoder that reads a statement and a sentence as one text, after the network and the
statement reader, whose probabilities choose its examples. With `--conversations`, fits `change_odds.py`, after both.
Prints what cross-validation over the voices gives, and what the voices and lives that are held out give: of the
statements that a sentence replaces, ends or corrects, how many are found at a threshold, and how many others. Needs
PyTorch, which comes with sentence-transformers, and the embedding model of the product.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from conversations import train_odds
from encoder import train_encoder
from labels import FOLDER, LabelledSentence, read_conversations, read_scenarios
from lives import FOLDER as LIVES
from lives import labelled_lives
from model import Examples, Network, batches, examples_of, fitted, known_words, probabilities, vocabulary_of
from patterned import patterned
from variants import alone, coexisting, variants

from recollect.jobs import extraction as package
from recollect.jobs.extraction.change_features import KINDS
from recollect.jobs.extraction.comparison import embedded_text, reader_hint
from recollect.jobs.extraction.statements import read_sentences
from recollect.projections.embeddings.embedder import Embedder, open_embedder
from recollect.projections.embeddings.reading_encoder import Embed
from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.projection_settings import DEFAULT_MODEL, READING_MODEL

#: People of the patterned sentences.
_PEOPLE = 200
#: One sentence in so many of the conversations that state no change: most are alike.
_ONE_IN = 4
#: Times that the sentences of lives are fitted to: there are few, and they are what the product meets.
_REPEATED = 4
_EPOCHS, _FOLDS = 5, 4
_THRESHOLDS = (0.5, 0.7, 0.85, 0.9, 0.95, 0.98)
#: Texts that are embedded at once; the reader embeds no more sentences of one message.
_TEXTS = 40
HELD_OUT = FOLDER.parent / "held-out"
#: First letters of the voices of the third held-out file, which the reading encoder is trained on.
_READ_VOICES = "fgh"
GIVEN = Path(__file__).parents[4] / "shared" / "data"


class Inputs(NamedTuple):
    """What the network reads of texts."""

    vectors: dict[str, Any]
    #: As `reader_hint` returns them: by the words of a sentence, and with its vectors.
    hints: dict[str, Any]


class Outcome(NamedTuple):
    """A pair with its probability of a change."""

    sentence: LabelledSentence
    is_rule: bool
    is_changed: bool
    probability: float


def inputs_of(sentences: Sequence[LabelledSentence]) -> Inputs:
    """Return what the network reads of sentences and their statements."""
    return Inputs(vectors_of(sentences), dict(_hints(sorted({it.text for it in sentences}), embedding(READING_MODEL))))


def vectors_of(sentences: Sequence[LabelledSentence]) -> dict[str, Any]:
    """Return the vectors of sentences and their statements."""
    embedder = _ready(DEFAULT_MODEL)
    texts = sorted({text for it in sentences for text in (it.text, *map(embedded_text, it.statements))})
    return {
        text: vector for some in batches(texts, _TEXTS) for text, vector in zip(some, embedder.embed(some), strict=True)
    }


def embedding(model: str) -> Embed:
    """Return the embedding of texts and their tokens by a model."""
    embedder = _ready(model)
    return lambda texts: embedder.embed_tokens([Stretch(text) for text in texts])


def _ready(model: str) -> Embedder:
    """Return an embedder whose model is loaded."""
    embedder = open_embedder(model)
    embedder.start()
    if not embedder.wait_ready(120):
        raise SystemExit(f"The embedding model is not ready: {embedder.reason}")
    return embedder


def _hints(texts: Sequence[str], embed: Embed) -> Iterator[tuple[str, Any]]:
    """Yield what the statement reader thinks of each text, read as the product reads it."""
    for some in batches(texts, _TEXTS):
        by_words, with_vectors = (read_sentences(some, to_assistant=True, embed=it) for it in (None, embed))
        for text, *read in zip(some, by_words, with_vectors, strict=True):
            yield text, np.stack([reader_hint(parts) for parts in read])


def fit(sentences: Sequence[LabelledSentence], natural: set[int], inputs: Inputs) -> tuple[Network, list[str]]:
    """Return a network that is fitted to sentences, and its vocabulary."""
    vocabulary = vocabulary_of(sentences, known_words(sentences))
    examples = examples_of(sentences, *inputs, vocabulary)
    is_natural = np.array([id(sentence) in natural for sentence in sentences])
    return fitted(examples, len(vocabulary), is_natural, epochs=_EPOCHS, seed=1), vocabulary


def outcomes(
    network: Network, examples: Examples, sentences: Sequence[LabelledSentence], *, vectors: bool = True
) -> list[Outcome]:
    """Return the pairs of held-out sentences."""
    changed = probabilities(network, examples, vectors=vectors)[:, 2:].sum(1)
    return [
        Outcome(sentences[int(number)], bool(kind == KINDS.index("rule")), bool(relation > 1), float(probability))
        for number, kind, relation, probability in zip(
            examples.sentence, examples.kind, examples.relation, changed, strict=True
        )
    ]


def report(pairs: Sequence[Outcome], title: str) -> None:
    """Print how many changes are found at each threshold, and how many pairs are taken for one wrongly."""
    wanted = sum(pair.is_changed for pair in pairs)
    counts: list[str] = []
    for threshold in _THRESHOLDS:
        hits = [pair.is_changed for pair in pairs if pair.probability >= threshold]
        counts.append(f"{threshold}: {sum(hits)}, {len(hits) - sum(hits)}")
    print(f"{title}: {wanted} changes, {len(pairs) - wanted} others; right, wrong from {'; '.join(counts)}", flush=True)


def report_each(pairs: Sequence[Outcome], title: str) -> None:
    """Print the same for rules and for other statements."""
    report([pair for pair in pairs if pair.is_rule], f"{title}, rules")
    report([pair for pair in pairs if not pair.is_rule], f"{title}, others")


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
    parser.add_argument("--encoder", action="store_true", help="train the encoder instead of the network")
    parser.add_argument("--conversations", action="store_true", help="fit the change odds instead of the network")
    parser.add_argument("--given", type=Path, default=GIVEN, help="folder of the given conversations")
    parser.add_argument("--folds", type=int, default=_FOLDS, help=f"parts of {_FOLDS} that are held out; 0: no report")
    arguments = parser.parse_args()
    if arguments.conversations:
        train_odds(arguments.given, writes=arguments.write)
        return
    conversations = [*read_conversations(sorted(FOLDER.parents[1].glob("reader/labels/own-*.jsonl")))][::_ONE_IN]
    lives = {path.stem: [*labelled_lives(path)] for path in sorted(LIVES.glob("*.txt"))}
    voices = [it for it in read_scenarios(HELD_OUT) if it.voice[0] not in _READ_VOICES]
    held_out = {"lives": lives.pop("held-out"), "voices": voices, "alone": [*alone(voices, 1)]}
    held_out["coexisting"] = [*coexisting(voices, 1)]
    read = [it for of_file in lives.values() for it in of_file]
    if arguments.encoder:
        scenarios = [*read_scenarios()]
        everything = [scenarios, variants(scenarios, 1), coexisting(scenarios, 1), read, *held_out.values()]
        vectors, embed = vectors_of([it for sentences in everything for it in sentences]), embedding(READING_MODEL)
        train_encoder(scenarios, read, held_out, vectors, embed, writes=arguments.write)
        return
    train([*read_scenarios()], conversations, read, held_out, folds=arguments.folds, writes=arguments.write)


def train(
    scenarios: Sequence[LabelledSentence],
    conversations: Sequence[LabelledSentence],
    lives: Sequence[LabelledSentence],
    held_out: Mapping[str, Sequence[LabelledSentence]],
    *,
    folds: int,
    writes: bool,
) -> None:
    """Fit to labelled sentences, and print what is found in those that are held out."""
    natural = {id(sentence) for sentence in conversations}
    made = [*variants(scenarios, 1), *coexisting(scenarios, 1), *alone(scenarios, 1), *patterned(_PEOPLE, 1)]
    everything = [*scenarios, *made, *conversations, *[*lives] * _REPEATED]
    inputs = inputs_of([*everything, *(it for of_name in held_out.values() for it in of_name)])
    print(f"{len(scenarios)} labelled sentences, {len(lives)} of lives, {len(everything)} with variants and patterns")
    pairs: list[Outcome] = []
    for fold in range(folds):
        fitted_to = [it for it in everything if zlib.crc32(it.voice.encode()) % _FOLDS != fold]
        of_fold = [it for it in (*scenarios, *lives) if zlib.crc32(it.voice.encode()) % _FOLDS == fold]
        network, vocabulary = fit(fitted_to, natural, inputs)
        pairs += outcomes(network, examples_of(of_fold, *inputs, vocabulary), of_fold)
    if folds:
        report_each([pair for pair in pairs if not pair.sentence.voice.startswith("life ")], "folds of voices")
        report([pair for pair in pairs if pair.sentence.voice.startswith("life ")], "folds of lives")
    network, vocabulary = fit(everything, natural, inputs)
    for name, sentences in held_out.items():
        examples = examples_of(sentences, *inputs, vocabulary)
        for vectors, words in ((True, ""), (False, ", words alone")):
            report_each(outcomes(network, examples, sentences, vectors=vectors), f"held-out {name}{words}")
    if writes:
        write(network, vocabulary)


if __name__ == "__main__":
    main()
