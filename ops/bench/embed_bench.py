"""The embedding model on each runtime, side by side, beside the runtime alone: a forward pass over what is tokenised.

Each uses as many threads as OMP_NUM_THREADS says, or one a core.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import texts
from table import heading

from recollect.projections.embeddings.embedder import SentenceEmbedder
from recollect.projections.embeddings.model_loading import load_runtime
from recollect.projections.embeddings.openvino_runtime import OpenVinoRuntime
from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.embeddings.torch_runtime import TorchRuntime
from recollect.projections.projection_settings import DEFAULT_MODEL, RuntimeChoice

QUERIES = 200
QUERY_WORDS = 10
BATCHES = 8
BATCH_TEXTS = 32
TEXT_WORDS = 40

#: A forward pass, ready to run.
Pass = Callable[[], Any]


class Part(NamedTuple):
    """A runtime as Recollect uses it, and alone."""

    name: str
    embedder: SentenceEmbedder
    prepare: Callable[[list[str]], Pass]


def run(folder: Path) -> None:  # noqa: ARG001 -- as every part's
    heading(f"Embedding, {DEFAULT_MODEL} (floor: the runtime's forward pass alone)")
    choices: list[RuntimeChoice] = ["torch"]
    if find_spec("openvino") is None:
        print("openvino is not installed: pip install openvino")
    else:
        choices.append("openvino")
    parts = [_part(choice) for choice in choices]
    queries = [[text] for text in _texts(QUERIES, QUERY_WORDS)]
    long = _texts(BATCHES * BATCH_TEXTS, TEXT_WORDS)
    batches = [long[start : start + BATCH_TEXTS] for start in range(0, len(long), BATCH_TEXTS)]
    asked, filled = _measure(parts, queries), _measure(parts, batches)
    for part in parts:
        whole, floor = asked[part.name]
        ours, least = (_texts_a_second(ms) for ms in filled[part.name])
        print(
            f"{part.name:<10}query ms   p50 {statistics.median(whole):6.2f}   p99 {_p99(whole):6.2f}   "
            f"floor p50 {statistics.median(floor):6.2f}   p99 {_p99(floor):6.2f}   "
            f"ratio {statistics.median(whole) / statistics.median(floor):.2f}\n"
            f"{'':<10}batches of {BATCH_TEXTS} x {TEXT_WORDS} words   {ours:,.0f} texts/s   "
            f"floor {least:,.0f}   ratio {ours / least:.2f}",
            flush=True,
        )


def _part(choice: RuntimeChoice) -> Part:
    embedder = SentenceEmbedder(DEFAULT_MODEL, choice)
    embedder.start()
    assert embedder.wait_ready(300), embedder.reason
    runtime = load_runtime(DEFAULT_MODEL, choice)
    if isinstance(runtime, OpenVinoRuntime):
        return Part(runtime.name, embedder, partial(_openvino_pass, runtime))
    assert isinstance(runtime, TorchRuntime)
    return Part(runtime.name, embedder, partial(_torch_pass, runtime))


def _openvino_pass(runtime: OpenVinoRuntime, texts: list[str]) -> Pass:
    batches = [runtime.features(batch) for batch in runtime.packer.batches([Stretch(text) for text in texts])]
    return lambda: [runtime.compiled(features, share_inputs=True, share_outputs=True) for features in batches]


def _torch_pass(runtime: TorchRuntime, texts: list[str]) -> Pass:
    torch: Any = import_module("torch")
    features = dict(
        runtime.tokenizer(texts, padding=True, truncation=True, max_length=runtime.tokens_max, return_tensors="pt")
    )
    return torch.inference_mode()(partial(runtime.model[0].auto_model, **features))


def _measure(parts: list[Part], batches: list[list[str]]) -> dict[str, tuple[list[float], list[float]]]:
    """Return milliseconds a batch, of Recollect and of the floor, by runtime; all in turn, so that noise hits all."""
    took: dict[str, tuple[list[float], list[float]]] = {part.name: ([], []) for part in parts}
    for batch in batches:
        for part in parts:
            floor = part.prepare(batch)
            for work, ms in zip((partial(_embed, part.embedder, batch), floor), took[part.name], strict=True):
                # Once before: what the others left in the caches, and a shape that is new, is not what is measured.
                work()
                started = time.perf_counter()
                work()
                ms.append((time.perf_counter() - started) * 1_000)
    return took


def _embed(embedder: SentenceEmbedder, batch: list[str]) -> None:
    if len(batch) == 1:
        embedder.embed_query(batch[0])
    else:
        embedder.embed_tokens([Stretch(text) for text in batch])


def _texts(count: int, words: int) -> list[str]:
    """Return texts of so many words, one after the other from the demo conversation."""
    said = cycle(" ".join(event["payload"]["text"] for event in texts.messages()).split())
    return [" ".join(islice(said, words)) for _ in range(count)]


def _texts_a_second(batches_ms: list[float]) -> float:
    return BATCH_TEXTS / statistics.median(batches_ms) * 1_000


def _p99(values: list[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))]
