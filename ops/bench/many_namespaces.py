"""Very many namespaces of 20 messages each: some are made as a server makes them, the others are copies of these.

Every namespace has its own events in the log, appended through the log's interface, and its own read model, which
equals a replay (`check`). Namespaces with the same messages have the same vectors. Making a hundred thousand of them as
a server does would take hours of embedding and extraction, whose costs are measured on the first ones.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import texts
from msgspec import Struct, field
from msgspec.structs import replace

from recollect.api.memory.recollect import Recollect
from recollect.api.settings import load_settings
from recollect.events.envelope import DAY_US, EventDraft, datetime_of, now_us
from recollect.events.storage.namespace_folder import folder_name
from recollect.events.validation import draft, drafts
from recollect.jobs.queue.due_namespaces import finished_state
from recollect.jobs.queue.registry import LIVE_JOBS, SCHEDULED_JOBS
from recollect.jobs.queue.run_store import Finished
from recollect.projections.read_models.layout import generation_path, generations, namespace_folder

MESSAGES = 20
#: Different conversations; each of them costs a second of embedding and extraction.
TEMPLATES = 20
#: The file of a folder with the number of its templates.
_TEMPLATES_FILE = "bench-templates"
#: Appends that wait for one commit together.
_WRITERS = 16
#: Namespaces from this number on share the file of vectors of their template, so that the disk has room for them.
OWN_VECTORS = 20_000
#: The nights whose work is recorded as done.
_NIGHTLY = ("compact", "repair")


class Template(Struct):
    """A namespace that was made as a server makes it, and what its copies are made of."""

    number: int
    events: list[EventDraft]
    hash: bytes
    model: bytes = b""
    states: list[tuple[str, Finished]] = field(default_factory=list[tuple[str, Finished]])


def name_of(number: int) -> str:
    """Return the name of a namespace; all names have one length, so that a read model is copied by replacing bytes."""
    return f"user-{number:08}"


def conversation_of(folder: Path, number: int) -> list[dict[str, Any]]:
    """Return the events that the namespace `number` of a folder was made of."""
    templates = int((folder / _TEMPLATES_FILE).read_text(encoding="ascii"))
    return texts.conversation(number % templates, MESSAGES)


def fill(folder: Path, namespaces: int) -> dict[str, float]:
    """Make the namespaces; return the seconds of processor time that one of them costs, by part."""
    cost: dict[str, float] = {}
    (folder / _TEMPLATES_FILE).write_text(str(TEMPLATES), encoding="ascii")
    with Recollect(folder, settings=load_settings(), workers=False) as memory:
        memory.parts.vectors.embedder.start()
        memory.parts.vectors.embedder.wait_ready(600)
        # Computed once a data folder, and so no cost of a namespace.
        memory.parts.vectors.basis()
        made = [_make(memory, number, cost) for number in range(TEMPLATES)]
        for number in range(TEMPLATES):
            _finish_night(memory, made[number], cost)
        memory.parts.read_models.close()
        for template in made:
            # Closes the file, so that nothing is left in its WAL.
            memory.parts.vectors.drop(name_of(template.number))
            template.model = _model_bytes(folder, template.number)
        _record_nights(memory, made, range(TEMPLATES))
        started, cpu = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(_WRITERS) as writers:
            for first in range(TEMPLATES, namespaces, 1_000):
                numbers = range(first, min(namespaces, first + 1_000))
                list(writers.map(partial(_copy, memory, made), numbers))
                _record_nights(memory, made, numbers)
                if first % 10_000 == TEMPLATES:
                    print(f"  {numbers[-1] + 1:,} after {time.perf_counter() - started:.0f} s", flush=True)
        cost["copy"] = (time.process_time() - cpu) / max(1, namespaces - TEMPLATES) * TEMPLATES
        for number in (TEMPLATES, namespaces - 1):
            if number >= TEMPLATES:
                assert memory.parts.read_models.check(name_of(number)).is_equal
    return {part: seconds / TEMPLATES for part, seconds in cost.items()}


@contextmanager
def _timed(cost: dict[str, float], part: str) -> Generator[None]:
    started = time.process_time()
    yield
    cost[part] = cost.get(part, 0.0) + time.process_time() - started


def _make(memory: Recollect, number: int, cost: dict[str, float]) -> Template:
    """Append, project, embed and extract a conversation of two days ago, as a server and its workers do."""
    name, parts = name_of(number), memory.parts
    begun_us = now_us() - 3 * DAY_US
    part = texts.conversation(number, MESSAGES)
    said = drafts([event | {"occurred_at": datetime_of(begun_us + at * 20_000_000)} for at, event in enumerate(part)])
    with _timed(cost, "append"):
        parts.log.append(name, said)
    with _timed(cost, "project"):
        parts.read_models.catch_up(name)
    with _timed(cost, "embed"):
        parts.vectors.embed_new(name)
    with _timed(cost, "extract"):
        for job in LIVE_JOBS.values():
            job.work(parts.job_context, name, now_us())
    return Template(number=number, events=[], hash=b"")


def _finish_night(memory: Recollect, template: Template, cost: dict[str, float]) -> None:
    """Run the first night of a template, and keep its events and the states that let the next night pass it by."""
    name, parts = name_of(template.number), memory.parts
    at_us = now_us()
    for job in _NIGHTLY:
        head = parts.log.head(name)
        with _timed(cost, job):
            events = SCHEDULED_JOBS[job].work(parts.job_context, name, at_us)
            parts.vectors.embed_new(name)
            state = finished_state(parts.job_context, job, head, events, at_us)
        assert state is not None
        template.states.append((job, state))
    # `repair` saw the events of the compaction, so its state and that of the compaction have the same head.
    for event in parts.log.read(name, limit=1_000):
        data = {"id": event.id, "type": event.type, "payload": event.data(), "session_id": event.session_id}
        optional = {"actor": event.actor, "causation_id": event.causation_id, "correlation_id": event.correlation_id}
        occurred = {"occurred_at": datetime_of(event.occurred_at_us)}
        template.events.append(
            draft({key: value for key, value in (data | optional | occurred).items() if value is not None})
        )
    template.hash = parts.log.head(name).hash
    parts.backlog.note_read(name, parts.log.head(name).version)


def _model_bytes(folder: Path, number: int) -> bytes:
    """Return the file of a read model; nothing is left in its WAL."""
    own = namespace_folder(folder, name_of(number))
    path = generation_path(own, generations(own)[-1])
    with closing(apsw.Connection(str(path))) as connection:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    return path.read_bytes()


def _copy(memory: Recollect, made: list[Template], number: int) -> None:
    """Append the events of a template to another namespace, and write the read model that a replay of them makes."""
    name, data = name_of(number), memory.parts.settings.storage.data
    template = made[number % len(made)]
    memory.parts.log.append(name, template.events)
    head = memory.parts.log.head(name)
    own = namespace_folder(data, name)
    own.mkdir(parents=True)
    model = template.model.replace(name_of(template.number).encode(), name.encode()).replace(template.hash, head.hash)
    generation_path(own, 1).write_bytes(model)
    vectors = namespace_folder(data, name_of(template.number)) / "vectors.db"
    (shutil.copy if number < OWN_VECTORS else os.link)(vectors, own / "vectors.db")


def _record_nights(memory: Recollect, made: list[Template], numbers: range) -> None:
    """Record for copies that the nights have nothing to do, as the templates have."""
    for number in numbers:
        memory.parts.backlog.note_read(name_of(number), len(made[number % TEMPLATES].events))
    for at, (job, _) in enumerate(made[0].states):
        states = [
            replace(made[number % TEMPLATES].states[at][1], namespace_key=folder_name(name_of(number)))
            for number in numbers
        ]
        memory.parts.run_store.record_finished(job, states)
