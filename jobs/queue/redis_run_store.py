"""Redis run store: `RunStore` in Redis, for workers and schedulers on several machines.

If Redis is flushed, no memory is lost: every job can run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import orjson
import redis
from msgspec.structs import asdict

from recollect.jobs.following.cursor import Cursor
from recollect.jobs.queue.run_store import (
    DEAD_LETTERS_MAX,
    HEARTBEAT_SHOWN_SECONDS_MAX,
    DeadLetter,
    Finished,
    Heartbeat,
    Run,
)

_PREFIX = "recollect:records"
#: Keys of runs expire after this time: longer than the month that the SQLite store holds.
_RUN_TTL_SECONDS = 40 * 86_400
#: A message is dropped after a day; a week covers its retries.
_ATTEMPTS_TTL_SECONDS = 7 * 86_400
_HEARTBEAT_TTL_SECONDS = int(HEARTBEAT_SHOWN_SECONDS_MAX)

#: One atomic step: claims a run that is not claimed, or that made no progress for the stale time.
#: KEYS: the run, the hash of last runs. ARGV: now, stale time, time to live, job, scheduled time.
_CLAIM = """
local touched = redis.call('HGET', KEYS[1], 'touched_us')
local ended = redis.call('HEXISTS', KEYS[1], 'ended_us') == 1
if touched and (ended or tonumber(touched) > tonumber(ARGV[1]) - tonumber(ARGV[2])) then
    return 0
end
redis.call('HSETNX', KEYS[1], 'started_us', ARGV[1])
redis.call('HSET', KEYS[1], 'touched_us', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('HSET', KEYS[2], ARGV[4], ARGV[5])
return 1
"""


class RedisRunStore:
    """`RunStore` in the Redis at `url`."""

    forget_leaves: str | None = "the files of Redis have them until Redis writes these files again, which was requested"

    def __init__(self, url: str) -> None:
        # Typed as Any: the stubs of redis-py mix the results of its sync and async clients.
        self._client: Any = redis.Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType]
        self._claim_script: Any = self._client.register_script(_CLAIM)

    def claim(self, job: str, scheduled_at_us: int, now_us: int, stale_us: int) -> bool:
        """See `RunStore.__init__`."""
        keys = [_run_key(job, scheduled_at_us), f"{_PREFIX}:last"]
        return bool(self._claim_script(keys=keys, args=[now_us, stale_us, _RUN_TTL_SECONDS, job, scheduled_at_us]))

    def record_progress(
        self, job: str, scheduled_at_us: int, now_us: int, *, events: int = 0, error: str | None = None
    ) -> None:
        """See `RunStore.record_progress`."""
        key = _run_key(job, scheduled_at_us)
        with self._client.pipeline() as pipe:
            pipe.hset(key, "touched_us", now_us)
            pipe.hincrby(key, "namespaces", 1)
            pipe.hincrby(key, "events", events)
            if error is not None:
                pipe.hincrby(key, "errors", 1)
                pipe.hset(key, "error", error)
            pipe.execute()

    def record_finished(self, job: str, finished: Sequence[Finished]) -> None:
        """See `RunStore.record_finished`."""
        if finished:
            values = {state.namespace_key: f"{state.version} {state.basis} {state.due_us or ''}" for state in finished}
            self._client.hset(f"{_PREFIX}:finished:{job}", mapping=values)

    def finished(self, job: str, namespace_keys: Sequence[str]) -> dict[str, Finished]:
        """See `RunStore.finished`."""
        if not namespace_keys:
            return {}
        values: list[bytes | None] = self._client.hmget(f"{_PREFIX}:finished:{job}", namespace_keys)
        stored = zip(namespace_keys, values, strict=True)
        return {key: _finished(key, value) for key, value in stored if value is not None}

    def end(self, job: str, scheduled_at_us: int, now_us: int) -> None:
        """See `RunStore.end`."""
        self._client.hset(_run_key(job, scheduled_at_us), "ended_us", now_us)

    def runs(self) -> list[Run]:
        """See `RunStore.runs`."""
        last: dict[bytes, bytes] = self._client.hgetall(f"{_PREFIX}:last")
        runs: list[Run] = []
        for job, scheduled_at in sorted(last.items()):
            fields: dict[bytes, bytes] = self._client.hgetall(_run_key(job.decode(), int(scheduled_at)))
            if b"touched_us" in fields:
                runs.append(_run(job.decode(), int(scheduled_at), fields))
        return runs

    def add_attempt(self, message_id: str) -> int:
        """See `RunStore.add_attempt`."""
        key = f"{_PREFIX}:attempts:{message_id}"
        with self._client.pipeline() as pipe:
            pipe.incr(key)
            pipe.expire(key, _ATTEMPTS_TTL_SECONDS)
            return int(pipe.execute()[0])

    def clear_attempts(self, message_id: str) -> None:
        """See `RunStore.clear_attempts`."""
        self._client.delete(f"{_PREFIX}:attempts:{message_id}")

    def add_dead_letter(self, letter: DeadLetter) -> None:
        """See `RunStore.add_dead_letter`."""
        self._client.hset(f"{_PREFIX}:dead", letter.id, _letter_json(letter))
        for letter_over_limit in self.dead_letters()[:-DEAD_LETTERS_MAX]:
            self._client.hdel(f"{_PREFIX}:dead", letter_over_limit.id)

    def dead_letters(self) -> list[DeadLetter]:
        """See `RunStore.dead_letters`."""
        values: list[bytes] = self._client.hvals(f"{_PREFIX}:dead")
        return sorted((_letter(value) for value in values), key=lambda letter: (letter.failed_at_us, letter.id))

    def pop_dead_letter(self, letter_id: str) -> DeadLetter | None:
        """See `RunStore.pop_dead_letter`."""
        value: bytes | None = self._client.hget(f"{_PREFIX}:dead", letter_id)
        if value is None or not self._client.hdel(f"{_PREFIX}:dead", letter_id):
            return None
        return _letter(value)

    def forget(self, namespace: str) -> int:
        """See `RunStore.forget`."""
        letters = [letter.id for letter in self.dead_letters() if namespace in letter.arguments]
        prefix = f"{namespace}: ".encode()
        errors: dict[bytes, bytes | None] = {key: self._client.hget(key, "error") for key in self._run_keys()}
        runs = [key for key, error in errors.items() if error is not None and error.startswith(prefix)]
        with self._client.pipeline() as pipe:
            for letter_id in letters:
                pipe.hdel(f"{_PREFIX}:dead", letter_id)
            for key in runs:
                pipe.hdel(key, "error")
            pipe.execute()
        if letters or runs:
            # Refused by services that run Redis themselves, and while it is being written.
            with suppress(redis.ResponseError):
                self._client.bgrewriteaof()
        return len(letters) + len(runs)

    def _run_keys(self) -> list[bytes]:
        """Return the keys of all runs that are stored."""
        keys: list[bytes] = list(self._client.scan_iter(f"{_PREFIX}:run:*", count=1_000))
        # Earlier releases stored the finished batches of a run under such keys.
        return [key for key in keys if not key.endswith(b":pages")]

    def heartbeat(self, heartbeat: Heartbeat) -> None:
        """See `RunStore.heartbeat`."""
        self._client.set(f"{_PREFIX}:beat:{heartbeat.id}", _heartbeat_json(heartbeat), ex=_HEARTBEAT_TTL_SECONDS)

    def deregister(self, heartbeat_id: str) -> None:
        """See `RunStore.deregister`."""
        self._client.delete(f"{_PREFIX}:beat:{heartbeat_id}")

    def heartbeats(self) -> list[Heartbeat]:
        """See `RunStore.heartbeats`."""
        keys: list[bytes] = list(self._client.scan_iter(f"{_PREFIX}:beat:*", count=1_000))
        values: list[bytes | None] = self._client.mget(keys) if keys else []
        heartbeats = [_heartbeat(value) for value in values if value is not None]
        return sorted(heartbeats, key=lambda heartbeat: (heartbeat.role, heartbeat.id))

    def note_read(self, namespace_key: str, version: int) -> None:
        """See `RunStore.note_read`. A worker that is late may write an older version; the next run corrects it."""
        self._client.hset(f"{_PREFIX}:read", namespace_key, version)

    def read_through(self, namespace_key: str) -> int:
        """See `RunStore.read_through`."""
        return int(self._client.hget(f"{_PREFIX}:read", namespace_key) or 0)

    def cursor(self, name: str, namespace_key: str) -> Cursor | None:
        """See `CursorStore.cursor`."""
        value: bytes | None = self._client.hget(f"{_PREFIX}:cursor:{name}", namespace_key)
        return None if value is None else Cursor(**orjson.loads(value))

    def cursors(self, name: str) -> dict[str, Cursor]:
        """See `CursorStore.cursors`."""
        values: dict[bytes, bytes] = self._client.hgetall(f"{_PREFIX}:cursor:{name}")
        return {key.decode(): Cursor(**orjson.loads(value)) for key, value in values.items()}

    def set_cursor(self, name: str, namespace_key: str, cursor: Cursor | None) -> None:
        """See `CursorStore.set_cursor`."""
        if cursor is None:
            self._client.hdel(f"{_PREFIX}:cursor:{name}", namespace_key)
        else:
            self._client.hset(f"{_PREFIX}:cursor:{name}", namespace_key, orjson.dumps(asdict(cursor)))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _run_key(job: str, scheduled_at_us: int) -> str:
    return f"{_PREFIX}:run:{job}:{scheduled_at_us}"


def _run(job: str, scheduled_at_us: int, fields: dict[bytes, bytes]) -> Run:
    def number(name: bytes) -> int:
        return int(fields.get(name, b"0"))

    return Run(
        job=job,
        scheduled_at_us=scheduled_at_us,
        started_at_us=number(b"started_us"),
        progressed_at_us=number(b"touched_us"),
        ended_at_us=number(b"ended_us") or None,
        namespaces=number(b"namespaces"),
        events=number(b"events"),
        errors=number(b"errors"),
        error=fields[b"error"].decode() if b"error" in fields else None,
    )


def _finished(namespace_key: str, value: bytes) -> Finished:
    version, basis, due_us = value.decode().split(" ")
    return Finished(
        namespace_key=namespace_key, version=int(version), basis=basis, due_us=int(due_us) if due_us else None
    )


def _letter_json(letter: DeadLetter) -> bytes:
    """Return the stored form of a dead letter; its keys stay the same across releases, `died_us` is `failed_at_us`."""
    fields = asdict(letter)
    fields["died_us"] = fields.pop("failed_at_us")
    return orjson.dumps(fields)


def _letter(value: bytes) -> DeadLetter:
    fields: Any = orjson.loads(value)
    return DeadLetter(
        id=fields["id"],
        queue=fields["queue"],
        actor=fields["actor"],
        arguments=tuple(fields["arguments"]),
        failed_at_us=fields["died_us"],
        error=fields["error"],
    )


def _heartbeat_json(heartbeat: Heartbeat) -> bytes:
    """Return the stored form of a heartbeat; its keys stay the same across releases, `beat_us` is `seen_at_us`."""
    fields = asdict(heartbeat)
    fields["beat_us"] = fields.pop("seen_at_us")
    return orjson.dumps(fields)


def _heartbeat(value: bytes) -> Heartbeat:
    fields: Any = orjson.loads(value)
    return Heartbeat(
        id=fields["id"], role=fields["role"], host=fields["host"], pid=fields["pid"], seen_at_us=fields["beat_us"]
    )
