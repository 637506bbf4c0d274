"""From append to searchable by meaning, beside encoding each message once: with the bare runtime, and as peers do.

Real conversations of the folder of test data, the demo conversation where there is none. All take turns, so that noise
hits all. Both floors stop at the tokens that the model reads at once, while Recollect reads all of a message. Vector
stores encode with sentence-transformers, so no peer is faster than that one.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import texts
from table import heading

from recollect.api.assembly.memory_parts import MemoryParts, open_parts
from recollect.api.settings import load_settings
from recollect.events.validation import drafts
from recollect.projections.embeddings.embedder import EMBEDDED_TEXTS
from recollect.projections.embeddings.model_files import model_source
from recollect.projections.embeddings.model_loading import load_runtime
from recollect.projections.embeddings.model_runtime import EMBEDDED_TOKENS
from recollect.projections.embeddings.openvino_runtime import OpenVinoRuntime
from recollect.projections.embeddings.stretches import Stretch
from recollect.projections.projection_settings import DEFAULT_MODEL

MESSAGES = 500
#: Parts of a data set after each of which another takes its turn.
TURNS = 4
#: Texts of a batch, as sentence-transformers and the peers have it.
_BATCH_TEXTS = 32
#: Events of one append.
_APPEND_EVENTS = 500

#: An event of a conversation.
Event = dict[str, Any]


class Cost(NamedTuple):
    """What a part of the messages took."""

    seconds: float
    #: Processor time of all threads.
    cpu_seconds: float


class Reading(NamedTuple):
    """What the model has read."""

    texts: float
    tokens: float


class Contender(NamedTuple):
    """Something that makes the vectors of messages."""

    name: str
    work: Callable[[Sequence[Event]], object]


def run(folder: Path, messages: int = MESSAGES) -> None:
    heading(f"From append to searchable by meaning, {DEFAULT_MODEL} (floor: each message encoded once)")
    parts = open_parts(load_settings(data=folder / "data"), workers=False)
    parts.vectors.embedder.start()
    assert parts.vectors.embedder.wait_ready(300), parts.vectors.embedder.reason
    parts.vectors.basis()
    floors = _floors()
    # Once before: models load their last parts and compile at the first texts.
    for contender in (Contender("warm up", partial(_searchable, parts)), *floors):
        contender.work(texts.messages()[:_BATCH_TEXTS])
    for set_name, events in texts.sets(messages).items():
        _compare(set_name, events, [Contender("recollect", partial(_searchable, parts)), *floors])
    parts.close()


def _compare(set_name: str, events: list[Event], contenders: list[Contender]) -> None:
    costs: dict[str, list[Cost]] = {contender.name: [] for contender in contenders}
    read: dict[str, list[Reading]] = {contender.name: [] for contender in contenders}
    for turn in range(TURNS):
        share = events[len(events) * turn // TURNS : len(events) * (turn + 1) // TURNS]
        for contender in contenders:
            before = _read()
            costs[contender.name].append(_cost(partial(contender.work, share)))
            read[contender.name].append(Reading(*(now - then for now, then in zip(_read(), before, strict=True))))
    texts_read, tokens_read = (sum(numbers) / len(events) for numbers in zip(*read["recollect"], strict=True))
    print(f"{set_name}: {len(events):,} messages, {texts_read:.2f} texts and {tokens_read:.0f} tokens a message")
    ours = _total(costs["recollect"])
    for name, parts in costs.items():
        total = _total(parts)
        print(
            f"  {name:<40}{total.seconds:8.1f} s   processor {total.cpu_seconds:8.1f} s   "
            f"ratio {ours.seconds / total.seconds:.2f}, processor {ours.cpu_seconds / total.cpu_seconds:.2f}",
            flush=True,
        )


def _read() -> Reading:
    return Reading(sum(EMBEDDED_TEXTS.values().values()), sum(EMBEDDED_TOKENS.values().values()))


def _total(costs: Sequence[Cost]) -> Cost:
    return Cost(sum(cost.seconds for cost in costs), sum(cost.cpu_seconds for cost in costs))


def _cost(work: Callable[[], object]) -> Cost:
    started, cpu = time.perf_counter(), _cpu_seconds()
    work()
    return Cost(time.perf_counter() - started, _cpu_seconds() - cpu)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _searchable(parts: MemoryParts, events: Sequence[Event]) -> None:
    """Append messages to a new namespace, and embed them until the index has all of them."""
    namespace = f"bench-{len(parts.log.heads())}"
    for start in range(0, len(events), _APPEND_EVENTS):
        parts.log.append(namespace, drafts([*events[start : start + _APPEND_EVENTS]]))
    parts.read_models.catch_up(namespace)
    parts.vectors.embed_new(namespace)
    with parts.read_models.reading(namespace) as snapshot:
        assert not parts.vectors.backlog(namespace, snapshot).missing
        parts.vectors.index(namespace, snapshot)


def _floors() -> list[Contender]:
    floors: list[Contender] = []
    if find_spec("openvino") is not None:
        runtime = load_runtime(DEFAULT_MODEL, "openvino", "cpu")
        assert isinstance(runtime, OpenVinoRuntime)
        floors.append(Contender("floor: OpenVINO alone, each message once", partial(_openvino_once, runtime)))
    library: Any = import_module("sentence_transformers")
    torch: Any = import_module("torch")
    # As the peers load it of their own accord, and as `ops/bench/peers` does where the processor has bfloat16.
    checks = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    has_bfloat16 = any(getattr(torch.cpu, check, lambda: False)() for check in checks)
    for precision in (torch.float32, torch.bfloat16) if has_bfloat16 else (torch.float32,):
        model = library.SentenceTransformer(
            model_source(DEFAULT_MODEL), device="cpu", model_kwargs={"dtype": precision}
        )
        name = f"peers: sentence-transformers, {str(precision).removeprefix('torch.')}"
        floors.append(Contender(name, partial(_peer_once, model)))
    return floors


def _openvino_once(runtime: OpenVinoRuntime, events: Sequence[Event]) -> None:
    """Encode each message once: tokens, forward passes over batches sorted by length, the means over the tokens."""
    for batch in runtime.packer.batches([Stretch(text) for text in _spoken(events)]):
        hidden: Any = runtime.compiled(runtime.features(batch), share_inputs=True, share_outputs=True)[0]
        assert [hidden[place.row, place.first : place.after].mean(axis=0) for place in batch.places]


def _peer_once(model: Any, events: Sequence[Event]) -> None:
    model.encode(_spoken(events), batch_size=_BATCH_TEXTS, show_progress_bar=False)


def _spoken(events: Sequence[Event]) -> list[str]:
    """Return the messages as "Speaker: text", as Recollect embeds them."""
    return [
        f"{event['payload'].get('name') or event.get('actor') or event['payload']['role']}: {event['payload']['text']}"
        for event in events
    ]
