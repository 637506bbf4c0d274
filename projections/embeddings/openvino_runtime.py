"""OpenVINO runtime: runs a transformer with mean pooling on OpenVINO, in the vector space of PyTorch.

A converted model carries the vectors that PyTorch gave for a few texts. At every load the cosine between them and
OpenVINO's must be 0.999, with int8 weights 0.99, so that a change of the runtime embeds nothing again.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recollect.projections.embeddings.int8_weights import GROUP_SIZE, has_fast_int8, quantized
from recollect.projections.embeddings.model_runtime import (
    Hold,
    QueryPass,
    RuntimeName,
    RuntimeRefused,
    end_with_program,
)
from recollect.projections.embeddings.offset_tokenizer import OffsetTokenizer, TokenizerSpec
from recollect.projections.embeddings.packing import PackedBatch, Packer
from recollect.projections.embeddings.stretches import Purpose, Stretch, TokenEmbedding
from recollect.projections.embeddings.token_codes import Vector
from recollect.projections.embeddings.torch_runtime import (
    TorchRuntime,
    reads_contexts,
    torch_features,
    unusual_part,
)

_logger = logging.getLogger(__name__)

#: Minimum cosine to PyTorch's float32 vector of the same text.
_COSINE_MIN = 0.999
#: The same with int8 weights. The default model has 0.994 for the empty text and 0.998 for others.
_INT8_COSINE_MIN = 0.99
#: Texts of that check: several scripts, an empty text, other lengths than the model was converted with, and a context.
_PROBES = (
    Stretch("Ann moved to Lisbon and adopted a cat called Biscuit."),
    Stretch("  what does she DRINK?\n"),
    Stretch(""),
    Stretch("茶が好きです 🍵"),
    Stretch("The invoice 2026-114 was paid on the 3rd, and nobody told the accountant. " * 40),
    Stretch.after(("Bob: Where did you see the cat?", "Ann: By the river."), "Bob: On the old bridge 🍰?"),
)


#: Devices of OpenVINO that the model may run on.
OpenVinoDevice = Literal["CPU", "GPU"]


class Probe(NamedTuple):
    """What PyTorch gives for one text of the check."""

    vector: list[float]
    tokens: int


class ConvertedModel(NamedTuple):
    """A transformer with mean pooling, converted for OpenVINO."""

    #: The `openvino.Model`.
    graph: Any
    tokenizer: TokenizerSpec
    #: What PyTorch gives for each text of the check.
    probes: list[Probe]
    #: Whether the matrices of `graph` are int8.
    int8: bool = False


class OpenVinoRuntime:
    """A converted model, compiled for a device of this machine.

    Raises:
        RuntimeRefused: its vectors differ from PyTorch's.
    """

    name: RuntimeName = "openvino"

    def __init__(self, converted: ConvertedModel, device: OpenVinoDevice = "CPU") -> None:
        self.tokens_max: int | None = converted.tokenizer.tokens_max
        tokenizer = OffsetTokenizer(converted.tokenizer)
        self.tokenizer: Any = tokenizer.tokenizer
        self._inputs: set[str] = {port.any_name for port in converted.graph.inputs}
        self._with_context = "position_ids" in self._inputs
        self.packer = Packer(tokenizer, converted.tokenizer.pad_id, with_context=self._with_context)
        #: The inference requests of queries that are over, or that nothing waits for any more.
        self._requests: deque[Any] = deque()
        #: The model in use, as the cache keeps it: with int8 weights, if these are used.
        self.converted = converted
        if device == "CPU" and has_fast_int8():
            graph = converted.graph if converted.int8 else quantized(converted.graph)
            self.compiled: Any = _compile(graph, device)
            cosine = self._least_cosine(converted.probes)
            if cosine >= _INT8_COSINE_MIN:
                self.converted = converted._replace(graph=graph, int8=True)
                return
            _logger.info("int8 weights change the vectors of the embedding model too much: %.5f by cosine", cosine)
        self.compiled = _compile(converted.graph, device)
        cosine = self._least_cosine(converted.probes)
        # `not >=` instead of `<`, so that NaN is refused too.
        if not cosine >= _COSINE_MIN:
            raise RuntimeRefused(f"its vectors differ from torch's: {cosine:.5f} by cosine")

    def encode(
        self, stretches: Sequence[Stretch], hold: Hold = nullcontext, purpose: Purpose = "document"
    ) -> list[TokenEmbedding]:
        """Return the embedding of the part of each stretch."""
        embeddings: dict[int, TokenEmbedding] = {}
        for batch in self.packer.batches(stretches, purpose):
            features = self.features(batch)
            with hold():
                # Without a copy of the output, which the next forward pass overwrites.
                hidden: Vector = self.compiled(features, share_inputs=True, share_outputs=True)[0]
                embeddings |= batch.embeddings(hidden)
        return [embeddings[number] for number in range(len(stretches))]

    def query_pass(self, stretch: Stretch) -> QueryPass:
        """Return the forward pass over a query, which OpenVINO computes in threads of its own."""
        [batch] = self.packer.batches([stretch], "query")
        return _Pass(self._idle_request(), batch, self.features(batch), self._requests)

    def _idle_request(self) -> Any:
        """Return an inference request that computes nothing, of those used before or a new one."""
        for _ in range(len(self._requests)):
            # Empty when other threads have taken them.
            with suppress(IndexError):
                request = self._requests.popleft()
                if request.wait_for(0):
                    return request
                self._requests.append(request)
        return self.compiled.create_infer_request()

    def features(self, batch: PackedBatch) -> dict[str, NDArray[Any]]:
        """Return the model's inputs for a batch."""
        features: dict[str, NDArray[Any]] = {
            "input_ids": batch.ids,
            "attention_mask": batch.attention if self._with_context else batch.mask,
            "token_type_ids": batch.types,
            "position_ids": batch.positions,
        }
        return {name: values for name, values in features.items() if name in self._inputs}

    def _least_cosine(self, probes: Sequence[Probe]) -> float:
        """Return the least cosine of the probes' vectors, each alone and all in one batch, to PyTorch's.

        NaN when a vector has one, and -1 when a text has another number of tokens.
        """
        alone: list[TokenEmbedding] = []
        for stretch in _PROBES:
            end_with_program()
            alone += self.encode([stretch])
        cosines: list[float] = []
        for embedding, probe in zip([*alone, *self.encode(_PROBES)], [*probes, *probes], strict=True):
            is_same = len(embedding.tokens) == probe.tokens
            cosines.append(float(embedding.vector @ np.array(probe.vector, np.float32)) if is_same else -1.0)
        return float(np.min(cosines))


