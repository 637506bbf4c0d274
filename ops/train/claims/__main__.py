"""Training of the claim reader: what a language model says of a line is right, or it is not.

    .venv/bin/python ops/train/claims [--write]

Trains on the claims of five chats in six, and prints, of the sixth, of the chats of other writers and of the answers
in `ops/llm`, how many right claims and how many wrong ones are kept, by the model alone and with all checks. Needs
PyTorch, which comes with sentence-transformers.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from encoder import ClaimEncoder
from labels import ANSWERS, HELD_OUT, HELD_OUT_CHATS, LABELS, Claim, read_answers, read_claims

from recollect.jobs import llm_reading
from recollect.jobs.llm_reading.llm_checks import refusal
from recollect.projections import embeddings

#: One chat in so many is not trained on; the threshold of `llm_checks.py` is chosen by these.
_HELD_OUT_IN = 6
_THRESHOLDS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7)


def main() -> None:
    """Train, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the weights")
    arguments = parser.parse_args()
    claims = [claim for folder in LABELS for claim in read_claims(folder)]
    is_held_out = [zlib.crc32(claim.chat.encode()) % _HELD_OUT_IN == 0 for claim in claims]
    fitted_to = [claim for claim, held_out in zip(claims, is_held_out, strict=True) if not held_out]
    print(f"{len(fitted_to)} claims, {sum(claim.is_right for claim in fitted_to)} of them right", flush=True)
    encoder = ClaimEncoder()
    encoder.fit(fitted_to)
    _report(
        "held-out chats of those writers",
        encoder,
        [it for it, held_out in zip(claims, is_held_out, strict=True) if held_out],
    )
    for folder in HELD_OUT:
        _report(f"chats of other writers, {folder.name}", encoder, [*read_claims(folder, HELD_OUT_CHATS)])
    answers = [claim for file in sorted(ANSWERS.glob("*_answers.txt")) for claim in read_answers(file)]
    _report("answers of `ops/llm`", encoder, answers)
    if arguments.write:
        np.savez_compressed(Path(embeddings.__path__[0]) / "claims_adapter.npz", **encoder.adapter())
        np.savez_compressed(Path(llm_reading.__path__[0]) / "claim_weights.npz", **encoder.weights())


def _report(title: str, encoder: ClaimEncoder, claims: Sequence[Claim]) -> None:
    """Print how many right and wrong claims are kept from each threshold."""
    read = encoder.probabilities(claims)
    is_right = np.array([claim.is_right for claim in claims])
    passes = np.array([refusal(it.statement, it.conversation, None) is None for it in claims])
    for words, kept in (("alone", np.ones(len(claims), np.bool_)), ("with the other checks", passes)):
        counts = [f"{it}: {(kept & is_right & (read >= it)).sum()}, {(kept & ~is_right & (read >= it)).sum()}"
                  for it in _THRESHOLDS]  # fmt: skip
        print(
            f"{title}, {words}: {is_right.sum()} right, {(~is_right).sum()} wrong; kept by the other checks "
            f"{(kept & is_right).sum()}, {(kept & ~is_right).sum()}; right and wrong kept from {'; '.join(counts)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
