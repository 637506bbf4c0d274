"""Dead letters on their way back into the queues."""

from __future__ import annotations

from typing import Any

from recollect.api.memory.recollect import Recollect
from recollect.jobs.queue.actors import declare_actors
from recollect.jobs.queue.broker import open_broker


def requeue(memory: Recollect, letter_id: str | None) -> int:
    """Send dead letters again, one or all; return how many. On ``memory://`` they are worked off before this returns.

    Raises:
        Exception: on ``memory://``, what the work raises; the letter is a dead letter again.
    """
    broker = open_broker(memory.settings.broker, memory.records, memory.settings)
    declared = declare_actors(broker, memory.context, memory.records)
    actors: dict[str, Any] = {
        actor.actor_name: actor for actor in (declared.project, declared.embed, declared.think, declared.run)
    }
    count = 0
    try:
        for letter in memory.records.dead_letters():
            if letter_id not in (None, letter.id) or memory.records.take(letter.id) is None:
                continue
            actor = actors[letter.actor]
            try:
                if memory.settings.broker == "memory://":
                    actor.fn(*letter.arguments)
                else:
                    actor.send(*letter.arguments)
            except BaseException:
                memory.records.bury(letter)
                raise
            count += 1
    finally:
        broker.close()
    return count
