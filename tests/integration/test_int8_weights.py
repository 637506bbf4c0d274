"""Int8 weights: for which processors, and of which parts of a model."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.projections.embeddings.int8_weights import has_fast_int8, quantized

needs_openvino = pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed here")


@pytest.mark.parametrize(
    ("cpu_info", "is_fast"),
    [
        ("processor : 0\nflags : fpu avx512_bf16 avx512_vnni\n", True),
        ("flags : fpu avx512_vnni amx_tile amx_int8\n", False),
        ("flags : fpu avx2\n", False),
        ("Features : fp asimd\n", False),
        (None, False),
    ],
)
def test_int8_weights_are_for_processors_with_vnni_and_without_amx(
    tmp_path: Path, cpu_info: str | None, is_fast: bool
) -> None:
    file = tmp_path / "cpuinfo"
    if cpu_info is not None:
        file.write_text(cpu_info)
    assert has_fast_int8(file) == is_fast


@needs_openvino
def test_int8_weights_are_those_of_products_and_of_large_tables() -> None:
    openvino: Any = import_module("openvino")
    operations: Any = import_module("openvino.opset13")
    random = np.random.default_rng(0)
    table, small, weights = (random.standard_normal((rows, 8), np.float32) for rows in (5_000, 16, 8))
    ids = operations.parameter([-1], np.int64, name="ids")
    rows = operations.add(*(operations.gather(operations.constant(it), ids, np.int64(0)) for it in (table, small)))
    graph = openvino.Model([operations.matmul(rows, operations.constant(weights), False, True)], [ids])
    int8 = quantized(graph)
    shapes = [
        tuple(node.get_output_shape(0))
        for node in int8.get_ops()
        if node.get_type_name() == "Constant" and node.get_element_type() == openvino.Type.i8
    ]
    assert sorted(shapes) == [(8, 8), (5_000, 8)]
    asked = np.array([3, 7, 15])
    exact = (table[asked] + small[asked]) @ weights.T
    [given] = openvino.Core().compile_model(int8, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([asked]).values()
    assert np.abs(given - exact).max() < 0.1
    assert np.corrcoef(given.ravel(), exact.ravel())[0, 1] > 0.999
