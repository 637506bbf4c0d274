"""TOML tables: the fitted weights and models in the form of `weights.toml` and `gate.toml`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gate_fit import GateModels
from ranking_fit import RankingWeights

from recollect.api.retrieval.ranking.features import FEATURES
from recollect.api.retrieval.ranking.relevance_gate import ITEM_MEASURES, MEASURES
from recollect.api.retrieval.ranking.weighted_sum import load_weights


class Table(NamedTuple):
    """One TOML table: its name and its ``key = value`` lines."""

    name: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        """Return the text of the table, without a line break at its end."""
        return "\n".join([f"[{self.name}]", *self.lines])


def weight_tables(ranking: str, weights: RankingWeights) -> list[Table]:
    """Return the tables of `weights.toml`; a weight of 0 is left out, and the usual spreads stay as they are."""
    spreads = load_weights(ranking).spreads
    tables = [_table(f"{ranking}.spread", spreads.items(), 4)]
    for name, row in (("question", weights.question), ("message", weights.message)):
        by_feature: dict[str, float] = dict(zip(FEATURES, row.tolist(), strict=True))
        tables.append(_table(f"{ranking}.{name}", [(key, value) for key, value in by_feature.items() if value], 2))
    return tables


def gate_tables(ranking: str, models: GateModels) -> list[Table]:
    """Return the tables of `gate.toml`."""
    answer, item = (*MEASURES, "constant"), ("answer", *ITEM_MEASURES, "constant")
    return [
        _table(f"{ranking}.{name}", zip(names, logistic.row, strict=True), 3)
        for name, names, logistic in (
            ("question", answer, models.question),
            ("message", answer, models.message),
            ("item", item, models.item),
        )
    ]


def replace_tables(old: str, tables: Sequence[Table], version: str) -> str:
    """Return `old` with another version and other tables of the rankings in `tables`.

    Tables of other rankings stay, and so does the text before the first table.
    """
    head, count = re.subn(
        r"^version = .*$",
        # A string of JSON is one of TOML.
        lambda _: f"version = {json.dumps(version, ensure_ascii=False)}",
        old.partition("\n[")[0],
        flags=re.MULTILINE,
    )
    if count != 1:
        raise ValueError(f"expected one line `version = …` before the tables, found {count}")
    fitted = {table.name.partition(".")[0] for table in tables}
    kept = [f"[{text}".strip() for text in old.split("\n[")[1:] if text.partition(".")[0] not in fitted]
    return f"{head}\n" + "\n\n".join([*kept, *map(str, tables)]) + "\n"


def _table(name: str, values: Iterable[tuple[str, float]], digits: int) -> Table:
    return Table(name, tuple(f"{key} = {value:.{digits}f}" for key, value in values))
