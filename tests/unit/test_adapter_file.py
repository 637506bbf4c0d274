"""The adapter of the reading encoder: what it adds to the weights of a model."""

from __future__ import annotations

from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from recollect.projections.embeddings.adapter_file import write_adapted_folder

safetensors: Any = import_module("safetensors.numpy")


def _adapter(**arrays: NDArray[Any]) -> bytes:
    file = BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    weights = {"layer.weight": np.ones((3, 2), np.float32), "other.weight": np.ones((2, 2), np.float32)}
    safetensors.save_file(weights, folder / "model.safetensors")
    (folder / "config.json").write_text("{}")
    return folder


def test_the_product_of_the_narrow_matrices_is_added_and_the_rest_is_copied(source: Path, tmp_path: Path) -> None:
    adapter = _adapter(**{"layer.in": np.array([[1.0, 2.0]]), "layer.out": np.array([[1.0], [0.0], [-1.0]])})
    write_adapted_folder(source, adapter, tmp_path / "adapted")
    tensors = safetensors.load_file(tmp_path / "adapted" / "model.safetensors")
    assert tensors["layer.weight"].tolist() == [[2, 3], [1, 1], [0, -1]]
    assert tensors["other.weight"].tolist() == [[1, 1], [1, 1]]
    assert (tmp_path / "adapted" / "config.json").read_text() == "{}"


def test_an_adapter_of_another_model_is_refused(source: Path, tmp_path: Path) -> None:
    adapter = _adapter(**{"unknown.in": np.ones((1, 2)), "unknown.out": np.ones((3, 1))})
    with pytest.raises(KeyError):
        write_adapted_folder(source, adapter, tmp_path / "adapted")
