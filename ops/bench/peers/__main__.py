"""`python ops/bench/peers FOLDER`: Recollect beside other memories, on the same conversations with the same model.

The peers get an environment of their own, made at the first call (2.2 GB, two minutes). Each memory works through each
data set in a process of its own, one after another, from an empty folder. Telemetry of the peers is switched off.
The machine has to be idle: the threads of PyTorch, by which the peers embed, spin while they wait for each other.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from environment import default_env, interpreter, last_words, prepare
from figures import Outcome, outcome, render
from worker import PEERS

from recollect.api.settings import load_settings
from recollect.projections.embeddings.model_files import model_source

_RECOLLECT = "recollect"
_HERE = Path(__file__).parent
#: What the default model reads of a text, without its two special tokens.
_PIECE_TOKENS = 254
#: After so long a memory counts as failed, and the rest goes on.
_SECONDS_MAX = 7_200


def main() -> None:
    options = _options()
    model = model_source(load_settings().embedding.embedding_model)
    names: list[str] = options.peers
    failed = prepare(options.env) if any(name in PEERS for name in names) else []
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="recollect-bench-", dir=options.disk) as folder:
        for set_name, files in _sets(options.folder, options.limit_files):
            for name in names:
                _tell(f"{set_name}: {name} on {len(files)} conversations")
                home = Path(folder) / f"{set_name}-{name}"
                outcomes.append(_measure(set_name, name, options, model, home, files))
    print(render(outcomes))
    for line in failed:
        print(f"not installed: {line}")


def _tell(what: str) -> None:
    """Say what is going on, and how busy the machine is: with others at work, milliseconds are not to be trusted."""
    load = f" (load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)" if hasattr(os, "getloadavg") else ""
    print(f"{what}{load}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    names = [_RECOLLECT, *PEERS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="conversations with questions: *.json")
    parser.add_argument("--peers", default=",".join(names), help=f"which, with commas between: {', '.join(names)}")
    parser.add_argument("--limit-files", type=int, help="how many conversations of each data set")
    parser.add_argument("--items", type=int, default=100, help="memories that a question asks for (%(default)s)")
    parser.add_argument(
        "--pieces", action="store_true", help="peers store long messages in pieces, of which the model reads all"
    )
    parser.add_argument("--env", type=Path, default=default_env(), help="the peers' environment (%(default)s)")
    parser.add_argument("--disk", type=Path, default=Path.cwd(), help="on whose disk to measure")
    options = parser.parse_args()
    options.peers = options.peers.split(",")
    if unknown := set(options.peers) - set(names):
        parser.error(f"--peers: there is no {', '.join(sorted(unknown))}")
    if not any(options.folder.glob("*.json")):
        parser.error(f"there is no *.json in {options.folder}")
    return options


def _sets(folder: Path, limit: int | None) -> Iterator[tuple[str, list[Path]]]:
    """Yield the data sets: a name, which files have up to the first `-`, and the files."""
    files = sorted(folder.resolve().glob("*.json"))
    for set_name in dict.fromkeys(file.stem.partition("-")[0] for file in files):
        yield set_name, [file for file in files if file.stem.partition("-")[0] == set_name][:limit]


def _measure(
    set_name: str, name: str, options: argparse.Namespace, model: str, home: Path, files: Sequence[Path]
) -> Outcome:
    data, result = home / "data", home / "result.json"
    data.mkdir(parents=True)
    if name == _RECOLLECT:
        # By its name: a path is another model to the readers of messages, which were trained with the default one.
        command = [sys.executable, str(_HERE / "recollect_worker.py"), load_settings().embedding.embedding_model]
    else:
        command = [str(interpreter(options.env)), str(_HERE / "worker.py"), name, model]
    command += [str(data), str(result), str(options.items)]
    if name != _RECOLLECT:
        command.append(str(_PIECE_TOKENS if options.pieces else 0))
    command += map(str, files)
    try:
        done = subprocess.run(
            command, env=_variables(model, home), capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Outcome(set_name, name, error=str(error)[:200])
    if done.returncode or not result.exists():
        return Outcome(set_name, name, error=last_words(done.stderr) or f"exit code {done.returncode}")
    return outcome(set_name, name, result)


def _variables(model: str, home: Path) -> dict[str, str]:
    """Return the environment of a worker: no telemetry, and no look on the hub for a model that is here."""
    variables = {"MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False", "DO_NOT_TRACK": "1"}
    variables |= {"MEM0_DIR": str(home / "mem0"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    if Path(model).is_dir():
        variables |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return {**os.environ, **variables}


if __name__ == "__main__":
    main()
