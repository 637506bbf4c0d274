"""The tables of `weights.toml` and `gate.toml`: as they are printed, and as they are written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gate_model import GateModel
from order import Order

from recollect.api.retrieval.ranking.features import FEATURES
from recollect.api.retrieval.ranking.relevance_gate import ITEM_MEASURES, MEASURES


class Table(NamedTuple):
    """One table of TOML."""

    name: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        """Return the table as it stands in the file, without a line break at its end."""
        return "\n".join([f"[{self.name}]", *self.lines])


def order_tables(ranking: str, order: Order) -> list[Table]:
    """Return the tables of `weights.toml`; a weight of 0 is left out."""
    tables: list[Table] = []
    for name, row in (("question", order.question), ("message", order.message)):
        weights: dict[str, float] = dict(zip(FEATURES, row.tolist(), strict=True))
        tables.append(_table(f"{ranking}.{name}", [(key, value) for key, value in weights.items() if value], 2))
    return tables


def gate_tables(ranking: str, model: GateModel) -> list[Table]:
    """Return the tables of `gate.toml`."""
    answer, item = (*MEASURES, "constant"), ("answer", *ITEM_MEASURES, "constant")
    return [
        _table(f"{ranking}.{name}", zip(names, logistic.row, strict=True), 3)
        for name, names, logistic in (
            ("question", answer, model.question),
            ("message", answer, model.message),
            ("item", item, model.item),
        )
    ]


def rewritten(old: str, tables: Sequence[Table], version: str) -> str:
    """Return the content of a file with other tables and another version; what stands before the tables stays."""
    head, count = re.subn(
        r"^version = .*$",
        # A string of JSON is one of TOML.
        lambda _: f"version = {json.dumps(version, ensure_ascii=False)}",
        old.partition("\n[")[0],
        flags=re.MULTILINE,
    )
    assert count == 1, "a line `version = …` has to stand before the tables"
    return f"{head}\n" + "\n\n".join(map(str, tables)) + "\n"


def _table(name: str, values: Iterable[tuple[str, float]], digits: int) -> Table:
    return Table(name, tuple(f"{key} = {value:.{digits}f}" for key, value in values))
