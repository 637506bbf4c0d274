"""What runs the embedding model: OpenVINO where it is installed and takes the model, PyTorch otherwise.

Both make the same vector space: vectors of one are within 0.001 of the other's by cosine, which is checked whenever a
model is loaded. So vectors are kept when the runtime changes.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.events.errors import short_text
from recollect.projections.embeddings.model_files import model_source
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.projection_settings import RuntimeChoice

_logger = logging.getLogger(__name__)

RuntimeName = Literal["openvino", "torch", "none"]

#: Lengths are filled up to a multiple of this, and batches have 8, 4, 2 or 1 texts: OpenVINO keeps about 1 MB for each
#: shape that it met, and the first text of a shape takes 10 ms more. 16 rows are one tile of AMX, so filling up costs
#: little; larger batches are no faster, from 40 words on.
_PIECES_STEP = 16
_BATCHES = (8, 4, 2, 1)
#: Least cosine to PyTorch's float32 that is the same space.
_COSINE_MIN = 0.999
#: What that is checked with: pieces of all kinds, and other lengths than the model was converted with.
_PROBES = (
    "Ann moved to Lisbon and adopted a cat called Biscuit.",
    "  what does she DRINK?\n",
    "",
    "茶が好きです 🍵",
    "The invoice 2026-114 was paid on the 3rd, and nobody told the accountant. " * 40,
)


class TokenEmbedding(NamedTuple):
    """One text in vector space, as a whole and by its pieces."""

    #: Normalised, shape (dimensions,).
    vector: Vector
    #: A vector for each piece that the model reads, marks of beginning and end left out, shape (pieces, dimensions);
    #: no rows when the model cannot tell.
    tokens: Vector
    #: Where each piece stands in the text, as (start, end); of queries only.
    spans: tuple[tuple[int, int], ...] = ()


class RuntimeRefused(Exception):
    """The runtime that was asked for cannot be had; the message says why, and what to do."""


class Runtime(Protocol):
    """A model, ready to encode. One thread at a time."""

    @property
    def name(self) -> RuntimeName:
        """Return what runs the model."""
        ...

    @property
    def tokenizer(self) -> Any:
        """Return the model's tokenizer, one of transformers."""
        ...

    @property
    def pieces_max(self) -> int | None:
        """Return how many pieces of a text the model reads, marks included; None: all."""
        ...

    def encode(self, texts: Sequence[str]) -> list[TokenEmbedding]:
        """Return an embedding a text, without spans."""
        ...


class TorchRuntime:
    """A SentenceTransformer as it is."""

    name: RuntimeName = "torch"

    def __init__(self, model: Any) -> None:
        self.model = model
        self.tokenizer: Any = model.tokenizer
        self.pieces_max: int | None = model.max_seq_length

    def encode(self, texts: Sequence[str]) -> list[TokenEmbedding]:
        """Return an embedding a text."""
        rows: Any = self.model.encode(
            list(texts), output_value=None, show_progress_bar=False, batch_size=len(texts), convert_to_numpy=False
        )
        special = set[int](self.tokenizer.all_special_ids)
        return [_embedding(row, special) for row in rows]


