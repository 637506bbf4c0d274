"""Encoder of forgetting: trains the reading of a request and an earlier sentence as one text."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from label_files import Asked, Scene, asked_pairs, composed, lines, refused_scenes, variants, voices
from numpy.typing import NDArray

from recollect.jobs import forgetting
from recollect.projections import embeddings

sys.path.append(str(Path(__file__).parents[1]))
from pair_encoder import Pair, PairEncoder

#: Places of the layers of the encoder.
_NAMES, _ASKS = 0, 1

#: Composed scenes; those of voices are seen so many times in an epoch.
_SCENES, _VOICES_WEIGHT = 2_500, 1
#: Sentences of a scene that the request does not name: at least so many, and so many for each that it names.
_OTHERS_MIN, _OTHERS_EACH = 4, 2
_ODDS = (0.0, 1.0, 2.0)


def train_encoder(given: Path, *, writes: bool) -> None:
    """Train on the scenes, print the figures of those held out, and write the weights into the package.

    Parameters:
        given: the folder of the given conversations.
    """
    own = [*voices(held_out=False), *refused_scenes(held_out=False)]
    scenes = [*composed(variants(lines("requests.txt")), _SCENES, 1), *own * _VOICES_WEIGHT]
    chance = random.Random(1)
    encoder = PairEncoder(2, 2)
    encoder.fit([*(pair for scene in scenes for pair in _pairs(scene, chance)), *map(_asks, asked_pairs(given))])
    _report([*voices(held_out=True)], encoder)
    if writes:
        np.savez_compressed(Path(embeddings.__path__[0]) / "forgetting_adapter.npz", **encoder.adapter())
        path = Path(forgetting.__path__[0]) / "forget_weights.npz"
        with np.load(path) as file:
            arrays: dict[str, Any] = dict(file)
        arrays |= {f"pair.{name}": array for name, array in encoder.weights(_NAMES).items()}
        arrays |= {f"asks.{name}": array for name, array in encoder.weights(_ASKS).items()}
        np.savez_compressed(path, allow_pickle=False, **arrays)


def pair_weights(path: Path) -> dict[str, NDArray[Any]]:
    """Return the weights of the layers of the encoder in the file of the package."""
    with np.load(path) as file:
        return {name: array for name, array in file.items() if name.startswith(("pair.", "asks."))}


def _pairs(scene: Scene, chance: random.Random) -> Iterator[Pair]:
    """Yield the sentences that a request names, and some of the others."""
    others = [place for place in range(len(scene.said)) if place not in scene.named]
    chance.shuffle(others)
    count = max(_OTHERS_MIN, _OTHERS_EACH * len(scene.named))
    for place in (*sorted(scene.named), *others[:count]):
        yield Pair(scene.said[place], scene.request, int(place in scene.named))


def _asks(asked: Asked) -> Pair:
    return Pair(asked.before, asked.sentence, int(asked.asks), _ASKS)


def _report(scenes: Sequence[Scene], encoder: PairEncoder) -> None:
    """Print how often the likeliest sentence is a named one, and what is found from each log odds on."""
    named = [it for it in scenes if it.named]
    probabilities = encoder.probabilities([Pair(text, it.request) for it in named for text in it.said])
    odds = np.log(probabilities[:, 1] / probabilities[:, 0])
    parts = np.split(odds, np.cumsum([len(it.said) for it in named])[:-1])
    first = sum(int(part.argmax()) in it.named for it, part in zip(named, parts, strict=True))
    print(f"held out: the likeliest sentence is a named one for {first} of {len(named)} requests")
    for least in _ODDS:
        found = [
            place in it.named
            for it, part in zip(named, parts, strict=True)
            for place in np.flatnonzero(part >= least).tolist()
        ]
        wanted = sum(len(it.named) for it in named)
        print(f"  from log odds of {least}: {sum(found)} of {wanted} named, {len(found) - sum(found)} others")
