"""Training of forgetting: fits the weights of `jobs/forgetting/forget_weights.npz` to labelled requests and scenes.

    .venv/bin/python ops/train/forgetting [--write] [--cache FILE]
    .venv/bin/python ops/train/forgetting --encoder [--write]
    .venv/bin/python ops/train/forgetting --reading [--write]

With `--reading`, fits only whether a sentence asks, and the meaning, and keeps the other weights. With `--encoder`,
trains the encoder that reads a request and an earlier sentence as one text; the rest comes after it.
Prints how many requests are read as such, and what they would forget, for topics and voices that are held out. Needs
PyTorch, which comes with sentence-transformers, and the embedding model of the product.
"""

from __future__ import annotations

import argparse
import pickle
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from encoder import pair_weights, train_encoder
from label_files import Scene, asked_sentences, composed, fold, frame_words, lines, reports, variants, voices
from meaning import examples, fitted_meaning, report_meaning
from network import Examples, Floats, Network, fitted, probabilities
from numpy.typing import NDArray

from recollect.jobs import forgetting as package
from recollect.jobs.extraction.change_features import stems_of, tokens
from recollect.jobs.forgetting.forget_model import (
    ASK_ROWS,
    MEANING,
    TOKENS_MAX,
    Encoders,
    ask_rows,
    encoders_of,
    model,
    word_rows,
)
from recollect.jobs.forgetting.forget_requests import forget_requests
from recollect.projections.embeddings.embedder import open_embedder
from recollect.projections.embeddings.stretches import Stretch

# These libraries have no types, or incomplete ones.
torch: Any = import_module("torch")
sparse: Any = import_module("scipy.sparse")
linear_model: Any = import_module("sklearn.linear_model")

GIVEN = Path(__file__).parents[4] / "shared" / "data"
_SCENES = 12_000
#: Times that the scenes of voices are seen in an epoch.
_VOICES_WEIGHT = 3
_DIMENSIONS, _WORD_DIMENSIONS = 96, 48
#: More epochs fit the topics: the loss on the held-out scenes is .240 after two and .255 after five.
_EPOCHS, _WORD_EPOCHS = 2, 3
#: Inverse strength of the penalty of the reading by words.
_PENALTY = 0.6
_THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
_BATCH = 64
_INT8_MAX = 127


def embedded(texts: Sequence[str], cache: Path | None) -> dict[str, Floats]:
    """Return the vector of each text and those of its tokens, one row each."""
    known: dict[str, Any] = pickle.loads(cache.read_bytes()) if cache is not None and cache.exists() else {}
    missing = sorted({*texts} - known.keys())
    embedder = open_embedder("all-MiniLM-L6-v2")
    embedder.start()
    if not embedder.wait_ready(120):
        raise SystemExit(f"The embedding model is not ready: {embedder.reason}")
    for start in range(0, len(missing), _BATCH):
        batch = missing[start : start + _BATCH]
        for text, it in zip(batch, embedder.embed_tokens([Stretch(text) for text in batch]), strict=True):
            known[text] = np.concatenate((it.vector[None], it.tokens))[:TOKENS_MAX].astype(np.float16)
    if cache is not None and missing:
        cache.write_bytes(pickle.dumps(known))
    return {text: known[text] for text in {*texts}}


def reading(
    sentences: Sequence[tuple[str, str, int]], is_trained: NDArray[Any], frame: frozenset[str]
) -> tuple[dict[str, NDArray[Any]], Floats]:
    """Return the weights of the reading of requests, and the probabilities of all sentences by words."""
    rows = [ask_rows(text, frame) for _, text, _ in sentences]
    ends = np.cumsum([0, *map(len, rows)])
    words = sparse.csr_matrix((np.ones(ends[-1], np.float32), np.concatenate(rows), ends), shape=(len(rows), ASK_ROWS))
    labels = np.array([label for *_, label in sentences])
    fit = linear_model.LogisticRegression(C=_PENALTY, max_iter=400).fit(words[is_trained], labels[is_trained])
    scales: Any = np.abs(fit.coef_.T).max(0) / _INT8_MAX
    arrays: dict[str, NDArray[Any]] = {
        "ask_words": np.asarray(np.round(fit.coef_.T / scales), np.int8),
        "ask_scales": np.stack([scales, fit.intercept_]).astype(np.float32),
    }
    return arrays, np.asarray(fit.predict_proba(words), np.float32)


