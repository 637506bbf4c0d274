"""Model runtime: runs the embedding model on OpenVINO where it is installed and supports the model, else on PyTorch.

A model of static token vectors needs neither: NumPy reads the vectors.

OpenVINO and PyTorch give the same vector space: a check at every load requires a cosine of 0.999 between their vectors
of the same text. So a change of the runtime embeds nothing again.
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
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from recollect.events.errors import short_text
from recollect.projections.embeddings.model_files import check_hub, is_on_this_machine, model_source
from recollect.projections.embeddings.offset_tokenizer import OffsetTokenizer, Reading, has_offsets
from recollect.projections.embeddings.stretches import Stretch, TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.projection_settings import RuntimeChoice

_logger = logging.getLogger(__name__)

RuntimeName = Literal["openvino", "torch", "static", "none"]

#: Texts are padded to a multiple of this length, and batches have 8, 4, 2 or 1 texts: OpenVINO keeps about 1 MB for
#: each input shape, and the first text of a shape takes 10 ms more. 16 rows are one tile of AMX, so padding costs
#: little; from 40 words on, larger batches are no faster.
_TOKENS_STEP = 16
_BATCH_SIZES = (8, 4, 2, 1)
#: Minimum cosine to PyTorch's float32 vector of the same text.
_COSINE_MIN = 0.999
#: Texts of that check: several scripts, an empty text, and other lengths than the model was converted with.
_PROBES = (
    "Ann moved to Lisbon and adopted a cat called Biscuit.",
    "  what does she DRINK?\n",
    "",
    "茶が好きです 🍵",
    "The invoice 2026-114 was paid on the 3rd, and nobody told the accountant. " * 40,
)


class RuntimeRefused(Exception):
    """The configured runtime cannot run the model; the message says why and what to do."""


class Runtime(Protocol):
    """A loaded model. One thread at a time may use it."""

    @property
    def name(self) -> RuntimeName:
        """Return the name of the runtime."""
        ...

    @property
    def tokenizer(self) -> Any:
        """Return the model's tokenizer: a tokenizer of transformers."""
        ...

    @property
    def tokens_max(self) -> int | None:
        """Return the tokens after which the model truncates a text, special tokens included; None for no limit."""
        ...

    def encode(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch.

        The vector of a part in a context is the mean over the part's tokens. A part is embedded without its context
        when the model cannot read both at once, or when the mean over a part's tokens has no meaning in the model's
        vector space.
        """
        ...


class TorchRuntime:
    """A SentenceTransformer on PyTorch."""

    name: RuntimeName = "torch"

    def __init__(self, model: Any) -> None:
        self.model = model
        self.tokenizer: Any = model.tokenizer
        self.tokens_max: int | None = model.max_seq_length
        self._tokenizer = OffsetTokenizer(model) if has_offsets(model) else None
        self._has_context = not _unusual_part(model)
        self._special_ids = set[int](self.tokenizer.all_special_ids)

    def encode(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch."""
        readings = self._readings(stretches)
        rows: Any = self.model.encode(
            [reading.stretch.text for reading in readings],
            output_value=None,
            show_progress_bar=False,
            batch_size=len(readings),
            convert_to_numpy=False,
        )
        return [self._embedding(reading, row) for reading, row in zip(readings, rows, strict=True)]

    def _readings(self, stretches: Sequence[Stretch]) -> list[Reading]:
        read = stretches if self._has_context else [Stretch(stretch.part) for stretch in stretches]
        if self._tokenizer is None:
            return [Reading(stretch, None, ()) for stretch in read]
        return self._tokenizer.readings(read)

    def _embedding(self, reading: Reading, row: Any) -> TokenEmbedding:
        """Return the embedding of one reading from the output of sentence-transformers."""
        vector: Vector = row["sentence_embedding"].float().cpu().numpy()
        tokens: Vector = np.empty((0, len(vector)), np.float32)
        if "token_embeddings" in row and "input_ids" in row:
            ids: list[int] = row["input_ids"].tolist()
            mask: list[int] = row["attention_mask"].tolist()
            content_rows = [index for index, id in enumerate(ids) if mask[index] and id not in self._special_ids]
            tokens = row["token_embeddings"].float().cpu().numpy()[content_rows]
        # Normalised in float32: in bfloat16, lengths are off by up to 0.4 %.
        return _part_embedding(reading, vector, tokens)


class OpenVinoRuntime:
    """A transformer with mean pooling on OpenVINO, converted in memory.

    It uses the threads (``OMP_NUM_THREADS``) and the precision that torch would use.

    Raises:
        RuntimeRefused: the model is no transformer with mean pooling on the CPU.
    """

    name: RuntimeName = "openvino"

    def __init__(self, model: Any) -> None:
        if reason := _unsupported_reason(model):
            raise RuntimeRefused(reason)
        self.tokenizer: Any = model.tokenizer
        self.tokens_max: int | None = model.max_seq_length
        self._tokenizer = OffsetTokenizer(model)
        self.compiled: Any = _compile(model)
        self._inputs: set[str] = {port.any_name for port in self.compiled.inputs}
        self._output: Any = self.compiled.output("last_hidden_state")

    def encode(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch."""
        readings = self._tokenizer.readings(stretches)
        embeddings: list[TokenEmbedding] = []
        for size in _BATCH_SIZES:
            while len(readings) - len(embeddings) >= size:
                embeddings += self._forward(readings[len(embeddings) : len(embeddings) + size])
        return embeddings

    def features(self, encodings: Sequence[Any]) -> dict[str, NDArray[np.int64]]:
        """Return the model's padded inputs for a batch of the tokenizer's encodings, shape (batch, length) each."""
        longest = max(len(encoding.ids) for encoding in encodings)
        width = max(1, -(-longest // _TOKENS_STEP)) * _TOKENS_STEP
        if self.tokens_max is not None:
            width = min(width, self.tokens_max)
        ids = np.full((len(encodings), width), self.tokenizer.pad_token_id or 0, np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, : len(encoding.ids)] = encoding.ids
            mask[row, : len(encoding.ids)] = encoding.attention_mask
            types[row, : len(encoding.ids)] = encoding.type_ids
        features = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        return {name: values for name, values in features.items() if name in self._inputs}

    def _forward(self, readings: Sequence[Reading]) -> list[TokenEmbedding]:
        """Return the embeddings of one batch."""
        features = self.features([reading.encoding for reading in readings])
        # Without a copy of the output: the results below are new arrays.
        hidden: Vector = self.compiled(features, share_inputs=True, share_outputs=True)[self._output]
        # The sum replaces the mean: both have the same direction, and the vector is normalised.
        sums: Vector = features["attention_mask"][:, np.newaxis].astype(np.float32) @ hidden
        return [
            _part_embedding(reading, vector, rows[self._tokenizer.content_rows(reading.encoding)])
            for reading, vector, rows in zip(readings, sums[:, 0], hidden, strict=True)
        ]


class StaticRuntime:
    """A model of static token vectors (`StaticEmbedding`), such as those of model2vec.

    A token has the same vector in every text, and a text's vector is the mean over its tokens. So a context changes
    nothing, and only the part of a stretch is read.

    Raises:
        RuntimeRefused: other modules follow the token vectors.
    """

    name: RuntimeName = "static"
    tokens_max: int | None = None

    def __init__(self, model: Any) -> None:
        modules = _module_names(model)
        if modules[1:] not in ([], ["Normalize"]):
            raise RuntimeRefused(f"the model is made of {', '.join(modules)}, which is not supported")
        self.tokenizer: Any = model.tokenizer
        self._weights: Vector = model[0].embedding.weight.detach().float().cpu().numpy()

    def encode(self, stretches: Sequence[Stretch]) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch."""
        encodings: list[Any] = self.tokenizer.encode_batch(
            [stretch.part for stretch in stretches], add_special_tokens=False
        )
        return [self._embedding(encoding.ids, encoding.offsets) for encoding in encodings]

    def _embedding(self, ids: list[int], offsets: list[tuple[int, int]]) -> TokenEmbedding:
        tokens = self._weights[ids]
        # The sum replaces the mean: both have the same direction, and the vector is normalised.
        vector: Vector = tokens.sum(axis=0, keepdims=True)
        return TokenEmbedding(normalised(vector)[0], normalised(tokens), tuple(offsets))


def load_runtime(model: str, choice: RuntimeChoice) -> Runtime:
    """Load a model and return its runtime.

    Parameters:
        model: the model's name or path.
        choice: ``auto`` tries OpenVINO first and falls back to PyTorch.

    Raises:
        ModelUnavailable: the model is not on this machine and cannot be fetched.
        RuntimeRefused: `choice` is ``openvino``, which is not installed or does not support the model.
        Exception: the model cannot be loaded.
    """
    if choice == "openvino" and find_spec("openvino") is None:
        raise RuntimeRefused(
            "RECOLLECT_EMBEDDING_RUNTIME asks for openvino, which is not installed; "
            "pip install 'recollect[fast]', or set it to auto"
        )
    if not is_on_this_machine(model):
        # Before torch is imported, which takes seconds.
        check_hub(model)
    torch = _torch()
    dtype = torch.bfloat16 if _multiplies_bfloat16() and not torch.cuda.is_available() else torch.float32
    if choice == "torch" or find_spec("openvino") is None:
        return _torch_runtime(_sentence_transformer(model, dtype))
    # OpenVINO converts from float32.
    float32_model = _sentence_transformer(model, torch.float32)
    if choice == "auto" and _is_static(float32_model):
        return StaticRuntime(float32_model)
    try:
        return _verified_openvino(float32_model)
    except Exception as error:
        cause = short_text(error)
        if choice == "openvino":
            raise RuntimeRefused(
                f"OpenVINO cannot run the model {model!r} ({cause}); set RECOLLECT_EMBEDDING_RUNTIME to auto"
            ) from error
        _logger.warning("embedding model %r: runs on torch, as OpenVINO cannot run it (%s)", model, cause)
        return TorchRuntime(float32_model if dtype == torch.float32 else _sentence_transformer(model, dtype))


def _torch_runtime(model: Any) -> Runtime:
    """Return the runtime without OpenVINO of a SentenceTransformer."""
    return StaticRuntime(model) if _is_static(model) else TorchRuntime(model)


def _is_static(model: Any) -> bool:
    return _module_names(model)[0] == "StaticEmbedding"


def _module_names(model: Any) -> list[str]:
    return [type(module).__name__ for module in model]


def normalised(vectors: Vector) -> Vector:
    """Return the rows of `vectors`, shape (n, dimensions), scaled to length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _torch() -> Any:
    """Import torch, which takes seconds, with passive waiting of its threads."""
    # Threads that wait by spinning delay a batch by 0.3 s when another process uses the processor. OpenMP reads the
    # variable when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return import_module("torch")


def _sentence_transformer(name: str, dtype: Any) -> Any:
    transformers_logging: Any = import_module("transformers.utils.logging")
    transformers_logging.disable_progress_bar()
    load: Any = import_module("sentence_transformers").SentenceTransformer
    options: dict[str, Any] = {"model_kwargs": {"dtype": dtype}}
    if is_on_this_machine(name):
        try:
            # Without asking the hub for a newer version, so that a start needs no network.
            return load(model_source(name), local_files_only=True, **options)
        except Exception:
            # Such as a download that was interrupted; the hub has the missing files.
            if Path(model_source(name)).is_dir():
                raise
            _logger.debug("the model %r is incomplete on this machine", name, exc_info=True)
            check_hub(name)
    return load(name, **options)


def _multiplies_bfloat16() -> bool:
    """Return whether the processor multiplies bfloat16 in hardware (AMX)."""
    return getattr(_torch().cpu, "_is_amx_tile_supported", lambda: False)()


def _part_embedding(reading: Reading, vector: Vector, tokens: Vector) -> TokenEmbedding:
    """Return the embedding of the part of a stretch.

    Parameters:
        vector: the model's vector of the whole text, of any length.
        tokens: the vectors of all its tokens without special tokens, of any length.
    """
    # A model that puts a prompt before the text has more token vectors than the text has tokens.
    spans = reading.spans if len(reading.spans) == len(tokens) else ()
    if reading.stretch.start:
        tokens, spans = tokens[-reading.part_tokens :], spans[-reading.part_tokens :]
        vector = tokens.mean(axis=0)
    return TokenEmbedding(normalised(vector[np.newaxis])[0], normalised(tokens), spans)


def _unusual_part(model: Any) -> str:
    """Return in what a SentenceTransformer differs from a transformer with mean pooling; empty when in nothing."""
    modules = _module_names(model)
    if modules[:2] != ["Transformer", "Pooling"] or modules[2:] not in ([], ["Normalize"]):
        return f"it is made of {', '.join(modules)}"
    if getattr(model[1], "pooling_mode", None) != "mean":
        return "its pooling is not the mean"
    if model.default_prompt_name is not None:
        return "it puts a prompt before every text"
    if not has_offsets(model):
        return "its tokenizer is not a fast one"
    return ""


def _unsupported_reason(model: Any) -> str:
    """Return why `OpenVinoRuntime` cannot run a SentenceTransformer; empty when it can."""
    if model.device.type != "cpu":
        return _unusual_part(model) or f"torch runs it on {model.device.type}"
    return _unusual_part(model)


def _compile(model: Any) -> Any:
    """Compile the model's transformer with OpenVINO for this processor."""
    # Turn off OpenVINO's telemetry: it reports each import and conversion, unless this package is missing.
    sys.modules.setdefault("openvino_telemetry", None)  # pyright: ignore[reportArgumentType]
    openvino: Any = import_module("openvino")
    _leave_root_logger_alone()
    example: Any = model.tokenizer(["one", "and two"], padding=True, return_tensors="pt")
    with _quiet():
        # The converted model shares the weights that torch has mapped from the file.
        converted = openvino.convert_model(model[0].auto_model, example_input=dict(example))
    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if _multiplies_bfloat16() else "f32",
        "INFERENCE_NUM_THREADS": _torch().get_num_threads(),
        # Pinned threads of several processes wait for one core while other cores are idle.
        "ENABLE_CPU_PINNING": False,
    }
    return openvino.Core().compile_model(converted, "CPU", options)


def _leave_root_logger_alone() -> None:
    """Stop OpenVINO from muting the root logger while it converts a model.

    What other threads log meanwhile would be lost, and the handlers it puts back are those of before the conversion.
    """

    def nothing(*_: object) -> None:
        pass

    module: Any = import_module("openvino.tools.ovc.convert")
    module.get_logger_state = module.restore_logger_state = nothing
    module = import_module("openvino.tools.ovc.convert_impl")
    module.init_logger = nothing


@contextmanager
def _quiet() -> Generator[None]:
    """Silence the warnings of torch and transformers while a model is traced: the result is verified anyway."""
    transformers_logging: Any = import_module("transformers.utils.logging")
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        transformers_logging.set_verbosity(before)


def _verified_openvino(model: Any) -> OpenVinoRuntime:
    """Return the model on OpenVINO after comparing its vectors with those of torch in float32.

    Raises:
        RuntimeRefused: OpenVINO does not support the model, or its vectors differ.
    """
    runtime = OpenVinoRuntime(model)
    # Each text alone, then all in one batch.
    for texts in (*((text,) for text in _PROBES), _PROBES):
        stretches = [Stretch(text) for text in texts]
        for expected, actual in zip(TorchRuntime(model).encode(stretches), runtime.encode(stretches), strict=True):
            cosine = float(expected.vector @ actual.vector)
            # `not >=` instead of `<`, so that NaN is refused too.
            if not cosine >= _COSINE_MIN or expected.tokens.shape != actual.tokens.shape:
                raise RuntimeRefused(f"its vectors differ from torch's: {cosine:.5f} by cosine")
    return runtime
