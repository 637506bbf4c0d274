"""Ranking fit: fits the weights and the gate of retrieval to conversations with known answers, and reports on the rest.

    python ops/fit FOLDER [--cases FILE] [--rankings NAMES] [--keep DIR] [--write] [--version NAME]

Prints the numbers of `weights.toml` and `gate.toml`, and recall with the weights in use beside the fitted ones; with
--write, writes them there. Of the files of each set, in the order of their names, and of the cases, every third is held
out, the others are fitted to. Crops of the conversations and the cases are the short memories.

The gate measures the candidates that are best by the weights in use, so run it again after --write to fit the gate to
the new weights. Ages count from the time of the run, so numbers differ a little from run to run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from fit_report import report_gate, report_ranking
from gate_fit import fit_gate
from model_fit import fit_model_gate, fit_model_weights
from msgspec.structs import replace
from other_language import in_other_language
from ranking_fit import fit_weights, weights_in_use
from toml_tables import Table, gate_tables, replace_tables, weight_tables
from training_samples import collect_samples

from recollect.projections.projection_settings import DEFAULT_MODEL, MULTILINGUAL_MODEL

#: The folder of `weights.toml` and `gate.toml`.
_RANKING = Path(__file__).parents[2] / "api" / "retrieval" / "ranking"
#: The embedding model of each ranking.
_MODELS = {"hybrid": DEFAULT_MODEL, "keyword": "none", MULTILINGUAL_MODEL: MULTILINGUAL_MODEL}


def fit(rankings: Sequence[str], folder: Path, cases: Path | None, data: Path) -> dict[str, list[Table]]:
    """Fit the rankings and print reports; return the new tables of each file.

    Parameters:
        rankings: keys of `_MODELS`.
        folder: conversations with questions, ``*.json``.
        cases: a case book; None for none.
        data: a folder for the log and the embeddings of the conversations.
    """
    files: dict[str, list[Table]] = {"weights.toml": [], "gate.toml": []}
    for ranking in rankings:
        samples = collect_samples(folder, cases, data / ranking, _MODELS[ranking])
        copies = in_other_language(samples) if ranking == MULTILINGUAL_MODEL else []
        is_default = ranking != MULTILINGUAL_MODEL
        trained = [*samples, *copies]
        weights = fit_weights(trained, semantic=ranking != "keyword") if is_default else fit_model_weights(trained)
        scores = [weights.scores(sample) for sample in samples]
        new_weights = weight_tables(ranking, weights)
        _print(new_weights)
        in_use = weights_in_use(ranking)
        report_ranking(samples, {"in use": [in_use.scores(sample) for sample in samples], "fitted": scores})
        gate = (fit_gate if is_default else fit_model_gate)(
            trained, [*scores, *(weights.scores(copy) for copy in copies)]
        )
        new_gate = gate_tables(ranking, gate)
        _print(new_gate)
        report_gate(samples, scores, replace(gate, logits=gate.logits[: len(samples)]))
        files["weights.toml"] += new_weights
        files["gate.toml"] += new_gate
    return files


def _print(tables: Sequence[Table]) -> None:
    for table in tables:
        print(f"\n{table}")


def main() -> None:
    """Run the fit, and write its tables when ``--write`` is given."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="recollect-fit-") as folder:
        files = fit(options.rankings, options.folder, options.cases, options.keep or Path(folder))
    if options.write:
        for name, tables in files.items():
            file = _RANKING / name
            file.write_text(replace_tables(file.read_text(encoding="utf-8"), tables, options.version), encoding="utf-8")
            print(f"wrote {file}", file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="conversations with questions: *.json")
    parser.add_argument("--cases", type=Path, help="a case book of short conversations with asks")
    parser.add_argument("--rankings", type=lambda names: names.split(","), default=[*_MODELS], help="the ones to fit")
    parser.add_argument("--keep", type=Path, help="a folder for the data, so that a second run need not embed again")
    parser.add_argument("--write", action="store_true", help="write weights.toml and gate.toml")
    parser.add_argument("--version", default=date.today().isoformat(), help="the version to write (today, %(default)s)")
    options = parser.parse_args()
    if not any(options.folder.glob("*.json")):
        parser.error(f"no *.json in {options.folder}")
    return options


if __name__ == "__main__":
    main()
