"""Jobs on Redis, and jobs with a language model, keep no words of what was erased."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import redis
from support.events import message
from support.llm_chat import LATER_US
from support.openai_server import Raw, openai_server, sensible
from support.redis import RedisServer

from recollect import Recollect
from recollect.api.settings import load_settings
from recollect.jobs.extraction.extraction_job import extract
from recollect.jobs.llm.shared_pause import PAUSE_NAME
from recollect.jobs.llm_reading.reading_job import read_by_llm
from recollect.jobs.queue.run_store import DeadLetter

WORD = "Zqcanary"


def redis_content(server: RedisServer) -> bytes:
    """Return all keys and values."""
    client: Any = redis.Redis.from_url(server.url)  # pyright: ignore[reportUnknownMemberType]
    read: dict[bytes, Any] = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"list": lambda key: client.lrange(key, 0, -1),  # pyright: ignore[reportUnknownLambdaType]
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1),  # pyright: ignore[reportUnknownLambdaType]
    }
    return repr([(key, read[client.type(key)](key)) for key in client.scan_iter()]).encode()


def bytes_of(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_redis_keeps_no_words_of_erased_events(redis_server: RedisServer, tmp_path: Path) -> None:
    redis_server.flush()
    settings = load_settings(data=tmp_path, embedding_model="none", broker=redis_server.url)
    with Recollect(settings=settings, workers=False) as memory:
        memory.append("a", [message(f"My dog is called {WORD}.", id="m1"), message("I live in Porto.")])
        store, workers = memory.parts.run_store, memory.parts.workers
        assert workers is not None
        for namespace in ("a", "b"):
            letter = DeadLetter(
                id=namespace,
                queue="think",
                actor="think",
                arguments=(namespace,),
                failed_at_us=1,
                error=f"cannot read {WORD if namespace == 'a' else 'this'}",
            )
            store.add_dead_letter(letter)
        store.claim("compact", 1, 1, 1)
        store.record_progress("compact", 1, 2, error=f"a: cannot read {WORD}")
        assert WORD.encode() in redis_content(redis_server)
        # What a retry leaves in a message.
        retried: Any = workers.actors.process_background.message("a")
        retried.options["traceback"] = f"ValueError: cannot read {WORD}"
        broker: Any = workers.broker
        broker.enqueue(retried)
        receipt = memory.erase("a", event_ids=["m1"])
        assert [letter.id for letter in store.dead_letters()] == ["b"]
        assert [(run.errors, run.error) for run in store.runs()] == [(1, None)]
    assert WORD.encode() not in redis_content(redis_server)
    assert WORD.encode() not in bytes_of(tmp_path)
    [jobs] = [target for target in receipt["targets"] if target["store"] == "jobs"]
    assert (jobs["rows"], "Redis" in jobs["method"]) == (2, True)


def test_what_a_language_model_read_is_gone_with_the_message(tmp_path: Path) -> None:
    script = {WORD: [f"Ann's dog is called {WORD}. | My dog is called {WORD} | possession"]}
    texts = [f"My dog is called {WORD}, and I walk with {WORD} along the river every morning."] * 12
    texts.append("I live in Porto.")
    with openai_server() as server:
        model: dict[str, Any] = {"llm": "tiny", "llm_base_url": server.url, "llm_failures_max": 1}
        server.behaviour = sensible(script)
        settings = load_settings(data=tmp_path, embedding_model="none", observe_tokens=100, **model)
        with Recollect(settings=settings, workers=False) as memory:
            memory.append("a", [message(text, name="Ann", session_id="s") for text in texts])
            extract(memory.parts.job_context, "a", LATER_US)
            read_by_llm(memory.parts.job_context, "a", LATER_US)
            memory.settle("a")
            server.behaviour = lambda _: f"Ann walks with {WORD} along the river."
            memory.window("a", "s", budget_tokens=200)
            derived = [event for event in memory.events("a", limit=100)["items"] if WORD in str(event["payload"])]
            read = {"message.added", "facts.extracted", "observations.recorded", "conversation.compacted"}
            assert read <= {event["type"] for event in derived}
            # A server that fails and quotes what it was sent.
            server.behaviour = lambda _: Raw(500, f"cannot read {WORD}".encode())
            memory.append("a", message(f"{WORD} barks in our garden.", name="Ann", session_id="s"))
            extract(memory.parts.job_context, "a", LATER_US)
            read_by_llm(memory.parts.job_context, "a", LATER_US)
            assert WORD.encode() in (tmp_path / PAUSE_NAME).read_bytes()
            erased = [event["id"] for event in memory.events("a", limit=100)["items"] if is_named(event)]
            memory.erase("a", event_ids=erased)
            llm = memory.parts.job_context.llm
            assert llm is not None
            assert llm.status()["state"] == "paused"
            assert WORD not in str(llm.status())
            assert not len(llm._answers)  # pyright: ignore[reportPrivateUsage]
            assert WORD not in str(memory.window("a", "s", budget_tokens=200))
    assert WORD.encode() not in bytes_of(tmp_path)


def is_named(event: Mapping[str, Any]) -> bool:
    return event["type"] == "message.added" and WORD in event["payload"]["text"]
