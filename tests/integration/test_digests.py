"""What is live equals what replay gives: any history, any batches, whatever happens to the projector in between."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.events import Event, events
from support.postgres import new_database

from recollect.events.backends.log import EventLog
from recollect.events.backends.open_log import open_log
from recollect.events.envelope import RecordedEvent
from recollect.events.validation import drafts
from recollect.projections.projector import event_handlers, projector
from recollect.projections.projector.write_batch import WriteBatch
from recollect.projections.read_models.read_models import ReadModels

#: As many deaths on one event as are forgiven; the next one parks its namespace.
_DEATHS_MAX = projector.ATTEMPTS_MAX


class Step(NamedTuple):
    do: Literal["append", "advance", "crash", "die folding", "replay", "check"]
    #: How many events an advance folds, or after how many a projector dies.
    events: int = 0
    batch: tuple[Event, ...] = ()


_STEPS = st.one_of(
    st.lists(events(), min_size=1, max_size=12).map(lambda batch: Step("append", batch=tuple(batch))),
    st.integers(1, 6).map(lambda count: Step("advance", count)),
    st.integers(0, 5).map(lambda count: Step("die folding", count)),
    st.sampled_from([Step("crash"), Step("replay"), Step("check")]),
)


class KilledError(BaseException):
    """The projector's process is gone."""


class Memory:
    """A data folder in the hands of a program that is killed now and then.

    A kill leaves the files as they are, unfinished transactions and all: they are copied while the program holds them,
    and the next program works on the copy.
    """

    def __init__(self, folder: Path, namespace: str, open_log: Callable[[Path], EventLog]) -> None:
        self._folders = (folder / str(number) for number in itertools.count())
        self._namespace = namespace
        self._open_log = open_log
        self._deaths = 0
        self._appended = 0
        self._work_in(next(self._folders))

    def run(self, step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
        match step.do:
            case "append":
                self._log.append(self._namespace, drafts(list(step.batch)))
                self._appended += len(step.batch)
            case "advance":
                self._advance(step.events)
            case "crash":
                self._crash()
            case "die folding":
                self._die_folding(step.events, monkeypatch)
            case "replay":
                self._models.replay(self._namespace)
                self._deaths = 0
            case "check":
                self.check()

    def check(self) -> None:
        """Catch up; then checkpoint = head, live digest = replay digest, and the keyword index agrees."""
        progress = self._models.catch_up(self._namespace)
        self._deaths = 0
        assert (progress.version, progress.head, progress.parked) == (self._appended, self._appended, None)
        check = self._models.check(self._namespace)
        assert check.live_digest == check.replayed_digest
        assert check.search_equal
        assert check.version == self._appended

    def close(self) -> None:
        self._models.close()
        self._log.close()

    def _advance(self, count: int) -> None:
        before = self._models.progress(self._namespace).version
        models = ReadModels(self._folder, self._log, first_batch_events=count)
        # A passed deadline: one batch.
        after = models.catch_up(self._namespace, deadline=0.0).version
        models.close()
        assert after - before <= count
        assert after > before or after == self._appended
        self._deaths = 0 if after > before else self._deaths

    def _crash(self) -> None:
        self._left = next(self._folders)
        self._leave_files()
        self.close()
        self._work_in(self._left)

    def _die_folding(self, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Fold `count` events of a batch and die before the next one, in the middle of the transaction."""
        if self._deaths == _DEATHS_MAX:
            return
        left = iter(range(count))
        self._left = next(self._folders)
        died = False

        def fold(changes: WriteBatch, event: RecordedEvent) -> None:
            nonlocal died
            if next(left, None) is None:
                changes.write(event.version)
                died = True
                self._leave_files()
                raise KilledError
            event_handlers.apply_event(changes, event)

        with monkeypatch.context() as patch:
            # The process is killed in the middle of a batch, which a test can only pretend.
            patch.setattr(projector, "apply_event", fold)
            try:
                self._models.catch_up(self._namespace)
            except KilledError:
                self._deaths += 1
        if died:
            self.close()
            self._work_in(self._left)

    def _leave_files(self) -> None:
        # The index of a WAL is shared memory, which a kill takes away.
        shutil.copytree(self._folder, self._left, ignore=shutil.ignore_patterns("*-shm"))

    def _work_in(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._log = self._open_log(folder)
        self._models = ReadModels(folder, self._log)


@pytest.fixture(scope="module")
def database(request: pytest.FixtureRequest) -> str:
    return new_database(request.getfixturevalue("postgres_url"))


_namespaces = (f"n{number}" for number in itertools.count())


def run(folder: Path, open_log: Callable[[Path], EventLog], steps: list[Step]) -> None:
    memory = Memory(folder, next(_namespaces), open_log)
    try:
        with pytest.MonkeyPatch.context() as patch:
            for step in steps:
                memory.run(step, patch)
            memory.check()
    finally:
        memory.close()
        shutil.rmtree(folder)


@given(steps=st.lists(_STEPS, min_size=2, max_size=15))
def test_live_equals_replay_whatever_is_interleaved_on_sqlite(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    run(tmp_path_factory.mktemp("digests"), lambda folder: open_log(f"sqlite:///{folder / 'log.db'}"), steps)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(_STEPS, min_size=2, max_size=15))
def test_live_equals_replay_whatever_is_interleaved_on_postgresql(
    tmp_path_factory: pytest.TempPathFactory, database: str, steps: list[Step]
) -> None:
    run(tmp_path_factory.mktemp("digests"), lambda _: open_log(database), steps)
