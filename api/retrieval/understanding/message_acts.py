"""Message acts: what a query does as a message: states, asks, instructs, thanks; an input of the choice model.

Which words ask memory for something, and which only keep a conversation going, is learned by the statement reader.
"""

from __future__ import annotations

import numpy as np

from recollect.jobs.extraction.statement_reader import HEADS, ReadClause, read_each
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.text.sentences import split_sentences

#: Characters and sentences of a query that are read.
_CHARS_MAX, _SENTENCES_MAX = 400, 4
_OF_CLAUSE = (*HEADS["act"], "keep", "nothing_in_particular")
#: The greatest and the mean value of all clauses.
MESSAGE_ACTS = tuple(f"{part}_{name}" for part in ("greatest", "mean") for name in _OF_CLAUSE)


def message_acts(text: str) -> Vector:
    """Return what the clauses of a query do, by their words alone, shape (`MESSAGE_ACTS`,)."""
    start = text[:_CHARS_MAX]
    read = read_each(split_sentences(start)[:_SENTENCES_MAX] or [start], to_assistant=True)
    clauses = [_of_clause(part) for parts in read for part in parts]
    if not clauses:
        return np.zeros(len(MESSAGE_ACTS), np.float32)
    values = np.array(clauses, np.float32)
    return np.concatenate([values.max(axis=0), values.mean(axis=0)])


def _of_clause(part: ReadClause) -> list[float]:
    acts = part.probabilities["act"]
    return [*(acts[act] for act in HEADS["act"]), part.keep, part.probabilities["kind"]["other"]]