class _Pass:
    """The forward pass of a query.

    Parameters:
        requests: takes the request afterwards.
    """

    def __init__(
        self, request: Any, batch: PackedBatch, features: dict[str, NDArray[Any]], requests: deque[Any]
    ) -> None:
        self._request, self._batch, self._features, self._requests = request, batch, features, requests

    def begin(self) -> None:
        """Begin it. Two passes of one model at once would write into the same memory (OpenVINO 2026.4)."""
        self._request.start_async(self._features)

    def wait(self) -> None:
        """Wait until it is over. It raises no error: `result` does."""
        with suppress(RuntimeError):
            self._request.wait()

    @property
    def is_over(self) -> bool:
        """Return whether it is over, or has failed."""
        try:
            is_over: bool = self._request.wait_for(0)
        except RuntimeError:
            return True
        return is_over

    def result(self, timeout: float | None = None) -> TokenEmbedding:
        """Return the embedding; raise `TimeoutError` when it is not there after `timeout` seconds."""
        if timeout is None:
            self._request.wait()
        elif not self._request.wait_for(int(timeout * 1_000)):
            raise TimeoutError
        [(_, embedding)] = self._batch.embeddings(self._request.get_output_tensor(0).data)
        return embedding

    def __del__(self) -> None:
        # OpenVINO's end of a request would wait for its pass.
        self._requests.append(self._request)


def convert(model: Any) -> ConvertedModel:
    """Convert a SentenceTransformer with float32 weights.

    Raises:
        RuntimeRefused: the model is not a transformer with mean pooling on the CPU.
    """
    if reason := _unsupported_reason(model):
        raise RuntimeRefused(reason)
    openvino = _openvino()
    _leave_root_logger_alone()
    with _quiet():
        # The converted model shares the weights that torch has mapped from the file.
        graph = openvino.convert_model(model[0].auto_model, example_input=_example(model))
    probes = [
        Probe(embedding.vector.tolist(), len(embedding.tokens)) for embedding in TorchRuntime(model).encode(_PROBES)
    ]
    return ConvertedModel(graph, TokenizerSpec.of_model(model), probes)


def _example(model: Any) -> dict[str, Any]:
    """Return inputs that the model is traced with: with an attention mask for contexts where it can read them."""
    if not reads_contexts(model):
        return dict(model.tokenizer(["one", "and two"], padding=True, return_tensors="pt"))
    spec = TokenizerSpec.of_model(model)
    packer = Packer(OffsetTokenizer(spec), spec.pad_id, with_context=True)
    return torch_features(next(packer.batches([Stretch("one"), Stretch.after(("one",), "two")])), model)


def _unsupported_reason(model: Any) -> str:
    """Return why OpenVINO cannot run a SentenceTransformer; empty when it can."""
    if model.device.type != "cpu":
        return unusual_part(model) or f"torch runs it on {model.device.type}"
    return unusual_part(model)


def _openvino() -> Any:
    # Turn off OpenVINO's telemetry: it reports each import and conversion, unless this package is missing.
    sys.modules.setdefault("openvino_telemetry", None)  # pyright: ignore[reportArgumentType]
    return import_module("openvino")


def has_openvino_gpu() -> bool:
    """Return whether OpenVINO finds a GPU that it runs on."""
    devices: list[str] = _openvino().Core().available_devices
    return any(device.startswith("GPU") for device in devices)


def read_graph(path: str) -> Any:
    """Return the graph that `save_graph` wrote.

    Raises:
        Exception: it cannot be read.
    """
    return _openvino().Core().read_model(path)


def save_graph(graph: Any, path: str) -> None:
    """Write a graph with float32 weights: the XML file `path`, and the weights in a `.bin` file of the same name."""
    _openvino().save_model(graph, path, compress_to_fp16=False)


def _compile(graph: Any, device: OpenVinoDevice) -> Any:
    """Compile a graph for a device; on the CPU with as many threads as torch would use, and its precision."""
    end_with_program()
    core: Any = _openvino().Core()
    if device == "GPU":
        # float16, the GPU's default precision, is nearer to float32 than bfloat16 is.
        return core.compile_model(graph, device, {"PERFORMANCE_HINT": "LATENCY"})
    has_bfloat16 = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    options: dict[str, Any] = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if has_bfloat16 else "f32",
        # Pinned threads of several processes wait for one core while other cores are idle.
        "ENABLE_CPU_PINNING": False,
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": GROUP_SIZE,
    }
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal():
        options["INFERENCE_NUM_THREADS"] = int(threads)
    return core.compile_model(graph, "CPU", options)


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
