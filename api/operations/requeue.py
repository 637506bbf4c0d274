"""Requeue: sends dead letters to their queues again."""

from __future__ import annotations

from typing import Any

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.jobs.queue.actors import declare_actors
from recollect.jobs.queue.broker import open_broker


def requeue(parts: MemoryParts, letter_id: str | None) -> int:
    """Send the dead letter `letter_id` again, or all when it is None; return how many. On ``memory://`` run them here.

    A letter is removed after its message was sent, so a kill between the two loses none. The message may then be sent
    twice, which is safe: it carries only names, and the actor reads its work from the log and the read models.

    Raises:
        Exception: on ``memory://``, the error of the actor; the letter stays a dead letter.
    """
    broker = open_broker(parts.run_store, parts.settings.queue.broker)
    declared = declare_actors(broker, parts.job_context, parts.run_store)
    actors: dict[str, Any] = {
        actor.actor_name: actor
        for actor in (declared.project, declared.embed, declared.process_background, declared.run)
    }
    count = 0
    try:
        for letter in parts.run_store.dead_letters():
            if letter_id not in (None, letter.id):
                continue
            actor = actors[letter.actor]
            if parts.settings.queue.broker == "memory://":
                actor.fn(*letter.arguments)
            else:
                actor.send(*letter.arguments)
            parts.run_store.pop_dead_letter(letter.id)
            count += 1
    finally:
        broker.close()
    return count