class OpenVinoRuntime:
    """A transformer with mean pooling, converted in memory.

    It uses as many threads as torch would (``OMP_NUM_THREADS``), and bfloat16 where torch would.

    Raises:
        RuntimeRefused: the model is of another kind.
    """

    name: RuntimeName = "openvino"

    def __init__(self, model: Any) -> None:
        if unfit := _unfit(model):
            raise RuntimeRefused(unfit)
        self.tokenizer: Any = model.tokenizer
        self.pieces_max: int | None = model.max_seq_length
        # A copy: this one's truncation and padding are its own, whatever others do with the model's.
        tokenizers: Any = import_module("tokenizers")
        self._pieces: Any = tokenizers.Tokenizer.from_str(self.tokenizer.backend_tokenizer.to_str())
        self._pieces.no_padding()
        self._pieces.no_truncation()
        if self.pieces_max is not None:
            self._pieces.enable_truncation(self.pieces_max, direction=self.tokenizer.truncation_side)
        self._special = set[int](self.tokenizer.all_special_ids)
        self.compiled: Any = _compiled(model)
        self._inputs: set[str] = {one.any_name for one in self.compiled.inputs}
        self._output: Any = self.compiled.output("last_hidden_state")

    def encode(self, texts: Sequence[str]) -> list[TokenEmbedding]:
        """Return an embedding a text."""
        read: list[Any] = self._pieces.encode_batch(list(texts))
        found: list[TokenEmbedding] = []
        for size in _BATCHES:
            while len(read) - len(found) >= size:
                found += self._forward(read[len(found) : len(found) + size])
        return found

    def features(self, read: Sequence[Any]) -> dict[str, NDArray[np.int64]]:
        """Return what the model is given for texts as the tokenizer read them."""
        longest = max(len(one.ids) for one in read)
        width = max(1, -(-longest // _PIECES_STEP)) * _PIECES_STEP
        if self.pieces_max is not None:
            width = min(width, self.pieces_max)
        ids = np.full((len(read), width), self.tokenizer.pad_token_id or 0, np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, one in enumerate(read):
            ids[row, : len(one.ids)] = one.ids
            mask[row, : len(one.ids)] = one.attention_mask
            types[row, : len(one.ids)] = one.type_ids
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        return {name: values for name, values in given.items() if name in self._inputs}

    def _forward(self, read: Sequence[Any]) -> list[TokenEmbedding]:
        features = self.features(read)
        # Not copied: whatever is kept of it is made anew below.
        hidden: Vector = self.compiled(features, share_inputs=True, share_outputs=True)[self._output]
        # The mean's direction is the sum's.
        sums = features["attention_mask"][:, np.newaxis].astype(np.float32) @ hidden
        wholes = normalised(sums[:, 0])
        return [
            TokenEmbedding(whole, normalised(rows[[at for at, id in enumerate(one.ids) if id not in self._special]]))
            for whole, rows, one in zip(wholes, hidden, read, strict=True)
        ]


def load_runtime(model: str, choice: RuntimeChoice) -> Runtime:
    """Load the model of that name or path.

    Raises:
        RuntimeRefused: OpenVINO was asked for by name, and it is not installed or does not take the model.
        Exception: the model cannot be loaded.
    """
    if choice == "openvino" and find_spec("openvino") is None:
        raise RuntimeRefused(
            "RECOLLECT_EMBEDDING_RUNTIME asks for openvino, which is not installed; "
            "pip install 'recollect[fast]', or set it to auto"
        )
    torch = _torch()
    dtype = torch.bfloat16 if _multiplies_bfloat16() and not torch.cuda.is_available() else torch.float32
    if choice == "torch" or find_spec("openvino") is None:
        return TorchRuntime(_sentence_transformer(model, dtype))
    # OpenVINO converts from float32.
    whole = _sentence_transformer(model, torch.float32)
    try:
        return _verified(whole)
    except Exception as error:
        cause = short_text(error)
        if choice == "openvino":
            raise RuntimeRefused(
                f"OpenVINO cannot run the model {model!r} ({cause}); set RECOLLECT_EMBEDDING_RUNTIME to auto"
            ) from error
        _logger.warning("embedding model %r: runs on torch, as OpenVINO cannot run it (%s)", model, cause)
        return TorchRuntime(whole if dtype == torch.float32 else _sentence_transformer(model, dtype))


def normalised(vectors: Vector) -> Vector:
    """Return the rows of `vectors` at length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _torch() -> Any:
    """Import torch, which takes seconds, as this process wants it."""
    # Threads of a model that wait for each other by spinning stand still for 0.3 s when another process wants the
    # processor; the library reads this when it is loaded.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return import_module("torch")


def _sentence_transformer(name: str, dtype: Any) -> Any:
    transformers_logging: Any = import_module("transformers.utils.logging")
    transformers_logging.disable_progress_bar()
    return import_module("sentence_transformers").SentenceTransformer(model_source(name), model_kwargs={"dtype": dtype})


def _multiplies_bfloat16() -> bool:
    """Tell whether the processor multiplies bfloat16 in hardware (AMX)."""
    return getattr(_torch().cpu, "_is_amx_tile_supported", lambda: False)()


def _embedding(row: Any, special: set[int]) -> TokenEmbedding:
    """Return the embedding of one text of a batch as sentence-transformers gives it."""
    whole: Vector = row["sentence_embedding"].float().cpu().numpy()
    pieces: Vector = np.empty((0, len(whole)), np.float32)
    if "token_embeddings" in row and "input_ids" in row:
        ids: list[int] = row["input_ids"].tolist()
        mask: list[int] = row["attention_mask"].tolist()
        kept = [at for at, id in enumerate(ids) if mask[at] and id not in special]
        pieces = row["token_embeddings"].float().cpu().numpy()[kept]
    # Normalised here, in float32: in bfloat16 lengths are off by up to 0.4 %.
    return TokenEmbedding(normalised(whole[np.newaxis])[0], normalised(pieces))


def _unfit(model: Any) -> str:
    """Return why a SentenceTransformer is not what `OpenVinoRuntime` can run; empty when it is."""
    modules = [type(module).__name__ for module in model]
    if modules[:2] != ["Transformer", "Pooling"] or modules[2:] not in ([], ["Normalize"]):
        return f"it is made of {', '.join(modules)}"
    if getattr(model[1], "pooling_mode", None) != "mean":
        return "its pooling is not the mean"
    if model.default_prompt_name is not None:
        return "it puts a prompt before every text"
    if not getattr(model.tokenizer, "is_fast", False):
        return "its tokenizer is not a fast one"
    if model.device.type != "cpu":
        return f"torch runs it on {model.device.type}"
    return ""


def _compiled(model: Any) -> Any:
    """Return the model's transformer, compiled by OpenVINO for this processor."""
    # OpenVINO reports each import and conversion to its maker's analytics, unless this package is missing. A memory
    # tells nobody.
    sys.modules.setdefault("openvino_telemetry", None)  # pyright: ignore[reportArgumentType]
    openvino: Any = import_module("openvino")
    example: Any = model.tokenizer(["one", "and two"], padding=True, return_tensors="pt")
    with _quiet():
        # The weights are shared with the file that torch has mapped.
        converted = openvino.convert_model(model[0].auto_model, example_input=dict(example))
    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if _multiplies_bfloat16() else "f32",
        "INFERENCE_NUM_THREADS": _torch().get_num_threads(),
        # Pinned threads of several processes wait for the same processor while others are idle.
        "ENABLE_CPU_PINNING": False,
    }
    return openvino.Core().compile_model(converted, "CPU", options)


@contextmanager
def _quiet() -> Generator[None]:
    """Keep to itself what torch and transformers say about a model that is traced; the result is verified."""
    transformers_logging: Any = import_module("transformers.utils.logging")
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        transformers_logging.set_verbosity(before)


def _verified(model: Any) -> OpenVinoRuntime:
    """Return the model on OpenVINO, once its vectors are those of torch in float32."""
    runtime = OpenVinoRuntime(model)
    # One at a time, and all in one batch.
    for texts in (*((text,) for text in _PROBES), _PROBES):
        for theirs, ours in zip(TorchRuntime(model).encode(texts), runtime.encode(texts), strict=True):
            cosine = float(theirs.vector @ ours.vector)
            # Written so that NaN is refused too.
            if not cosine >= _COSINE_MIN or theirs.tokens.shape != ours.tokens.shape:
                raise RuntimeRefused(f"its vectors are others than torch's: {cosine:.5f} by cosine")
    return runtime
