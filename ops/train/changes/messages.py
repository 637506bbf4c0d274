"""Training of corrected messages: the encoder that reads a message with the last ones of its speaker.

    OMP_NUM_THREADS=2 .venv/bin/python ops/train/changes/messages.py [--write] [--given FOLDER]

Trains it on the marked chats and the given conversations (12 minutes), and prints what it finds in those that are held
out. Needs PyTorch, which comes with sentence-transformers, and the embedding model of the product.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from conversations import GIVEN, GIVEN_HELD_OUT
from labelled_pairs import Floats
from message_pairs import MessagePair, given_pairs, marked_pairs, report_messages

from recollect.jobs import extraction
from recollect.jobs.extraction.comparison import RELATIONS
from recollect.projections import embeddings

sys.path.append(str(Path(__file__).parents[1]))
pair_encoder: Any = import_module("pair_encoder")
#: Times that a message which changes another one is seen in an epoch, and unrelated pairs of messages for each of them.
_TIMES, _OTHERS = 2, 12


def examples(pairs: Sequence[MessagePair]) -> list[Any]:
    """Return the pairs of which one message changes the other, and a draw of the others."""
    changes = [it for it in pairs if it.relation != "none"]
    others = [it for it in pairs if it.relation == "none"]
    drawn = random.Random(1).sample(others, min(len(others), _OTHERS * len(changes)))
    read = [*changes * _TIMES, *drawn]
    return [pair_encoder.Pair(it.earlier, it.later, RELATIONS.index(it.relation)) for it in read]


def main() -> None:
    """Train, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights")
    parser.add_argument("--given", type=Path, default=GIVEN, help="folder of the given conversations")
    arguments = parser.parse_args()
    given = given_pairs(arguments.given)
    trained_on = [*marked_pairs("chats"), *marked_pairs("slips")]
    trained_on += [it for it in given if it.source not in GIVEN_HELD_OUT]
    encoder = pair_encoder.PairEncoder(len(RELATIONS))
    encoder.fit(examples(trained_on))

    def read(texts: Sequence[tuple[str, str]]) -> Floats:
        return encoder.probabilities([pair_encoder.Pair(*text) for text in texts])

    for name in ("held-out-chats", "held-out-slips"):
        report_messages(name, marked_pairs(name), read)
    report_messages("held-out given conversations", [it for it in given if it.source in GIVEN_HELD_OUT], read)
    if arguments.write:
        np.savez_compressed(Path(embeddings.__path__[0]) / "messages_adapter.npz", **encoder.adapter())
        np.savez_compressed(Path(extraction.__path__[0]) / "message_weights.npz", **encoder.weights())


if __name__ == "__main__":
    main()
