"""Loopback server: serves a GGUF file on 127.0.0.1 in OpenAI's protocol, by llama.cpp.

`__main__.py` runs it with the Python of the tools' own environment, which has `xllamacpp` and nothing of Recollect.
"""

from __future__ import annotations

import argparse
import importlib
import signal
from pathlib import Path

#: Tokens of a request and its answer together.
_CONTEXT_TOKENS = 8_192


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path)
    parser.add_argument("--name", required=True, help="the name of the model in requests")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    # It is not in the environment of the type checker.
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(options.weights)
    params.model_alias = {options.name}
    params.n_parallel = 1
    params.n_ctx = _CONTEXT_TOKENS
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.warmup = False
    server = xllamacpp.Server(params)
    print(f"{options.name} at {server.listening_address}/v1", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
