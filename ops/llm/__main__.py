"""A real small language model on loopback, for tests and measurements; no dependency of the product.

python ops/llm get [MODEL]                   download, join and check the weights (0.5 or 1.1 GB)
python ops/llm serve [MODEL] [--port 8089]   the same, then serve them in OpenAI's protocol until Ctrl-C

The server is llama.cpp (`xllamacpp`, MIT) in an environment of its own, made at the first call. A test that needs a
model finds the server by RECOLLECT_TEST_LLM_URL=http://127.0.0.1:8089/v1 and skips without it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from model_files import MODELS, cache_folder, fetch

_SERVER = "xllamacpp==2026.10.11549"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("get", "serve"))
    parser.add_argument("model", nargs="?", choices=sorted(MODELS), default="qwen2.5-coder:1.5b")
    parser.add_argument("--port", type=int, default=8089)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    weights = fetch(MODELS[options.model])
    if options.what == "get":
        print(weights)
        return
    python = _environment()
    script = Path(__file__).with_name("loopback_server.py")
    arguments = ["--name", options.model, "--port", str(options.port), "--threads", str(options.threads)]
    # The process becomes the server, so that one signal ends it.
    os.execv(python, [str(python), str(script), str(weights), *arguments])


def _environment() -> Path:
    """Return the Python of the environment of the server; make it at the first call."""
    folder = cache_folder() / "environment"
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    stamp = folder / "installed.txt"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != _SERVER:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--only-binary=:all:", _SERVER], check=True)
        stamp.write_text(_SERVER, encoding="utf-8")
    return python


if __name__ == "__main__":
    main()
