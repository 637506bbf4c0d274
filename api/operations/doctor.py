"""Doctor: checks an installation and its data folder from the outside, each with what to do when it fails.

The checks run with a server and without one, change nothing, and show no secret: addresses are without passwords.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import islice
from typing import Any, Literal

from msgspec import Struct

from recollect.api.operations.disk_usage import free_bytes
from recollect.api.settings import Settings
from recollect.events.backends.open_log import sqlite_path
from recollect.events.counted_nouns import counted
from recollect.events.encryption.key_store import open_key_store
from recollect.events.errors import RecollectError, short_text
from recollect.events.late_pattern import late_pattern
from recollect.events.storage.database import is_full

Status = Literal["ok", "warning", "failed", "skipped"]

#: The packages whose versions a report of a problem needs.
_PACKAGES = (
    "recollect",
    "apsw",
    "cryptography",
    "dramatiq",
    "duckdb",
    "fastapi",
    "numpy",
    "numkong",
    "openvino",
    "psycopg",
    "pydantic",
    "redis",
    "sentence-transformers",
    "torch",
    "uvicorn",
)
#: Packages that are not on every platform.
_OPTIONAL = frozenset(("openvino",))
#: Seconds in which another server has to answer.
_ANSWER_SECONDS = 3.0
#: Seconds that a model may take to load; a model that has to be downloaded takes longer.
_MODEL_SECONDS_MAX = 120.0
#: Namespaces and their last events whose hashes are verified: a second at most.
_SAMPLE_NAMESPACES, _SAMPLE_EVENTS = 3, 1_000
#: Files that an open read model, with its vectors, has open while some threads read it.
_FILES_A_MODEL = 6
#: Files besides those of read models and connections: the log, libraries, the queue.
_FILES_BESIDE = 100
#: Seconds that a clock may be ahead, by the newest events of the log.
_AHEAD_SECONDS = 60
_CREDENTIALS = late_pattern(r"(?<=://)[^\s/@]{0,400}@")


class Check(Struct, frozen=True, kw_only=True):
    """The result of one check."""

    name: str
    status: Status
    #: What was checked and what came of it.
    detail: str
    #: What to do; empty when nothing is to do.
    hint: str = ""


def diagnose(settings: Settings, *, loads_model: bool = True) -> Iterator[Check]:
    """Yield the result of each check, in the order in which a start depends on them.

    Parameters:
        loads_model: whether to load the embedding model, which takes seconds and memory.
    """
    checks: dict[str, Callable[[Settings], Check]] = {
        "python": _python,
        "packages": _packages,
        "folder": _folder,
        "disk": _disk,
        "files": _files,
        "keys": _keys,
        "postgresql": _postgresql,
        "log": _log,
        "broker": _broker,
        "openvino": _openvino,
        "model": _model if loads_model else _model_left_out,
    }
    for name, check in checks.items():
        try:
            yield check(settings)
        except Exception as error:
            # The other checks still run. Errors of our own say what to do.
            text = str(error) if isinstance(error, RecollectError) else short_text(error)
            hint = "read the message; the checks above may name the cause"
            yield Check(name=name, status="failed", detail=without_password(text), hint=hint)


def without_password(text: str) -> str:
    """Return a text whose addresses have no user and password."""
    return _CREDENTIALS.sub("…@", text)


def _python(_: Settings) -> Check:
    text = f"{platform.python_version()} on {platform.platform(terse=True)}, {os.cpu_count()} processors"
    return Check(name="python", status="ok", detail=text)


def _packages(_: Settings) -> Check:
    versions: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    missing = [name for name, version in versions.items() if version is None and name not in _OPTIONAL]
    text = ", ".join(f"{name} {version or 'missing'}" for name, version in versions.items())
    hint = "install them again: pip install --force-reinstall recollect" if missing else ""
    return Check(name="packages", status="failed" if missing else "ok", detail=text, hint=hint)


def _folder(settings: Settings) -> Check:
    data = settings.storage.data
    if not data.exists():
        parent = next(folder for folder in data.absolute().parents if folder.exists())
        writable = os.access(parent, os.W_OK)
        return Check(
            name="folder",
            status="ok" if writable else "failed",
            detail=f"{data} does not exist yet; the first event creates it",
            hint="" if writable else f"{parent} cannot be written: name another folder with --data",
        )
    if not data.is_dir() or not os.access(data, os.R_OK | os.W_OK | os.X_OK):
        hint = f"make it a folder that this user owns: chown -R $(id -un) {data}; chmod 700 {data}"
        return Check(name="folder", status="failed", detail=f"{data} cannot be read and written", hint=hint)
    others = [file.name for file in (data, *islice(data.iterdir(), 1_000)) if file.lstat().st_mode & 0o077]
    if others and os.name == "posix":
        detail = f"{data}: other users of this machine can read {', '.join(others[:5])}"
        return Check(name="folder", status="warning", detail=detail, hint=f"chmod -R go-rwx {data}")
    return Check(name="folder", status="ok", detail=f"{data.resolve()}, readable by its owner alone")


def _disk(settings: Settings) -> Check:
    data = settings.storage.data.absolute()
    free = free_bytes(next(folder for folder in (data, *data.parents) if folder.exists()))
    least = settings.storage.disk_free_bytes_min
    if free is None:
        return Check(name="disk", status="skipped", detail="the file system does not tell its free space")
    detail = f"{free / (1 << 30):.1f} GiB are free"
    if is_full(data):
        hint = "make room; nothing can be recorded, and what is recorded stays"
        return Check(name="disk", status="failed", detail=f"the disk of {data} is full", hint=hint)
    if free < least:
        hint = "make room, or lower RECOLLECT_DISK_FREE_BYTES_MIN; appends fail on a full disk"
        return Check(name="disk", status="failed", detail=f"{detail}, less than {least >> 20} MiB", hint=hint)
    return Check(name="disk", status="ok", detail=detail)


def _files(settings: Settings) -> Check:
    try:
        import resource  # noqa: PLC0415
    except ImportError:
        return Check(name="files", status="skipped", detail="this system has no limit of open files")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.read_models.open_models_max * _FILES_A_MODEL + settings.server.connections_max + _FILES_BESIDE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        hint = f"raise it before the start, such as: ulimit -n {max(wanted, 4_096)} (the hard limit is {hard}); or "
        hint += "lower RECOLLECT_OPEN_MODELS_MAX and RECOLLECT_CONNECTIONS_MAX"
        detail = f"{soft} files may be open; the settings may need {wanted}"
        return Check(name="files", status="warning", detail=detail, hint=hint)
    return Check(name="files", status="ok", detail=f"{soft} files may be open, {wanted} may be needed")


def _keys(settings: Settings) -> Check:
    store = open_key_store(settings.storage.data, settings.storage.key_options)
    if not store.path.exists():
        return Check(name="keys", status="ok", detail="there is no key yet; the first encrypted event makes one")
    try:
        store.refresh()
    finally:
        store.close()
    if os.name == "posix" and store.path.stat().st_mode & 0o077:
        hint = f"chmod 600 {store.path}, and take it that other users have read it"
        return Check(name="keys", status="failed", detail="other users can read keys.db", hint=hint)
    wrapped = "wrapped by a master key" if settings.storage.key_options.master() else "protected by its mode alone"
    return Check(name="keys", status="ok", detail=f"{store.path.name} can be read, {wrapped}")


def _postgresql(settings: Settings) -> Check:
    url = settings.storage.log_url
    if sqlite_path(url) is not None:
        return Check(name="postgresql", status="skipped", detail="the log is a file of SQLite")
    import psycopg  # noqa: PLC0415

    started = time.perf_counter()
    try:
        with psycopg.connect(url, connect_timeout=int(_ANSWER_SECONDS)) as connection:
            row = connection.execute("SELECT current_setting('transaction_read_only')").fetchone()
    except psycopg.Error as error:
        hint = "start PostgreSQL, or correct RECOLLECT_LOG; `psql` with the same address must work"
        return Check(name="postgresql", status="failed", detail=without_password(short_text(error)), hint=hint)
    if row is not None and row[0] == "on":
        hint = "name the primary server in RECOLLECT_LOG, not a replica"
        return Check(name="postgresql", status="failed", detail="the server is read-only", hint=hint)
    milliseconds = (time.perf_counter() - started) * 1_000
    return Check(name="postgresql", status="ok", detail=f"answers in {milliseconds:.0f} ms")


def _log(settings: Settings) -> Check:
    from recollect.events.envelope import now_us  # noqa: PLC0415
    from recollect.events.integrity.log_identity import open_log_of_folder, read_log_id  # noqa: PLC0415
    from recollect.events.integrity.verify import verify  # noqa: PLC0415

    storage = settings.storage
    path = sqlite_path(storage.log_url)
    is_new = read_log_id(storage.data) is None and not (storage.data / "namespaces").exists()
    if path is not None and not path.exists() and is_new:
        return Check(name="log", status="ok", detail="there is no log yet; the first event creates it")
    log = open_log_of_folder(storage.data, storage.log_url, storage.key_options)
    try:
        sample = log.heads(limit=_SAMPLE_NAMESPACES)
        newest_us, events = 0, 0
        for head in sample:
            after = max(0, head.version - _SAMPLE_EVENTS)
            result = verify(log, head.namespace, after=after)
            if not result.is_intact:
                hint = "run `recollect verify`, and restore the last backup that it finds intact"
                detail = f"the log was changed: {result.problems[0].message}"
                return Check(name="log", status="failed", detail=detail, hint=hint)
            events += head.version - after
            # It is decrypted, so that a missing key is seen.
            last = log.read(head.namespace, after=head.version - 1, limit=1)
            newest_us = max(newest_us, last[0].recorded_at_us)
    finally:
        log.close()
    ahead_seconds = (newest_us - now_us()) / 1_000_000
    if ahead_seconds > _AHEAD_SECONDS:
        hint = "set the clock; until then `as_of` a time leaves out what is newer"
        detail = f"the newest events are {ahead_seconds:.0f} s in the future: a clock runs, or ran, ahead"
        return Check(name="log", status="warning", detail=detail, hint=hint)
    text = f"opens; the hashes of the last {counted(events, 'event')} of {counted(len(sample), 'namespace')} are right"
    return Check(name="log", status="ok", detail=text)


def _broker(settings: Settings) -> Check:
    url = settings.queue.broker
    if url == "memory://":
        return Check(name="broker", status="ok", detail="queues are in the process of `recollect serve`")
    import redis  # noqa: PLC0415

    client: Any = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
        url, socket_timeout=_ANSWER_SECONDS, socket_connect_timeout=_ANSWER_SECONDS
    )
    started = time.perf_counter()
    try:
        client.ping()
        seconds, microseconds = client.time()
    except (redis.RedisError, OSError) as error:
        hint = "start Redis, or correct RECOLLECT_BROKER; appends and retrievals work without it, jobs do not"
        return Check(name="broker", status="failed", detail=without_password(short_text(error)), hint=hint)
    finally:
        client.close()
    milliseconds = (time.perf_counter() - started) * 1_000
    difference_seconds = abs(time.time() - (seconds + microseconds / 1e6))
    if difference_seconds > _AHEAD_SECONDS:
        detail = f"the clocks of this machine and of Redis differ by {difference_seconds:.0f} s"
        return Check(name="broker", status="warning", detail=detail, hint="set both clocks by NTP")
    return Check(name="broker", status="ok", detail=f"Redis answers in {milliseconds:.0f} ms")


def _openvino(settings: Settings) -> Check:
    if settings.embedding.embedding_model == "none":
        return Check(name="openvino", status="skipped", detail="embeddings are off")
    if find_spec("openvino") is None:
        hint = "pip install openvino, where it has a wheel for this machine"
        detail = "not installed; PyTorch runs the model in twice the time"
        return Check(name="openvino", status="warning", detail=detail, hint=hint)
    return Check(name="openvino", status="ok", detail=f"version {importlib.metadata.version('openvino')}")


def _model(settings: Settings) -> Check:
    if settings.embedding.embedding_model == "none":
        return Check(name="model", status="skipped", detail="embeddings are off; retrieval is by keywords")
    from recollect.projections.embeddings.embedder import open_embedder  # noqa: PLC0415
    from recollect.projections.embeddings.model_record import read_model_record  # noqa: PLC0415

    record = read_model_record(settings.storage.data)
    name = settings.embedding.embedding_model if record is None else record.current.name
    embedder = open_embedder(name, settings.embedding.embedding_runtime, settings.embedding.embedding_device)
    started = time.perf_counter()
    embedder.start()
    if embedder.wait_ready(_MODEL_SECONDS_MAX):
        seconds = time.perf_counter() - started
        detail = f"{name} loads in {seconds:.1f} s and runs on {embedder.runtime}"
        return Check(name="model", status="ok", detail=detail)
    hint = "check RECOLLECT_EMBEDDING_MODEL and the network, or set it to none for keywords alone"
    return Check(name="model", status="failed", detail=f"{name}: {embedder.reason}", hint=hint)


def _model_left_out(_: Settings) -> Check:
    return Check(name="model", status="skipped", detail="not loaded")
