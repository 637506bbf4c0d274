"""Dead letters: lists the messages of the background work that failed at every attempt, and requeues them."""

from __future__ import annotations

from typing import Any

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.events.envelope import rfc3339
from recollect.events.errors import NotFound, short_text
from recollect.jobs.queue.actors import declare_actors
from recollect.jobs.queue.broker import open_broker

#: Dead letters of one answer, the oldest ones: requeuing these makes room for the others.
_LETTERS_MAX = 200
#: Characters of an error in the list; `recollect jobs show` has all of it.
_ERROR_CHARACTERS_MAX = 500


def list_dead_letters(parts: MemoryParts) -> dict[str, Any]:
    """Return the dead letters, oldest first, each with the last line of its error."""
    items = [
        {
            "id": letter.id,
            "queue": letter.queue,
            "actor": letter.actor,
            "arguments": list(letter.arguments),
            "failed_at": rfc3339(letter.failed_at_us),
            "error": (letter.error.strip().splitlines() or [""])[-1][:_ERROR_CHARACTERS_MAX],
        }
        for letter in parts.run_store.dead_letters()[:_LETTERS_MAX]
    ]
    return {"items": items, "next": None}


def requeue_dead_letters(parts: MemoryParts, letter_id: str | None) -> dict[str, Any]:
    """Requeue one dead letter, or all when `letter_id` is None; return how many, and which ones failed again.

    On ``memory://`` their work is done here, and a letter whose work fails stays a dead letter.

    Raises:
        NotFound: no dead letter has this id.
    """
    letters = [letter.id for letter in parts.run_store.dead_letters() if letter_id in (None, letter.id)]
    if letter_id is not None and not letters:
        raise NotFound("no dead letter has this id; GET /v1/dead-letters lists them", field="letter_id")
    requeued, failed = 0, list[dict[str, str]]()
    for id in letters[:_LETTERS_MAX]:
        try:
            requeued += requeue(parts, id)
        except Exception as error:
            failed.append({"id": id, "error": short_text(error)[:_ERROR_CHARACTERS_MAX]})
    return {"requeued": requeued, "failed": failed}


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
        for actor in (declared.project, declared.embed, declared.process_background, declared.run, declared.follow)
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
