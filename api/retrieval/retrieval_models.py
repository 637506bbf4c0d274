"""Retrieval models: loads the weights and patterns that retrievals use, before the first question."""

from __future__ import annotations

import gc
from datetime import UTC, datetime
from functools import cache

from recollect.api.retrieval.ranking import choice_model
from recollect.api.retrieval.ranking.relevance_gate import load_gate
from recollect.api.retrieval.ranking.weighted_sum import load_weights
from recollect.api.retrieval.search.semantic_search import HYBRID
from recollect.api.retrieval.understanding.profile_questions import asks_for_profile
from recollect.events.intake.secrets import probable_secrets
from recollect.events.late_pattern import compile_patterns
from recollect.jobs.extraction.statement_reader import reader_weights
from recollect.projections.projection_settings import DEFAULT_MODEL
from recollect.projections.text.date_patterns import prepare_patterns
from recollect.projections.text.question_times import question_times

#: A text whose words each model reads.
_TEXT = "Who gave me the code 471128 on 4 May?"


def load_models(embedding_model: str) -> None:
    """Load the weights of all models that read a query or choose, and compile the patterns: 0.2 s a process.

    Those that are trained with the default embedding model are loaded for that one only.
    """
    _load(with_choice=embedding_model == DEFAULT_MODEL)


@cache
def _load(*, with_choice: bool) -> None:
    if with_choice:
        choice_model.load_weights()
        reader_weights()
    load_weights(HYBRID)
    load_gate(HYBRID)
    # Each has weights or patterns of its own.
    asks_for_profile(_TEXT)
    tuple(probable_secrets(_TEXT))
    question_times(_TEXT, datetime.now(UTC))
    prepare_patterns()
    compile_patterns()
    # Else one of the first retrievals looks for the garbage of all that was loaded, 40 to 70 ms.
    gc.collect()
