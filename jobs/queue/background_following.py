"""Background following: sends messages for the consumers that are behind, runs them, and parks those that fail."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from typing import Any

import dramatiq

from recollect.events.backends.log import each_head
from recollect.events.envelope import Head, now_us
from recollect.events.errors import short_text
from recollect.events.storage.namespace_folder import folder_name
from recollect.jobs.derivation.job_context import OUTAGES, JobContext
from recollect.jobs.following.consumers import Consumer, ConsumerRuns, consumer_of
from recollect.jobs.following.extensions import installed_projections
from recollect.jobs.following.webhook_delivery import WebhookSender
from recollect.jobs.following.webhook_store import WebhookStore
from recollect.jobs.queue.run_store import DeadLetter, RunStore

_logger = logging.getLogger(__name__)

#: The name of the actor.
ACTOR = "follow"
#: Seconds that one message works before it goes back to the end of the queue.
_SECONDS_MAX = 30.0
#: Milliseconds after which a message is tried again while another worker does its work.
_BUSY_MS = 500
#: Characters of a traceback that a dead letter stores: its end, which names the error.
_ERROR_CHARS_MAX = 4_000


class Following:
    """The consumers of one process.

    Parameters:
        broker: has the actor `follow`, which calls `run`, when the first message is sent.
    """

    def __init__(self, context: JobContext, run_store: RunStore, broker: dramatiq.Broker) -> None:
        self._broker = broker
        self._context = context
        self._store = run_store
        self._webhooks = WebhookStore(context.read_models.data)
        self._sender = WebhookSender()
        self._runs = ConsumerRuns(context.log, context.read_models, run_store, context.stop)

    def consumers(self) -> Mapping[str, Consumer]:
        """Return all consumers by name."""
        consumers = [
            *map(consumer_of, installed_projections().values()),
            *map(self._sender.consumer, self._webhooks.webhooks().values()),
        ]
        return {consumer.name: consumer for consumer in consumers}

    def send_due(self, head: Head) -> None:
        """Send a message for each consumer that is behind in the namespace of a head."""
        for consumer in self.consumers().values():
            if consumer.is_behind(self._store.cursor(consumer.name, folder_name(head.namespace)), head):
                self._send(consumer.name, head.namespace)

    def sweep(self, messages_max: int) -> None:
        """Send messages for what is behind in any namespace: a message that was lost is made up for."""
        sent = 0
        for consumer in self.consumers().values():
            cursors = self._store.cursors(consumer.name)
            log = self._context.log
            heads = each_head(log) if consumer.namespace is None else iter([log.head(consumer.namespace)])
            for head in heads:
                if sent >= messages_max or self._context.stop.is_set():
                    return
                if consumer.is_behind(cursors.get(folder_name(head.namespace)), head):
                    self._send(consumer.name, head.namespace)
                    sent += 1

    def run(self, name: str, namespace: str, again: int) -> None:
        """Let a consumer handle the next events of a namespace.

        Parameters:
            again: 1 to try what has failed too often.

        Raises:
            Exception: that of the consumer, when it is tried again; otherwise it is sent again later, or parked.
        """
        consumer = self.consumers().get(name)
        if consumer is None:
            # Its package is not installed any more, or not here.
            return
        try:
            if self._runs.run(consumer, namespace, seconds_max=_SECONDS_MAX, again=bool(again)):
                self._send(name, namespace, delay_ms=_BUSY_MS)
        except OUTAGES:
            raise
        except Exception as error:
            self._note_failure(consumer, namespace, error)
            if again:
                raise

    def _note_failure(self, consumer: Consumer, namespace: str, error: Exception) -> None:
        """Send a message for the next attempt, or store a dead letter when it was the last one."""
        key = folder_name(namespace)
        cursor = self._store.cursor(consumer.name, key)
        _logger.warning("%s failed in namespace %.12s: %s", consumer.name, key, short_text(error))
        if cursor is not None and not consumer.is_parked(cursor):
            delay_ms = max(0, (cursor.retry_at_us - now_us()) // 1_000) + 1
            self._send(consumer.name, namespace, delay_ms=delay_ms)
            return
        letter = DeadLetter(
            id=consumer.letter_id(key),
            queue=self._actor.queue_name,
            actor=self._actor.actor_name,
            arguments=(consumer.name, namespace, 1),
            failed_at_us=now_us(),
            error="".join(traceback.format_exception(error))[-_ERROR_CHARS_MAX:],
        )
        self._store.add_dead_letter(letter)

    @property
    def _actor(self) -> Any:
        broker: Any = self._broker
        return broker.get_actor(ACTOR)

    def _send(self, name: str, namespace: str, *, delay_ms: int | None = None) -> None:
        self._actor.send_with_options(args=(name, namespace, 0), delay=delay_ms)