def report_reading(sentences: Sequence[tuple[str, str, int]], found: Floats, held_out: NDArray[Any]) -> None:
    """Print how many requests are found and how many other sentences are taken for one."""
    kinds = np.array([voice.split()[0] for voice, *_ in sentences])
    labels = np.array([label for *_, label in sentences])
    asks = 1 - found[:, 0]
    for threshold in (0.3, 0.5, 0.7):
        parts = [f"reading by words from {threshold}:"]
        for kind in dict.fromkeys(kinds):
            chosen = held_out & (kinds == kind)
            wanted, others = chosen & (labels > 0), chosen & (labels == 0)
            parts.append(
                f"{kind} {int((asks[wanted] >= threshold).sum())}/{int(wanted.sum())}"
                f" false {int((asks[others] >= threshold).sum())}/{int(others.sum())};"
            )
        print(*parts)


def report_naming(scenes: Sequence[Scene], found: Sequence[Floats], title: str) -> None:
    """Print what would be forgotten from each threshold."""
    for threshold in _THRESHOLDS:
        counts: Counter[str] = Counter()
        for scene, of_scene in zip(scenes, found, strict=True):
            hit = frozenset(int(place) for place in np.flatnonzero(of_scene >= threshold))
            if not scene.named:
                counts["nothing named, forgotten" if hit else "nothing named, right"] += 1
            elif hit - scene.named:
                counts["wrong"] += 1
            else:
                counts["right" if hit == scene.named else "in part" if hit else "missed"] += 1
        print(f"{title} from {threshold}: {dict(sorted(counts.items()))}")


def naming(scenes: Sequence[Scene], rows: dict[str, Any], asking: frozenset[str], size: int, words: int) -> Network:
    """Return the network that is fitted to scenes, by vectors or, with a number of `words`, by a table of them."""
    table = None
    if words:
        table = torch.from_numpy(np.random.default_rng(1).normal(0, size**-0.5, (words, size)).astype(np.float32))
    examples = Examples(scenes, rows, asking)
    # A table of words begins with nothing, projections of vectors with what the vectors know.
    rate, pull = (5e-3, 0.0) if words else (1.5e-3, 0.002)
    return fitted(examples, size, table=table, epochs=_WORD_EPOCHS if words else _EPOCHS, rate=rate, pull=pull)


def network_arrays(network: Network, name: str) -> dict[str, NDArray[Any]]:
    """Return the weights of a network under the names of `forget_model`."""
    arrays = {key: value.detach().numpy().astype(np.float16) for key, value in network.state_dict().items()}
    return {
        f"{name}.{key.replace('_projection', '.projection').replace('_gate', '.gate')}": value
        for key, value in arrays.items()
    }


