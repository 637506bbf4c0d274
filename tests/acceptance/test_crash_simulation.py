"""A program that appends, folds, replays and swaps dies at any of its writes; what it acknowledged is there afterwards.

`make test` takes a seeded part of the writes; `pytest tests/acceptance/test_crash_simulation.py --points 0` takes all.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from support.dying import NAMESPACES, Death, Life, program, script

from recollect.events.backends.log import EventLog
from recollect.events.backends.sqlite_log import SqliteLog
from recollect.events.envelope import RecordedEvent
from recollect.events.integrity.verify import verify
from recollect.projections.read_models.layout import namespace_folder
from recollect.projections.read_models.read_models import ReadModels


@pytest.mark.parametrize("death", ["kill -9", "power cut"])
def test_whatever_write_it_dies_at_nothing_acknowledged_is_missing_and_digests_agree(
    death: Death, tmp_path: Path, seed: int, points: int, caplog: pytest.LogCaptureFixture
) -> None:
    with program() as live:
        last = live(tmp_path / "whole", seed=seed).points
        every = range(1, last + 1)
        chosen = sorted(random.Random(seed).sample(every, points)) if points else every
        for point in chosen:
            folder = tmp_path / str(point)
            life = live(folder, seed=seed, point=point, death=death)
            try:
                assert life.died
                assert_recovered(folder, seed, life)
                # No read model was damaged and made anew behind our back.
                assert caplog.text == ""
            except BaseException as error:
                error.add_note(f"{death} at write {point} of {last}; again: --seed {seed} --points 0")
                raise
            shutil.rmtree(folder)
    print(f"{death} at {len(chosen)} of {last} writes: nothing acknowledged is missing, digests agree")


def test_the_power_cut_is_a_real_one_since_it_finds_a_log_that_does_not_sync(tmp_path: Path, seed: int) -> None:
    with program() as live:
        last = live(tmp_path / "whole", seed=seed).points

        def loses(point: int) -> bool:
            life = live(tmp_path / str(point), seed=seed, point=point, death="power cut", careless=True)
            log = SqliteLog(tmp_path / str(point) / "log.db")
            try:
                return not everything_told_is_stored(log, seed, life)
            finally:
                log.close()

        assert any(loses(point) for point in range(20, last + 1, 10))


def assert_recovered(folder: Path, seed: int, life: Life) -> None:
    log = SqliteLog(folder / "log.db")
    models = ReadModels(folder, log)
    # What was acknowledged is there, where it was said to be; the rest is whole or not there at all.
    assert everything_told_is_stored(log, seed, life)
    assert_whole(log)
    assert_digests_agree(log, models)
    # Who got no answer sends everything again: nothing is recorded twice, and nothing of it is missing.
    for namespace in NAMESPACES:
        sent = [draft for step in script(seed) if step.namespace == namespace for draft in step.drafts]
        log.append(namespace, sent)
        assert [event.id for event in log.read(namespace)] == [draft.id for draft in sent]
    assert_whole(log)
    for namespace in NAMESPACES:
        log.archive.seal(log, namespace)
        log.prune(namespace)
        models.replay(namespace)
    assert_whole(log)
    assert_digests_agree(log, models)
    for namespace in NAMESPACES:
        assert len([*namespace_folder(folder, namespace).glob("0*.db")]) <= 2
    models.close()
    log.close()


def everything_told_is_stored(log: EventLog, seed: int, life: Life) -> bool:
    steps = script(seed)
    stored = {namespace: {event.id: event.version for event in _all(log, namespace)} for namespace in NAMESPACES}
    return all(
        stored[steps[number].namespace].get(str(draft.id)) == version
        for number, versions in life.told.items()
        for draft, version in zip(steps[number].drafts, versions, strict=True)
    )


def assert_whole(log: EventLog) -> None:
    """Versions without gaps, batches that are all there or not at all, an intact chain."""
    for namespace in NAMESPACES:
        events = _all(log, namespace)
        assert [event.version for event in events] == list(range(1, len(events) + 1))
        batches = Counter(event.id.partition(".")[0] for event in events)
        assert all(batches[event.id.partition(".")[0]] == int(event.id.rpartition(".")[2]) for event in events)
        verdict = verify(log, namespace)
        assert verdict.is_intact, verdict
        assert (verdict.version, verdict.hash) == log.head(namespace)[1:3]


def assert_digests_agree(log: EventLog, models: ReadModels) -> None:
    for namespace in NAMESPACES:
        progress = models.catch_up(namespace)
        assert (progress.parked, progress.behind) == (None, 0)
        assert models.check(namespace).is_equal


def _all(log: EventLog, namespace: str) -> list[RecordedEvent]:
    return log.read(namespace, limit=10_000)
