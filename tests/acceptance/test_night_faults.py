"""A night that is killed between any two of its writes leaves what one that was not disturbed leaves."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.dying_night import DIED, SAID_AT, settings_of
from support.events import message
from support.read_models import connection_of
from support.redis import RedisServer
from support.server import shims

from recollect import Recollect
from recollect.projections.schema.content_hash import content_hash

NAMESPACES = ("a", "b", "c")
_SAID = (
    "I live in Porto.",
    "My dog is called Rex.",
    "We painted the kitchen green.",
    "I moved to Lisbon.",
    "I love green tea.",
    "I prefer black tea now.",
)
#: Writes before which the nights of the short test die.
_SAMPLE = 4


class Left(NamedTuple):
    """What the nights have left."""

    #: Type, id and payload of the events of each namespace. Those of an erasure have random ids.
    events: dict[str, list[tuple[Any, ...]]]
    #: The content hash of each read model.
    hashes: dict[str, str]


class Nights:
    """Memories with the same log, whose nights run in processes of their own."""

    def __init__(self, folder: Path, broker: str, redis: RedisServer | None) -> None:
        self._folder, self._broker, self._redis = folder, broker, redis
        self._number = 0
        with Recollect(settings=settings_of(folder / "base", "memory://"), workers=False) as memory:
            for name in NAMESPACES:
                for at, text in enumerate(_SAID * 2):
                    said = message(text, id=f"{name}:{at}", name=("Ann", "Bob")[at % 2], session_id=f"s{at // 6}")
                    memory.append(name, said | {"occurred_at": (SAID_AT + timedelta(minutes=at)).isoformat()})

    def new(self) -> Path:
        """Return the folder of a memory whose nights have not begun."""
        if self._redis is not None:
            self._redis.flush()
        self._number += 1
        return Path(shutil.copytree(self._folder / "base", self._folder / str(self._number)))

    def run(self, folder: Path, point: int = 0) -> bool:
        """Run the nights, with a death before the write `point`; return whether they came to their end."""
        script = Path(__file__).parents[1] / "support" / "dying_night.py"
        command = [str(shims() / "python"), str(script), str(folder), self._broker, str(point)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, DIED), done.stdout + done.stderr
        return done.returncode == 0

    def points(self, folder: Path) -> int:
        """Return the number of writes of the nights in a folder, whose last life has come to their end."""
        return int((folder / "points").read_text())

    def left(self, folder: Path) -> Left:
        """Return what the nights have left in a folder; the read models must be those of a replay."""
        events: dict[str, list[tuple[Any, ...]]] = {}
        hashes: dict[str, str] = {}
        with Recollect(settings=settings_of(folder, self._broker), workers=False) as memory:
            assert [run.errors for run in memory.parts.run_store.runs()] == [0, 0, 0]
            for name in NAMESPACES:
                read = memory.parts.log.read(name, after=0, limit=1_000)
                events[name] = [
                    (event.type, None, None) if event.type.endswith("erased") else (event.type, event.id, event.data())
                    for event in read
                ]
                memory.parts.read_models.catch_up(name)
                assert memory.parts.read_models.check(name).is_equal
                with memory.parts.read_models.reading(name) as snapshot:
                    hashes[name] = content_hash(connection_of(snapshot))
        return Left(events, hashes)


@pytest.fixture(params=["memory", "redis"])
def nights(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Nights]:
    if request.param == "memory":
        yield Nights(tmp_path, "memory://", None)
    else:
        server: RedisServer = request.getfixturevalue("redis_server")
        yield Nights(tmp_path, server.url, server)


@pytest.mark.long
def test_a_night_that_dies_again_and_again_each_time_one_write_later_leaves_what_an_undisturbed_one_does(
    tmp_path: Path,
) -> None:
    # On Redis the fourth death of one message makes it a dead letter, whose work the next night does.
    nights = Nights(tmp_path, "memory://", None)
    calm = nights.new()
    assert nights.run(calm)
    expected = nights.left(calm)
    killed, deaths = nights.new(), 0
    while not nights.run(killed, deaths + 1):
        deaths += 1
    print(f"{deaths} deaths on the way; {nights.points(calm)} writes without them")
    assert nights.left(killed) == expected


def test_a_night_that_dies_before_one_of_its_writes_leaves_what_an_undisturbed_one_does(
    nights: Nights, seed: int
) -> None:
    kill_before(nights, seed, _SAMPLE)


@pytest.mark.long
def test_a_night_that_dies_before_each_of_its_writes_leaves_what_an_undisturbed_one_does(nights: Nights) -> None:
    kill_before(nights, 0, None)


def kill_before(nights: Nights, seed: int, sample: int | None) -> None:
    calm = nights.new()
    assert nights.run(calm)
    expected = nights.left(calm)
    every = range(1, nights.points(calm) + 1)
    chosen = every if sample is None else sorted(random.Random(seed).sample(every, sample))
    for point in chosen:
        folder = nights.new()
        assert not nights.run(folder, point)
        assert nights.run(folder)
        try:
            assert nights.left(folder) == expected
        except AssertionError as error:
            error.add_note(f"death before write {point} of {len(every)}; --seed {seed}")
            raise
        shutil.rmtree(folder)
    print(f"death before {len(chosen)} of {len(every)} writes: the log and the read models are the same")
