from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Generator
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from support.postgres import URL_VARIABLE, PostgresServer
from support.redis import RedisServer
from support.server import Server, serving
from support.static_model import make_static_model
from support.tiny_model import make_tiny_model

from recollect.events.backends.sqlite_log import SqliteLog
from recollect.projections.embeddings.embedder import SentenceEmbedder, open_embedder
from recollect.projections.embeddings.reading_encoder import Embed, reading_embed
from recollect.projections.projection_settings import DEFAULT_MODEL
from recollect.projections.read_models.history import History
from recollect.projections.read_models.read_models import ReadModels


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rounds", type=int, default=2, help="rounds of the crash tests (default 2)")
    parser.addoption("--points", type=int, default=6, help="writes that the crash simulation dies at; 0: all")
    parser.addoption("--outage", type=float, default=2.0, help="seconds that Redis is away in the chaos tests")
    parser.addoption("--seed", type=int, default=1, help="what the crash and tampering tests draw from (default 1)")


def _has_room(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= _MEMORY_BYTES_MIN


# An example takes as long as the machine is busy: without a profile, hypothesis fails one that takes 200 ms. Few
# examples: each run draws others, and `make test-long` draws a hundred.
hypothesis.settings.register_profile("short", deadline=None, max_examples=15)
hypothesis.settings.register_profile("long", deadline=None, max_examples=100)
hypothesis.settings.load_profile("short")

#: A folder in memory, and the bytes that have to be free there: three times what the tests have used at once.
_MEMORY_FOLDER = Path("/dev/shm")
_MEMORY_BYTES_MIN = 4 << 30


#: The code and the adapters that converted models are made by, and where the tests keep these models.
_MODEL_SOURCES = Path(__file__).parents[1] / "projections" / "embeddings"
_MODEL_CACHES = Path(__file__).parents[1] / "build" / "test-models"


def _model_cache() -> Path:
    """Return the folder of the converted models: converting the default one and its encoders takes 20 s of a run.

    They are converted again when the code or the adapters change, or a library that makes them.
    """
    libraries = [library for library in distributions() if library.name in ("openvino", "torch", "transformers")]
    digest = sha256(" ".join(sorted(f"{library.name} {library.version}" for library in libraries)).encode())
    for path in sorted([*_MODEL_SOURCES.glob("*.py"), *_MODEL_SOURCES.glob("*.npz")]):
        digest.update(path.read_bytes())
    cache = _MODEL_CACHES / digest.hexdigest()[:16]
    for old in set(_MODEL_CACHES.glob("*")) - {cache}:
        shutil.rmtree(old, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests a cache of models of their own, which runs share, and temporary files in memory.

    The tests sync files to disk thousands of times; what a power cut leaves is simulated, and the same in memory.
    """
    if not hasattr(config, "workerinput"):
        if "TMPDIR" not in os.environ and _has_room(_MEMORY_FOLDER):
            os.environ["TMPDIR"] = str(_MEMORY_FOLDER)
            tempfile.tempdir = None
        # The processes that the tests start would each compile all modules again, where an image sets this variable.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        # platformdirs reads it on Linux; the processes that the tests start inherit it.
        os.environ["XDG_CACHE_HOME"] = str(_model_cache())


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    rounds: Any = request.config.getoption("--rounds")
    return rounds


@pytest.fixture
def points(request: pytest.FixtureRequest) -> int:
    points: Any = request.config.getoption("--points")
    return points


@pytest.fixture
def outage_seconds(request: pytest.FixtureRequest) -> float:
    seconds: Any = request.config.getoption("--outage")
    return seconds


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """What the test's chance begins with; a failure shows it."""
    seed: Any = request.config.getoption("--seed")
    print(f"--seed {seed}")
    return seed


@pytest.fixture
def log(tmp_path: Path) -> Generator[SqliteLog]:
    log = SqliteLog(tmp_path / "log.db")
    yield log
    log.close()


@pytest.fixture
def models(tmp_path: Path, log: SqliteLog) -> Generator[ReadModels]:
    models = ReadModels(tmp_path, log)
    yield models
    models.close()


@pytest.fixture
def history(tmp_path: Path, log: SqliteLog, models: ReadModels) -> Generator[History]:
    history = History(tmp_path, log, models)
    yield history
    history.close()


@pytest.fixture(scope="session")
def shared_postgres() -> Generator[PostgresServer]:
    """A PostgreSQL server for all tests."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def postgres_server() -> Generator[PostgresServer]:
    """A PostgreSQL server that the test may kill: with few databases it is back soon."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> str:
    """A PostgreSQL server to make databases on."""
    url = os.environ.get(URL_VARIABLE)
    return url or request.getfixturevalue("shared_postgres").url


@pytest.fixture(scope="session")
def redis_server() -> Generator[RedisServer]:
    """A Redis server that tests share one after the other; they may flush it."""
    server = RedisServer()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    """A server without a model that tests share; each writes to namespaces of its own."""
    with serving(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A file system of 1 MiB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let the tests mount a small disk")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=False)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a real model with 32 dimensions."""
    return str(make_tiny_model(tmp_path_factory.mktemp("tiny"), seed=1))


@pytest.fixture(scope="session")
def static_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a real model of static token vectors, with 256 dimensions."""
    return make_static_model(tmp_path_factory.mktemp("static") / "model")


@pytest.fixture(scope="session")
def embedder() -> SentenceEmbedder:
    """The default embedding model, which the memories of a test process share while this fixture keeps it."""
    embedder = open_embedder(DEFAULT_MODEL)
    assert isinstance(embedder, SentenceEmbedder)
    # What the libraries of the model warn about among themselves is not ours to fix.
    with warnings.catch_warnings(action="ignore"):
        embedder.start()
        assert embedder.wait_ready(300), embedder.reason
    return embedder


@pytest.fixture(scope="session")
def embed(embedder: SentenceEmbedder) -> Embed:
    """Return the embeddings of sentences by the reading encoder, as the extraction job does."""
    embed = reading_embed(embedder)
    assert embed is not None
    return embed


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of another one: the same in all but its weights."""
    return str(make_tiny_model(tmp_path_factory.mktemp("other"), seed=2))
