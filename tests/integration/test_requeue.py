"""Dead letters on their way back into the queues: none is lost, whatever ends between sending and removing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.events import message
from support.redis import RedisServer

from recollect import Recollect
from recollect.api.operations.dead_letters import requeue
from recollect.api.settings import load_settings
from recollect.jobs.queue.run_store import DeadLetter
from recollect.jobs.queue.sqlite_run_store import SqliteRunStore

LETTER = DeadLetter(id="x1", queue="think", actor="think", arguments=("a",), failed_at_us=1, error="no disk")

#: Requeues in a process that is killed when the letter would be removed, after its message was sent.
_KILLED = """
import os, signal, sys
from pathlib import Path
from recollect import Recollect
from recollect.api.operations.dead_letters import requeue
from recollect.api.settings import load_settings

settings = load_settings(data=Path(sys.argv[1]), broker=sys.argv[2], embedding_model="none")
with Recollect(settings=settings, workers=False) as memory:
    memory.parts.run_store.pop_dead_letter = lambda letter_id: os.kill(os.getpid(), signal.SIGKILL)
    requeue(memory.parts, None)
"""


@pytest.mark.parametrize("harm", [b"garbage " * 1_000, b""])
def test_a_damaged_file_of_runs_is_put_aside_and_a_new_one_is_begun(tmp_path: Path, harm: bytes) -> None:
    path = tmp_path / "jobs.db"
    store = SqliteRunStore(path)
    assert store.claim("sweep", 1, 1, 1)
    store.close()
    path.write_bytes(harm)
    store = SqliteRunStore(path)
    assert store.claim("sweep", 1, 1, 1)
    assert [run.job for run in store.runs()] == ["sweep"]
    store.close()
    aside = tmp_path / "jobs.db.damaged"
    assert (aside.read_bytes() if aside.exists() else b"") == harm


@pytest.fixture(params=["file", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "file":
        return "memory://"
    server: RedisServer = request.getfixturevalue("redis_server")
    server.flush()
    return server.url


def opened(folder: Path, url: str) -> Recollect:
    return Recollect(settings=load_settings(data=folder, broker=url, embedding_model="none"), workers=False)


def test_a_kill_between_sending_and_removing_leaves_the_letter(tmp_path: Path, url: str) -> None:
    with opened(tmp_path, url) as memory:
        memory.append("a", message("I live in Porto"))
        memory.parts.run_store.add_dead_letter(LETTER)
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path), url], check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    with opened(tmp_path, url) as memory:
        assert memory.parts.run_store.dead_letters() == [LETTER]
        # It was worked off, or sent, before the kill; a second time does no harm.
        assert requeue(memory.parts, None) == 1
        assert memory.parts.run_store.dead_letters() == []
        if url == "memory://":
            assert [fact["object"] for fact in memory.facts("a")["items"]] == ["Porto"]


def test_a_letter_that_fails_again_or_cannot_be_sent_stays(tmp_path: Path, url: str) -> None:
    class Refused(Exception):
        pass

    def refuse(*_: object, **__: object) -> None:
        raise Refused

    with opened(tmp_path, url) as memory:
        memory.parts.run_store.add_dead_letter(LETTER)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dramatiq.Actor.send", refuse)
            patch.setattr("recollect.jobs.queue.actors.LIVE_JOBS", {"broken": type("Broken", (), {"work": refuse})})
            with pytest.raises(Refused):
                requeue(memory.parts, "x1")
        assert memory.parts.run_store.dead_letters() == [LETTER]
        assert requeue(memory.parts, "x1") == 1
        assert requeue(memory.parts, "x1") == 0