def main() -> None:
    """Train, print the figures of what is held out, and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--write", action="store_true", help="train on all but the held-out voices, and write the weights"
    )
    parser.add_argument("--cache", type=Path, help="a file for the vectors of texts")
    parser.add_argument("--given", type=Path, default=GIVEN, help="folder of the given conversations")
    parser.add_argument("--encoder", action="store_true", help="train the encoder instead of the rest")
    parser.add_argument("--reading", action="store_true", help="fit only the reading of requests by words")
    arguments = parser.parse_args()
    if arguments.encoder:
        train_encoder(arguments.given, writes=arguments.write)
        return
    sentences, frame = [*asked_sentences(arguments.given)], frame_words()
    held_out_voices = {f"voice {it.voice}" for it in voices(held_out=True)}
    is_other = np.array([voice in held_out_voices for voice, *_ in sentences])
    is_fold = np.array([fold(voice) == 0 for voice, *_ in sentences])
    arrays, found = reading(sentences, ~is_other & (arguments.write | ~is_fold), frame)
    report_reading(sentences, found, is_other if arguments.write else is_fold | is_other)
    if arguments.reading:
        if arguments.write:
            write_reading(arrays, frame)
        report_short_sentences()
        return
    torch.set_num_threads(1)
    ways = lines("requests.txt")
    asking = frozenset(stem for way in ways for stem in stems_of(way[3:].replace("{X}", " ")))
    scenes = [*composed(variants(ways), _SCENES, 1)]
    own, others = [*voices(held_out=False)], [*voices(held_out=True)]
    texts = {text for it in (*scenes, *own, *others) for text in (it.request, *it.said)}
    vectors = embedded([*texts], arguments.cache)

    sample = np.concatenate([it for _, it in sorted(vectors.items())[::4]]).astype(np.float32)
    basis = np.linalg.eigh(sample.T @ sample)[1][:, : -_DIMENSIONS - 1 : -1].astype(np.float32)
    counts = Counter(word for text in sorted(texts) for word in {"#" if it[0].isdigit() else it for it in tokens(text)})
    vocabulary = sorted(word for word, count in counts.items() if count > 2)
    places = {word: place + 1 for place, word in enumerate(vocabulary)}
    trained = [it for it in scenes if arguments.write or fold(it.voice)] + _VOICES_WEIGHT * [
        it for it in own if arguments.write or fold(it.voice)
    ]
    tests = {"held-out voices": others}
    if not arguments.write:
        tests |= {
            "topics": [it for it in scenes if not fold(it.voice)],
            "voices": [it for it in own if not fold(it.voice)],
        }
    for name, size, words in (("vectors", _DIMENSIONS, 0), ("words", _WORD_DIMENSIONS, len(vocabulary) + 1)):
        rows: dict[str, Any] = {
            text: np.array(word_rows(text, places)) if words else vectors[text].astype(np.float32) @ basis
            for it in (*scenes, *own, *others)
            for text in (it.request, *it.said)
        }
        network = naming(trained, rows, asking, size, words)
        for title, of_test in tests.items():
            report_naming(of_test, probabilities(network, Examples(of_test, rows, asking)), f"{name}: {title}")
        arrays |= network_arrays(network, name)
    if arguments.write:
        arrays |= {
            "basis": basis.astype(np.float16),
            "asking": np.frombuffer("\n".join(sorted(asking)).encode(), np.uint8),
            "frame": np.frombuffer("\n".join(sorted(frame)).encode(), np.uint8),
            "vocabulary": np.frombuffer("\n".join(vocabulary).encode(), np.uint8),
        }
        write(arrays)


def write_reading(arrays: dict[str, NDArray[Any]], frame: frozenset[str]) -> None:
    """Write the weights of the reading, and those of the meaning, which reads its odds; the others stay as they are."""
    path = Path(package.__path__[0]) / "forget_weights.npz"
    with np.load(path) as stored:
        others = {name: array for name, array in stored.items() if name != "means"}
    write_meaning(path, {**others, **arrays, "frame": np.frombuffer("\n".join(sorted(frame)).encode(), np.uint8)})


def report_short_sentences() -> None:
    """Print how the weights of the package, with the statement reader, read the held-out reports and short requests."""
    read_pairs = encoders().read_pairs
    for label, title in ((False, "reports taken for a request"), (True, "short requests found")):
        texts = [text for text, kind in reports("reports-heldout") if bool(kind) == label]
        print(f"{title}: {sum(bool(forget_requests(text, 'Ann', read_pairs)) for text in texts)} of {len(texts)}")


def encoders() -> Encoders:
    """Return what reads requests and messages."""
    embedder = open_embedder("all-MiniLM-L6-v2")
    embedder.start()
    found = encoders_of(embedder, 120)
    if found is None:
        raise SystemExit(f"The encoder of requests is not ready: {embedder.reason}")
    return found


def write(arrays: dict[str, NDArray[Any]]) -> None:
    """Write the weights, and those of the meaning, which is fitted to what the networks find."""
    path = Path(package.__path__[0]) / "forget_weights.npz"
    write_meaning(path, arrays | pair_weights(path))


def write_meaning(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write weights with those of the meaning."""
    np.savez_compressed(path, allow_pickle=False, **arrays, means=np.zeros(MEANING + 1, np.float32))
    model.cache_clear()
    read = encoders()
    found = examples(held_out=False, encoders=read)
    means = fitted_meaning(found)
    report_meaning(found, means, "fitted")
    report_meaning(examples(held_out=True, encoders=read), means, "held out")
    np.savez_compressed(path, allow_pickle=False, **arrays, means=means)
    model.cache_clear()
    print(f"{path}: {path.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
