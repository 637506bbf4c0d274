"""The lock files fit pyproject.toml, and every component has a licence that is allowed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from supply.bill_of_materials import Component
from supply.lock_files import DEV_LOCK, LOCK, dev_requirements, locked, requirements

ROOT = Path(__file__).parents[2]


def supply(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "ops" / "supply"), command], capture_output=True, text=True, check=False
    )


def test_the_lock_files_fit_pyproject() -> None:
    """After a change of a dependency: `python ops/supply lock`."""
    of_product, of_tests = locked(LOCK), locked(DEV_LOCK)
    assert of_product.keys().isdisjoint(of_tests)
    for lines, releases in ((requirements(), of_product), (dev_requirements(), of_product | of_tests)):
        for wanted in map(Requirement, lines):
            if canonicalize_name(wanted.name) == "torch":
                continue
            release = Requirement(releases[canonicalize_name(wanted.name)].strip())
            [pinned] = release.specifier
            assert wanted.specifier.contains(pinned.version), f"{wanted}: python ops/supply lock"


def test_every_locked_release_has_hashes_and_none_is_of_cuda() -> None:
    for path in (LOCK, DEV_LOCK):
        text = path.read_text(encoding="utf-8")
        releases = text.replace("\\\n", "").splitlines()
        assert len(releases) == len(locked(path))
        assert all("--hash=sha256:" in release for release in releases)
        assert "nvidia" not in text


def test_all_licences_are_allowed() -> None:
    done = supply("licences")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"psycopg", "all-MiniLM-L6-v2", "choice_weights.npz"} <= {
        line.split()[0] for line in done.stdout.splitlines()
    }


def test_a_licence_that_is_unknown_or_of_the_gpl_is_refused() -> None:
    for licence in ("", "GPL-3.0-only", "MIT AND AGPL-3.0-or-later", "Proprietary", "UNKNOWN"):
        assert not Component(name="one", version="1", licence=licence).is_allowed(), licence


def test_the_bill_of_materials_has_packages_with_their_address_and_weights_with_their_hash() -> None:
    document = json.loads(supply("sbom").stdout)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    by_name = {component["name"]: component for component in document["components"]}
    assert by_name["apsw"]["purl"].startswith("pkg:pypi/apsw@")
    # The value that the product checks before it loads the file.
    assert by_name["all-MiniLM-L6-v2"]["hashes"][0]["content"].startswith("53aa5117")
