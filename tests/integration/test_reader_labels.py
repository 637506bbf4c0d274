"""The statement reader against the sentences of held-out voices: `ops/train/reader/labels`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.jobs.extraction.clauses import Clause
from recollect.jobs.extraction.statement_reader import read_clauses
from recollect.jobs.extraction.statements import KEEP_MIN, Embed

_FOLDER = Path(__file__).parents[2] / "ops" / "train" / "reader"
_BATCH = 64
#: Average precision of `keep` with vectors: .75 on own labels and .70 on given ones (2026-11-23).
_AVERAGE_PRECISION_MIN = 0.65
#: Recall of the clauses worth keeping, where 70 % of those that are kept are right: .64 and .57.
_RECALL_MIN = 0.5
_PRECISION = 0.7
#: A short run reads every sixth of the own held-out sentences, of which there are thousands.
_STEP = 6


@pytest.fixture(scope="module")
def labels() -> Any:
    """The module that reads the labels, which the training has."""
    sys.path.insert(0, str(_FOLDER))
    try:
        # The training of dates has a module of the same name.
        sys.modules.pop("label_files", None)
        return import_module("label_files")
    finally:
        sys.path.remove(str(_FOLDER))
        sys.modules.pop("label_files", None)


def _scores(labels: Any, embed: Embed, origin: str, step: int) -> list[tuple[float, bool]]:
    """Return of each `step`th held-out sentence how probably its clauses are worth keeping, and whether they are."""
    held_out = [it for it in labels.labelled_sentences(origin) if it.is_held_out][::step]
    texts = [it.text for it in held_out]
    embeddings = [vectors for start in range(0, len(texts), _BATCH) for vectors in embed(texts[start : start + _BATCH])]
    scored: list[tuple[float, bool]] = []
    for sentence, vectors in zip(held_out, embeddings, strict=True):
        for part in read_clauses(sentence.text, to_assistant=sentence.to_assistant, embedding=vectors):
            label = _label(part.clause, sentence.parts)
            if label is not None:
                scored.append((part.keep, label == "yes"))
    return scored


@pytest.mark.parametrize(
    ("origin", "step"), [("own", _STEP), ("given", 1), pytest.param("own", 1, marks=pytest.mark.long)]
)
def test_the_reader_tells_what_is_worth_keeping_of_voices_that_it_was_not_trained_on(
    origin: str, step: int, labels: Any, embed: Embed
) -> None:
    if origin == "given" and not labels.DATA.is_dir():
        pytest.skip(f"no conversations in {labels.DATA}; set RECOLLECT_TEST_DATA")
    scores = _scores(labels, embed, origin, step)
    is_right = np.array([is_kept for _, is_kept in sorted(scores, reverse=True)])
    found = is_right.cumsum()
    precision = found / np.arange(1, len(is_right) + 1)
    recall = found / found[-1]
    average_precision = float(precision[is_right].mean())
    recall_at = float(recall[precision >= _PRECISION].max())
    kept = sum(keep >= KEEP_MIN for keep, _ in scores)
    print(f"{origin}: {len(is_right)} clauses, {found[-1]} worth keeping; average precision {average_precision:.3f}, ")
    print(f"recall {recall_at:.2f} at {_PRECISION}; kept {kept}, precision {precision[kept - 1]:.2f}, ", end="")
    print(f"recall {recall[kept - 1]:.2f}")
    assert average_precision >= _AVERAGE_PRECISION_MIN
    assert recall_at >= _RECALL_MIN


def _label(clause: Clause, parts: Sequence[Any]) -> str | None:
    """Return the label of the part that shares most characters with a clause."""
    shared = [min(clause.end, part.end) - max(clause.start, part.start) for part in parts]
    best = int(np.argmax(shared))
    return parts[best].labels["keep"] if shared[best] > 0 else None
