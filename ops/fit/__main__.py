"""Fit the weights of retrieval and its gate to a part of conversations with known answers, and report on the rest.

    python ops/fit FOLDER [--keep DIR] [--write] [--version NAME]

Prints the numbers of `weights.toml` and `gate.toml`; with --write, writes them there. Of the files of each set, in the
order of their names, every third is held out, the others are fitted to. Every set counts the same.

The gate measures the candidates that are best by the weights in use: after new weights were written, a second run fits
the gate to those. Ages count from the time of the run, so numbers differ a little from run to run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from gate_model import fit_gate
from order import fit_order
from report import report_gate, report_order
from samples import collect
from tables import Table, gate_tables, order_tables, rewritten

_RETRIEVAL = Path(__file__).parents[2] / "api" / "retrieval"
#: Each ranking, and the embedding model that it has.
_MODELS = {"hybrid": "all-MiniLM-L6-v2", "keyword": "none"}


def fit(folder: Path, data: Path) -> dict[str, list[Table]]:
    """Fit and report; return the tables of each file.

    Parameters:
        data: a folder for what is embedded.
    """
    files: dict[str, list[Table]] = {"weights.toml": [], "gate.toml": []}
    for ranking, model in _MODELS.items():
        samples = collect(folder, data / ranking, model)
        order = fit_order(samples, semantic=ranking == "hybrid")
        scored = [order.scores(one) for one in samples]
        weights = order_tables(ranking, order)
        _print(weights)
        report_order(samples, scored)
        gate = fit_gate(samples, scored)
        logistic = gate_tables(ranking, gate)
        _print(logistic)
        report_gate(samples, scored, gate)
        files["weights.toml"] += weights
        files["gate.toml"] += logistic
    return files


def _print(tables: Sequence[Table]) -> None:
    for table in tables:
        print(f"\n{table}")


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory(prefix="recollect-fit-") as folder:
        files = fit(options.folder, options.keep or Path(folder))
    if options.write:
        for name, tables in files.items():
            file = _RETRIEVAL / name
            file.write_text(rewritten(file.read_text(encoding="utf-8"), tables, options.version), encoding="utf-8")
            print(f"wrote {file}", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="conversations with questions: *.json")
    parser.add_argument("--keep", type=Path, help="a folder for the data, so that a second run need not embed again")
    parser.add_argument("--write", action="store_true", help="write weights.toml and gate.toml into api/retrieval")
    parser.add_argument("--version", default=date.today().isoformat(), help="the version to write (today, %(default)s)")
    options = parser.parse_args()
    if not any(options.folder.glob("*.json")):
        parser.error(f"there is no *.json in {options.folder}")
    return options


if __name__ == "__main__":
    main()
