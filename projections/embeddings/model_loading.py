"""Model loading: gives an embedding model its runtime, OpenVINO where it is installed and supports the model.

Order on a CPU: static token vectors with NumPy; OpenVINO, from the cache of converted models where the model is in it;
PyTorch. On a GPU: PyTorch where it can use the GPU; else OpenVINO, which runs on Intel's. All give the same vector
space.
"""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from recollect.events.errors import short_text
from recollect.projections.embeddings.int8_weights import has_fast_int8
from recollect.projections.embeddings.model_cache import read_converted, write_converted
from recollect.projections.embeddings.model_files import (
    check_hub,
    is_from_hub,
    is_on_this_machine,
    model_fingerprint,
    opened_source,
)
from recollect.projections.embeddings.model_runtime import Runtime, RuntimeRefused
from recollect.projections.embeddings.openvino_runtime import (
    OpenVinoDevice,
    OpenVinoRuntime,
    convert,
    has_openvino_gpu,
)
from recollect.projections.embeddings.torch_runtime import StaticRuntime, is_static, torch_runtime
from recollect.projections.projection_settings import DeviceChoice, RuntimeChoice

_logger = logging.getLogger(__name__)


#: Devices of the drivers of NVIDIA's and AMD's GPUs on Linux. Without one, torch is not imported to look for a GPU.
_GPU_DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/kfd"))


def load_runtime(model: str, choice: RuntimeChoice, device: DeviceChoice = "auto") -> Runtime:
    """Load a model and return its runtime.

    Parameters:
        model: the model's name or path.
        choice: ``auto`` tries OpenVINO first and falls back to PyTorch; on a GPU, PyTorch is first.
        device: ``auto`` is a GPU that PyTorch can use, else the CPU.

    Raises:
        ModelUnavailable: the model is not on this machine and cannot be fetched.
        RuntimeRefused: `choice` is ``openvino``, which is not installed or does not support the model, or `device` is
            ``gpu`` and the runtime finds none.
        Exception: the model cannot be loaded.
    """
    has_openvino = find_spec("openvino") is not None
    if choice == "openvino" and not has_openvino:
        raise RuntimeRefused(
            "RECOLLECT_EMBEDDING_RUNTIME asks for openvino, which is not installed; "
            "pip install openvino, or set it to auto"
        )
    if not is_on_this_machine(model):
        # Before torch is imported, which takes seconds.
        check_hub(model)
    gpu = _torch_gpu() if device != "cpu" and choice != "openvino" and (device == "gpu" or _may_have_gpu()) else ""
    if gpu:
        return torch_runtime(_sentence_transformer(model, gpu))
    if device == "gpu" and (choice == "torch" or not has_openvino or not has_openvino_gpu()):
        raise RuntimeRefused(_no_gpu(choice))
    if choice == "torch" or not has_openvino:
        return torch_runtime(_sentence_transformer(model))
    openvino_device: OpenVinoDevice = "GPU" if device == "gpu" else "CPU"
    return _cached(model, openvino_device) or _converted(model, choice, openvino_device)


def _torch_gpu() -> str:
    """Return the name by which torch has the GPU; empty when it can use none."""
    torch = _torch()
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else ""


def _may_have_gpu() -> bool:
    """Return whether it is worth the seconds that torch takes to look for a GPU."""
    return sys.platform == "darwin" or any(driver.exists() for driver in _GPU_DRIVERS)


def _no_gpu(choice: RuntimeChoice) -> str:
    """Return the message for a GPU that is asked for and not found."""
    searched = {
        "auto": "neither PyTorch nor OpenVINO finds",
        "torch": "PyTorch does not find",
        "openvino": "OpenVINO does not find",
    }[choice]
    return (
        f"RECOLLECT_EMBEDDING_DEVICE asks for gpu, and {searched} one; install the GPU's "
        "driver and the wheel of PyTorch for it (docs/how-to/change-models.md), or set it to auto or cpu"
    )


def _cached(model: str, device: OpenVinoDevice) -> Runtime | None:
    """Return the runtime of the model's entry in the cache; None when it has none, or one that is not right."""
    if not is_on_this_machine(model):
        return None
    fingerprint = model_fingerprint(model)
    converted = read_converted(fingerprint, int8=True) if device == "CPU" and has_fast_int8() else None
    converted = converted or read_converted(fingerprint, int8=False)
    if converted is None:
        return None
    try:
        runtime = OpenVinoRuntime(converted, device)
        if runtime.converted.int8 and not converted.int8:
            write_converted(fingerprint, runtime.converted)
        return runtime
    except Exception as error:
        _logger.warning("embedding model %r: converted again, as its cache is not right (%s)", model, short_text(error))
        return None


def _converted(model: str, choice: RuntimeChoice, device: OpenVinoDevice) -> Runtime:
    """Convert the model for OpenVINO and keep it in the cache; fall back to the other runtimes."""
    # OpenVINO converts from float32.
    loaded = _sentence_transformer(model, float32=True)
    if choice == "auto" and is_static(loaded):
        return StaticRuntime(loaded)
    try:
        converted = convert(loaded)
        runtime = OpenVinoRuntime(converted, device)
    except Exception as error:
        cause = short_text(error)
        if choice == "openvino":
            raise RuntimeRefused(
                f"OpenVINO cannot run the model {model!r} ({cause}); set RECOLLECT_EMBEDDING_RUNTIME to auto"
            ) from error
        _logger.warning("embedding model %r: runs on torch, as OpenVINO cannot run it (%s)", model, cause)
        return torch_runtime(_sentence_transformer(model) if _has_bfloat16() else loaded)
    write_converted(model_fingerprint(model), runtime.converted)
    return runtime


def _sentence_transformer(name: str, device: str = "cpu", *, float32: bool = False) -> Any:
    """Load a SentenceTransformer, with bfloat16 weights where the processor multiplies them, unless `float32`.

    Parameters:
        device: as torch names it.
    """
    torch = _torch()
    transformers_logging: Any = import_module("transformers.utils.logging")
    transformers_logging.disable_progress_bar()
    load: Any = import_module("sentence_transformers").SentenceTransformer
    dtype = torch.bfloat16 if device == "cpu" and not float32 and _has_bfloat16() else torch.float32
    options: dict[str, Any] = {"device": device, "model_kwargs": {"dtype": dtype}}
    if is_on_this_machine(name):
        try:
            # Without asking the hub for a newer version, so that a start needs no network.
            with opened_source(name) as source:
                return load(source, local_files_only=True, **options)
        except Exception:
            # Such as a download that was interrupted; the hub has the missing files.
            if is_from_hub(name):
                raise
            _logger.debug("the model %r is incomplete on this machine", name, exc_info=True)
            check_hub(name)
    return load(name, **options)


def _torch() -> Any:
    """Import torch, which takes seconds, with passive waiting of its threads."""
    # Threads that wait by spinning delay a batch by 0.3 s when another process uses the processor. OpenMP reads the
    # variable when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    return import_module("torch")


def _has_bfloat16() -> bool:
    """Return whether the processor multiplies bfloat16 in hardware: with AMX, or with AVX-512."""
    cpu = _torch().cpu
    checks = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(getattr(cpu, check, lambda: False)() for check in checks)
