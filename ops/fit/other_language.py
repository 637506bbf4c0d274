"""Other language: samples as they would be if the question had no word in common with the memory.

The collections are in English, and a model of many languages also has to rank what it finds by vectors alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from training_samples import Sample

from recollect.api.retrieval.ranking.features import FEATURES
from recollect.api.retrieval.ranking.relevance_gate import ITEM_MEASURES, MEASURES

#: Every second sample is repeated without its words.
_EVERY = 2
#: What a question has that shares no word with any candidate, and whose kind its words do not show.
_WORDLESS_FEATURES = (
    "bm25_turn",
    "bm25_window",
    "bm25_session",
    "time_when",
    "number_count",
    "number_figure",
    "place_where",
    "reason_why",
    "name_asked",
    "tells_name",
    "liking_preference",
    "graph",
)
_WORDLESS_MEASURES = ("coverage", "coverage_together", "known", "graph", "named_entity")


def in_other_language(samples: Sequence[Sample]) -> list[Sample]:
    """Return copies of every second sample, without the measures of shared words."""
    return [_wordless(sample) for sample in samples[::_EVERY]]


def _wordless(sample: Sample) -> Sample:
    features = sample.features.copy()
    features[:, [FEATURES.index(name) for name in _WORDLESS_FEATURES]] = 0
    measures = sample.measures.copy()
    measures[[MEASURES.index(name) for name in _WORDLESS_MEASURES]] = 0
    measures[MEASURES.index("impersonal_unknown")] = 1 - measures[MEASURES.index("personal")]
    item_measures = sample.item_measures.copy()
    item_measures[:, [ITEM_MEASURES.index(name) for name in ("coverage", "graph")]] = 0
    return replace(sample, features=features, measures=measures, item_measures=item_measures)
