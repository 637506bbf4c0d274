"""Adapter file: the low-rank weights that a trained sentence encoder adds to the default embedding model.

Each matrix of the model gets the product of two narrow ones (LoRA, https://arxiv.org/abs/2106.09685), which a file of
.8 MB holds. `ops/train/reader` makes it.
"""

from __future__ import annotations

import shutil
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_WEIGHTS = "model.safetensors"


def write_adapted_folder(source: Path, adapter: bytes, folder: Path) -> None:
    """Write the model of the folder `source`, with an adapter added to its weights, as another folder of 90 MB.

    Raises:
        KeyError: the adapter belongs to another model.
    """
    safetensors: Any = import_module("safetensors.numpy")
    tensors: dict[str, NDArray[Any]] = safetensors.load_file(source / _WEIGHTS)
    with np.load(BytesIO(adapter)) as arrays:
        for name in {name.rpartition(".")[0] for name in arrays}:
            wide, tall = (arrays[f"{name}.{part}"].astype(np.float32) for part in ("in", "out"))
            tensors[f"{name}.weight"] = tensors[f"{name}.weight"] + tall @ wide
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(_WEIGHTS))
    safetensors.save_file(tensors, folder / _WEIGHTS, {"format": "pt"})
