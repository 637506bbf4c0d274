from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from recollect.api.retrieval.ranking.features import FEATURES, NUMERIC_FEATURES, SEMANTIC, standardised
from recollect.api.retrieval.ranking.relevance_gate import ITEM_MEASURES, MEASURES, load_gate
from recollect.api.retrieval.ranking.weighted_sum import feature_vector, load_weights
from recollect.projections.projection_settings import MULTILINGUAL_MODEL

RANKINGS = ("hybrid", "keyword", MULTILINGUAL_MODEL)


def content(name: str) -> dict[str, Any]:
    return tomllib.loads(files("recollect.api.retrieval.ranking").joinpath(name).read_text(encoding="utf-8"))


def test_there_are_weights_of_questions_and_messages_with_vectors_and_without() -> None:
    found = content("weights.toml")
    assert set(found) == {"version", *RANKINGS}
    assert all(set(found[ranking]) == {"spread", "question", "message"} for ranking in RANKINGS)


def test_every_numeric_feature_has_a_usual_spread() -> None:
    found = content("weights.toml")
    assert set(found["hybrid"]["spread"]) == set(NUMERIC_FEATURES)
    assert set(found["keyword"]["spread"]) == set(NUMERIC_FEATURES) - SEMANTIC


def test_the_spread_of_few_values_is_near_the_usual_one_and_that_of_many_near_their_own() -> None:
    [few] = standardised([np.array([0.1, 0.2], np.float32)], usual_spreads=[1.0])
    [many] = standardised([np.tile(np.array([0.1, 0.2], np.float32), 2_000)], usual_spreads=[1.0])
    assert float(few[1] - few[0]) < 0.11
    assert float(many[1] - many[0]) > 1.0


def test_a_value_that_is_missing_gets_the_mean() -> None:
    assert standardised([np.array([1.0, np.nan, 3.0], np.float32)], usual_spreads=[1.0])[0, 1] == 0


@pytest.mark.parametrize("query", ["question", "message"])
def test_weights_name_only_features_that_there_are(query: str) -> None:
    found = content("weights.toml")
    assert set(found["hybrid"][query]) <= set(FEATURES)
    assert set(found["keyword"][query]) <= set(FEATURES) - SEMANTIC


@pytest.mark.parametrize("ranking", RANKINGS)
def test_the_gate_names_every_measure_and_no_other(ranking: str) -> None:
    found = content("gate.toml")
    assert set(found) == {"version", *RANKINGS}
    assert set(found[ranking]) == {"question", "message", "item"}
    assert set(found[ranking]["question"]) == set(found[ranking]["message"]) == {*MEASURES, "constant"}
    assert set(found[ranking]["item"]) == {"answer", *ITEM_MEASURES, "constant"}


def test_weights_and_gate_are_of_one_version() -> None:
    assert content("weights.toml")["version"] == content("gate.toml")["version"]


@pytest.mark.parametrize("ranking", RANKINGS)
def test_both_files_are_read(ranking: str) -> None:
    assert load_weights(ranking).question.shape == load_weights(ranking).message.shape == (len(FEATURES),)
    assert load_gate(ranking).item.shape == (len(ITEM_MEASURES) + 2,)


def test_a_weight_of_an_unknown_feature_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown features: shoe_size"):
        feature_vector({"shoe_size": 1.0})
