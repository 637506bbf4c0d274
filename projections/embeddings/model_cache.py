"""Model cache: data computed once for each embedding model, kept on disk for all data folders.

- The model as OpenVINO has converted it. With it a process has the default model after one second instead of eight,
  in 200 MB instead of 700, since it needs no PyTorch. Its weights are those in use, int8 (23 MB) or float32 (90 MB).
- The basis of token codes, which takes two seconds.

The cache is in the user's cache folder (`~/.cache/recollect` on Linux; `XDG_CACHE_HOME` moves it) and may be removed at
any time. A model with other contents, or another version of OpenVINO, has an entry of its own.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_cache_path
from pydantic import TypeAdapter

from recollect.projections.embeddings.model_runtime import end_with_program
from recollect.projections.embeddings.offset_tokenizer import TokenizerSpec
from recollect.projections.embeddings.openvino_runtime import ConvertedModel, Probe, read_graph, save_graph

_logger = logging.getLogger(__name__)

#: Raised when the files of an entry change their meaning.
_FORMAT = 4
#: Entries that are kept, the last used first, 23 or 90 MB each: the default model with its encoders, and as many of
#: another version or model.
_ENTRIES_MAX = 10

_PROBES = TypeAdapter(list[Probe])


def read_converted(fingerprint: str, *, int8: bool) -> ConvertedModel | None:
    """Return the converted model of a fingerprint, with int8 or float32 weights.

    Returns:
        None when there is none, or a damaged one.
    """
    end_with_program()
    folder = _folder(fingerprint, int8=int8)
    if not folder.is_dir():
        return None
    with suppress(OSError):
        # `_remove_old` keeps what was used last.
        os.utime(folder)
    try:
        return ConvertedModel(
            read_graph(str(folder / "model.xml")),
            TokenizerSpec.model_validate_json((folder / "tokenizer.json").read_bytes()),
            _PROBES.validate_json((folder / "probes.json").read_bytes()),
            int8,
        )
    except Exception:
        _logger.warning("a converted model is damaged and is made again: %s", folder, exc_info=True)
        return None


def write_converted(fingerprint: str, converted: ConvertedModel) -> None:
    """Write a converted model, in place of one that is there; a folder that cannot be written costs only the cache."""
    folder = _folder(fingerprint, int8=converted.int8)
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-", ignore_cleanup_errors=True) as new:
            save_graph(converted.graph, str(Path(new) / "model.xml"))
            (Path(new) / "tokenizer.json").write_text(converted.tokenizer.model_dump_json(), encoding="utf-8")
            (Path(new) / "probes.json").write_bytes(_PROBES.dump_json(converted.probes))
            shutil.rmtree(folder, ignore_errors=True)
            # Another process may have written the same in the meantime.
            with suppress(OSError):
                Path(new).rename(folder)
        _remove_old(folder.parent)
    except OSError as error:
        _logger.info("the converted model is not kept in %s: %s", folder.parent, error)


def basis_path(fingerprint: str) -> Path:
    """Return the path of the basis of token codes of a model."""
    return user_cache_path("recollect") / "bases" / f"{fingerprint}.npy"


def _remove_old(cache: Path) -> None:
    """Remove all entries but those used last, and so in time what a killed process left half written."""
    folders = sorted(cache.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in folders[_ENTRIES_MAX:]:
        shutil.rmtree(folder, ignore_errors=True)


def _folder(fingerprint: str, *, int8: bool) -> Path:
    contents = f"{_FORMAT} {fingerprint} {version('openvino')}{' int8' if int8 else ''}"
    name = sha256(contents.encode()).hexdigest()[:32]
    return user_cache_path("recollect") / "models" / name
