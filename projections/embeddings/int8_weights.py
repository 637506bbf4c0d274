"""Int8 weights: quantizes the matrices of a converted model where the processor multiplies int8 faster than floats.

OpenVINO then quantizes the vectors that are multiplied with them at run time, each by itself, so a vector does not
depend on the batch. A token costs 20 % less than in bfloat16 and half of float32 (EPYC of the Zen 4 generation). The
table of token vectors is int8 as well: as float32 it is four fifths of a small model, and OpenVINO reads all of it at
the start.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Numbers of a vector that share a scale: 64 have half the error of 384 and cost 2 % more, 32 cost 20 % more.
GROUP_SIZE = 64
#: Largest int8 in use: the range is symmetric, so zero stays zero.
_INT8_MAX = 127
#: Rows from which a table is quantized: that of positions is small, and with it vectors are less exact.
_TABLE_ROWS_MIN = 4_096
_CPU_INFO = Path("/proc/cpuinfo")


def has_fast_int8(cpu_info: Path = _CPU_INFO) -> bool:
    """Return whether int8 is the fastest: with AVX-512 VNNI, and without AMX, where OpenVINO multiplies in bfloat16.

    False where the system does not list the processor's flags.
    """
    try:
        lines = cpu_info.read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set[str]())
    return "avx512_vnni" in flags and "amx_tile" not in flags


def quantized(graph: Any) -> Any:
    """Return a copy of an `openvino.Model` whose constant matrices are int8 with a scale for each row."""
    copy = graph.clone()
    operations: Any = import_module("openvino.opset13")
    for node in copy.get_ops():
        place = _matrix_input(node)
        if place is None:
            continue
        weights: NDArray[np.float32] = node.input_value(place).get_node().get_data()
        scales: NDArray[np.float32] = (
            np.maximum(np.abs(weights).max(axis=1, keepdims=True), np.finfo(np.float32).tiny) / _INT8_MAX
        )
        rounded: NDArray[np.float32] = np.round(weights / scales)
        constant = operations.constant(rounded.astype(np.int8), dtype=np.int8)
        restored = operations.multiply(operations.convert(constant, "f32"), operations.constant(scales))
        node.input(place).replace_source_output(restored.output(0))
    return copy


def _matrix_input(node: Any) -> int | None:
    """Return the input by which an operation multiplies a constant matrix or reads a large table; None without one."""
    operation = node.get_type_name()
    if operation not in ("MatMul", "Gather") or (operation == "MatMul" and not node.get_attributes()["transpose_b"]):
        return None
    place, rows_min = (1, 0) if operation == "MatMul" else (0, _TABLE_ROWS_MIN)
    constant = node.input_value(place).get_node()
    if constant.get_type_name() != "Constant" or constant.get_element_type().get_type_name() != "f32":
        return None
    shape = constant.get_output_shape(0)
    return place if len(shape) == 2 and shape[0] >= rows_min else None
