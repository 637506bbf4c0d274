from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: A program that uses the package; each result is compared with the type that it should have.
PROGRAM = ROOT / "tests" / "data" / "typed_user.py"


def test_the_wheel_built_from_the_sdist_holds_one_package_with_all_its_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr

    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"recollect"}
    for folder in ("events", "projections", "jobs", "api"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".sql", ".html", ".css", ".js", ".svg"):
                assert f"recollect/{path.relative_to(ROOT)}" in names
    assert "recollect/py.typed" in names

    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    code = (
        f"import sys; sys.path.insert(0, {str(installed)!r}); import recollect.events.backends.sqlite_log as it; "
        f"from pathlib import Path; it.SqliteLog(Path({str(tmp_path)!r}) / 'log.db').close(); print(it.__file__)"
    )
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(str(installed))

    # A type checker of a user finds a type for every result; strict, so that Any and what is unknown are errors.
    user = tmp_path / "user"
    user.mkdir()
    shutil.copy(PROGRAM, user)
    config = {"extraPaths": [str(installed)], "typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (user / "pyrightconfig.json").write_text(json.dumps(config))
    pyright = [Path(sys.executable).with_name("pyright"), "--pythonpath", sys.executable, "--project", str(user)]
    checked = subprocess.run(pyright, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout
