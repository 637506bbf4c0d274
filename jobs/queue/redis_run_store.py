"""Records in Redis: for workers and schedulers on several machines. What a flush loses can be done again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import orjson
import redis

from recollect.jobs.queue.run_store import DEAD_LETTERS_MAX, DeadLetter, Heartbeat, Run

_PREFIX = "recollect:records"
#: Runs, pages and attempts are forgotten after this.
_KEPT_SECONDS = 40 * 86_400
_ATTEMPTS_SECONDS = 7 * 86_400
_BEATS_SECONDS = 86_400

#: One atomic step: claim when nobody has, or when whoever had it went quiet.
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
    """`Records` in the Redis at `url`."""

    def __init__(self, url: str) -> None:
        # Typed loosely: redis-py's stubs mix its sync and async answers.
        self._client: Any = redis.Redis.from_url(url)  # pyright: ignore[reportUnknownMemberType]
        self._claim: Any = self._client.register_script(_CLAIM)

    def claim(self, job: str, slot_us: int, now_us: int, stale_us: int) -> bool:
        """See `Records.claim`."""
        keys = [_run_key(job, slot_us), f"{_PREFIX}:last"]
        return bool(self._claim(keys=keys, args=[now_us, stale_us, _KEPT_SECONDS, job, slot_us]))

    def record_progress(
        self, job: str, slot_us: int, now_us: int, *, events: int = 0, error: str | None = None
    ) -> None:
        """See `Records.touch`."""
        key = _run_key(job, slot_us)
        with self._client.pipeline() as pipe:
            pipe.hset(key, "touched_us", now_us)
            pipe.hincrby(key, "namespaces", 1)
            pipe.hincrby(key, "events", events)
            if error is not None:
                pipe.hincrby(key, "errors", 1)
                pipe.hset(key, "error", error)
            pipe.execute()

    def finish_batch(self, job: str, slot_us: int, after: str) -> None:
        """See `Records.finish_page`."""
        key = f"{_run_key(job, slot_us)}:pages"
        with self._client.pipeline() as pipe:
            pipe.sadd(key, after)
            pipe.expire(key, _KEPT_SECONDS)
            pipe.execute()

    def has_batch(self, job: str, slot_us: int, after: str) -> bool:
        """See `Records.has_page`."""
        return bool(self._client.sismember(f"{_run_key(job, slot_us)}:pages", after))

    def end(self, job: str, slot_us: int, now_us: int) -> None:
        """See `Records.end`."""
        self._client.hset(_run_key(job, slot_us), "ended_us", now_us)

    def runs(self) -> list[Run]:
        """See `Records.runs`."""
        last: dict[bytes, bytes] = self._client.hgetall(f"{_PREFIX}:last")
        found: list[Run] = []
        for job, slot in sorted(last.items()):
            fields: dict[bytes, bytes] = self._client.hgetall(_run_key(job.decode(), int(slot)))
            if b"touched_us" in fields:
                found.append(_run(job.decode(), int(slot), fields))
        return found

    def add_attempt(self, message_id: str) -> int:
        """See `Records.attempt`."""
        key = f"{_PREFIX}:attempts:{message_id}"
        with self._client.pipeline() as pipe:
            pipe.incr(key)
            pipe.expire(key, _ATTEMPTS_SECONDS)
            return int(pipe.execute()[0])

    def clear_attempts(self, message_id: str) -> None:
        """See `Records.settle`."""
        self._client.delete(f"{_PREFIX}:attempts:{message_id}")

    def add_dead_letter(self, letter: DeadLetter) -> None:
        """See `Records.bury`."""
        self._client.hset(f"{_PREFIX}:dead", letter.id, _letter_json(letter))
        for old in self.dead_letters()[:-DEAD_LETTERS_MAX]:
            self._client.hdel(f"{_PREFIX}:dead", old.id)

    def dead_letters(self) -> list[DeadLetter]:
        """See `Records.dead_letters`."""
        values: list[bytes] = self._client.hvals(f"{_PREFIX}:dead")
        return sorted((_letter(value) for value in values), key=lambda letter: (letter.failed_at_us, letter.id))

    def pop_dead_letter(self, letter_id: str) -> DeadLetter | None:
        """See `Records.take`."""
        value: bytes | None = self._client.hget(f"{_PREFIX}:dead", letter_id)
        if value is None or not self._client.hdel(f"{_PREFIX}:dead", letter_id):
            return None
        return _letter(value)

    def heartbeat(self, beat: Heartbeat) -> None:
        """See `Records.beat`."""
        self._client.set(f"{_PREFIX}:beat:{beat.id}", _heartbeat_json(beat), ex=_BEATS_SECONDS)

    def deregister(self, beat_id: str) -> None:
        """See `Records.leave`."""
        self._client.delete(f"{_PREFIX}:beat:{beat_id}")

    def heartbeats(self) -> list[Heartbeat]:
        """See `Records.beats`."""
        keys: list[bytes] = list(self._client.scan_iter(f"{_PREFIX}:beat:*", count=1_000))
        values: list[bytes | None] = self._client.mget(keys) if keys else []
        found = [_heartbeat(value) for value in values if value is not None]
        return sorted(found, key=lambda beat: (beat.role, beat.id))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _run_key(job: str, slot_us: int) -> str:
    return f"{_PREFIX}:run:{job}:{slot_us}"


def _run(job: str, slot_us: int, fields: dict[bytes, bytes]) -> Run:
    def number(name: bytes) -> int:
        return int(fields.get(name, b"0"))

    return Run(
        job=job,
        scheduled_at_us=slot_us,
        started_at_us=number(b"started_us"),
        progressed_at_us=number(b"touched_us"),
        ended_at_us=number(b"ended_us") or None,
        namespaces=number(b"namespaces"),
        events=number(b"events"),
        errors=number(b"errors"),
        error=fields[b"error"].decode() if b"error" in fields else None,
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
