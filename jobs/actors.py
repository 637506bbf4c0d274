"""What workers do: fold a namespace's news, then embed them. A message is the namespace's name and nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dramatiq

from recollect.projections.models import ReadModels
from recollect.projections.vectors import VectorsInUse

#: How long one `embed` message works before it makes room for others and comes back.
_EMBED_SECONDS_MAX = 60.0


#: An actor whose message is a namespace.
Actor = dramatiq.Actor[[str], Any]


@dataclass(frozen=True, slots=True)
class Actors:
    """The actors on one broker."""

    project: Actor
    embed: Actor


def declare_actors(
    broker: dramatiq.Broker, models: ReadModels, vectors_in_use: VectorsInUse, stop: threading.Event
) -> Actors:
    """Declare `project` and `embed` on `broker`.

    Both may be sent twice, late or never: they work off what the log has and the read model has not.

    Parameters:
        stop: set when the process ends; `embed` then ends after its batch.
    """

    def embed(namespace: str) -> None:
        """Embed the episodes of `namespace` that have no vectors yet."""
        deadline = time.monotonic() + _EMBED_SECONDS_MAX
        vectors_in_use().embed_news(namespace, stop=stop, deadline=deadline)
        if time.monotonic() > deadline and not stop.is_set():
            embed_actor.send(namespace)

    def project(namespace: str) -> None:
        """Fold the news of `namespace` into its read model."""
        models.catch_up(namespace)
        embed_actor.send(namespace)

    embed_actor = _actor(embed, broker)
    return Actors(project=_actor(project, broker), embed=embed_actor)


def _actor(work: Callable[[str], None], broker: dramatiq.Broker) -> Actor:
    """Return the actor for `work`, in a queue of its own name."""
    name = work.__name__
    return dramatiq.Actor(work, broker=broker, actor_name=name, queue_name=name, priority=0, options={})
