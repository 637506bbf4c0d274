"""Memory editing: the methods of `Recollect` that add chat messages, and change single memories by id."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Unpack

import uuid_utils

from recollect.api.as_of import AsOf
from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.memory.chat_messages import ChatInput, chat_events
from recollect.api.memory.edit_undo import undo_events
from recollect.api.memory.memory_edits import (
    UPDATED,
    MemoryChanges,
    changes_of,
    edit_drafts,
    end_event,
    expired_memory,
    forget_event,
    forget_events,
    new_message,
    pin_event,
    separation_event,
    update_events,
)
from recollect.api.pages.list_pages import find_memory
from recollect.api.result_types import (
    EndableMemory,
    EntityMemory,
    EpisodeMemory,
    Forgotten,
    MemoryItem,
    PinnableMemory,
    Undone,
)
from recollect.events.envelope import Appended, EventDraft
from recollect.events.errors import InvalidEvent, InvalidInput, NotFound
from recollect.events.limits import check_namespace
from recollect.events.validation import producer_drafts
from recollect.jobs.compaction.resummarise import resummarised
from recollect.projections.queries.snapshot import Snapshot


class MemoryEditing(ABC):
    """Adds chat messages, and reads, updates, pins, ends and forgets single memories."""

    parts: MemoryParts

    @abstractmethod
    def append_drafts(
        self, namespace: str, validated: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Append validated events."""

    @abstractmethod
    def _reading(self, namespace: str, as_of: AsOf = None) -> AbstractContextManager[Snapshot]:
        """Open the read model."""

    def add(
        self,
        namespace: str,
        messages: ChatInput,
        *,
        session_id: str | None = None,
        occurred_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> list[Appended]:
        """Append the messages of a chat; return the id and the version of each once they are on disk.

        >>> memory.add("ann", [{"role": "user", "content": "I love tea"}], session_id="s1")

        Parameters:
            messages: a text by a user, one message, or a list of messages with `role` and `content`, oldest first, in
                the form of OpenAI. A message may have its own `name`, `id`, `occurred_at` and `metadata`. With an `id`,
                the same message is recorded once.
            session_id: the conversation that they belong to.
            occurred_at: when they were sent; the time of recording when None.
            metadata: labels of every message, by which lists and retrievals can be filtered.

        Raises:
            InvalidInput: a field is missing, unknown or wrong.
        """
        return self.append_drafts(
            namespace,
            chat_drafts(chat_events(messages, session_id=session_id, occurred_at=occurred_at, metadata=metadata)),
        )

    def get(self, namespace: str, memory_id: str, *, as_of: AsOf = None) -> MemoryItem:
        """Return a memory of any kind by the id that a list or a retrieval gives it.

        Parameters:
            as_of: a version, an aware time, or either as text: the memory as of then.

        Returns:
            its `kind`, such as ``"fact"``, and the fields of an item of its list. A message that compaction took out of
            the read model has the status ``"expired"``.

        Raises:
            NotFound: no memory has this id, or it is forgotten.
        """
        with self._reading(namespace, as_of) as snapshot:
            memory = find_memory(snapshot, memory_id) or self._expired(namespace, snapshot, memory_id)
        if memory is None:
            raise NotFound(
                f"namespace {namespace!r} has no memory with the id {memory_id!r}; lists and retrievals have the ids",
                field="id",
            )
        return memory

    def update(
        self, namespace: str, memory_id: str, *, text: str | None = None, **changes: Unpack[MemoryChanges]
    ) -> MemoryItem:
        """Correct a memory, and return it as it is afterwards. What it said before stays in the log.

        A corrected fact or preference has a new id, and `superseded_by` of the old one names it, as a rule. A corrected
        message is a new message in place of the old one, at the same time of the same session, and what was derived
        from the old one is forgotten. Entities and documents keep their ids.

        Parameters:
            text: the text of a message or a document, the object of a fact, the value of a preference, the description
                of an entity.
            changes: other fields: of a fact `object` and `valid_from`; of a preference `value`, `strength` and
                `standing`; of a procedure `trigger`, `steps`, `context` and `confidence`; of a relationship `source`,
                `type`, `target` and `properties`; of a document `title`, `uri`, `metadata` and `relations`; of an
                entity `description`, `type`, `aliases`, `importance` and `metadata`; of a message `metadata`.

        Raises:
            InvalidInput: memories of this kind have no such field, or a value is wrong.
        """
        memory = self.get(namespace, memory_id)
        given = changes_of(memory["kind"], text, changes)
        if memory["kind"] == "episode":
            return self._replace_message(namespace, memory, given)
        recorded = self.append_drafts(namespace, edit_drafts(update_events(memory, given)))
        for id in (recorded[-1].id, memory["name"] if memory["kind"] == "entity" else memory["id"]):
            # A value that was stated before is confirmed and keeps its id.
            try:
                return self.get(namespace, id)
            except NotFound:
                continue
        raise NotFound(f"the memory {memory_id!r} was forgotten by another caller", field="id")

    def pin(self, namespace: str, memory_id: str, *, reason: str | None = None) -> PinnableMemory:
        """Pin a memory, which exempts it from ageing and retention limits; return it.

        Raises:
            InvalidInput: documents, entities and observations have no pin.
        """
        return self._changed(namespace, memory_id, lambda memory: pin_event(memory, "memory.pinned", reason))

    def unpin(self, namespace: str, memory_id: str, *, reason: str | None = None) -> PinnableMemory:
        """Remove the pin of a memory; return it. Errors are those of `pin`."""
        return self._changed(namespace, memory_id, lambda memory: pin_event(memory, "memory.unpinned", reason))

    def end(
        self,
        namespace: str,
        memory_id: str,
        *,
        ended_at: datetime | str | None = None,
        reason: str | None = None,
    ) -> EndableMemory:
        """End a fact, a preference, a procedure or a relationship, which was true until then; return it.

        A task that is done ends, too. What was never true is not ended but forgotten, or corrected by `update`.

        Parameters:
            ended_at: the end, an aware time or text; the present when None.

        Raises:
            InvalidInput: memories of this kind have no end, or `ended_at` is wrong.
        """
        return self._changed(namespace, memory_id, lambda memory: end_event(memory, ended_at, reason))

    def forget(self, namespace: str, memory_id: str, *, reason: str | None = None) -> Forgotten:
        """Forget a memory and what was derived from it; return its `id`, its `kind` and the event.

        No list and no retrieval returns them afterwards. A forgotten message takes the facts that it alone states with
        it, and its summaries are written again without it. A forgotten entity takes all facts about it with it, and
        stays hidden until it is mentioned again. The message that a forgotten fact comes from stays: forget it as well.

        The bytes stay in the log, in backups and in the traces of earlier retrievals; `erase` removes them.
        """
        memory = self.get(namespace, memory_id)
        drafts = edit_drafts(forget_events(memory, reason))
        recorded = self.append_drafts(namespace, [*drafts, *self._resummarised(namespace, memory)])
        id = memory["name"] if memory["kind"] == "entity" else memory["id"]
        return {"id": id, "kind": memory["kind"], "version": recorded[0].version, "event_id": recorded[0].id}

    def undo(self, namespace: str, event_id: str, *, reason: str | None = None) -> Undone:
        """Undo an edit: the memories are exactly as before it, with value, dates, confidence, source, pin and status.

        What was changed later stays. A forgotten message is back with what was derived from it, without the summary of
        its session. The undo of an update of a message forgets the new message, and restores the old one.

        Parameters:
            event_id: the id of the event that corrected, updated, ended, retracted, pinned, unpinned, invalidated or
                forgot a memory, or replaced or removed a document: `event_id` of `forget`, the `id` that `update`
                returns, `edit_id` of a document, or that of an appended event.
                The id of an undo makes the edit again. That of a message which asked to forget something undoes what
                was forgotten for it, with its entities; the message itself stays hidden, since it is not a statement.

        Raises:
            NotFound: no event has this id. InvalidInput: the event is not an edit, or forgot an entity, which is back
            when it is mentioned.
        """
        event = self.parts.log.find(check_namespace(namespace), event_id)
        if event is None:
            raise NotFound(f"namespace {namespace!r} has no event with the id {event_id!r}", field="event_id")
        with self._reading(namespace) as snapshot:
            events = undo_events(self.parts.log, namespace, event, snapshot.memory_ids.forgotten(), reason)
            undone = [event["payload"]["event_id"] for event in events if event["type"] == "edit.undone"]
            if not undone or not all(snapshot.memory_ids.exists("edit", id) for id in undone):
                raise InvalidInput(f"an event {event.type} like this one cannot be undone", field="event_id")
            forgotten = [event["payload"]["memory_id"] for event in events if event["type"] == "memory.forgotten"]
            rewritten = resummarised(self.parts.job_context, namespace, snapshot, forgotten) if forgotten else []
        recorded = self.append_drafts(namespace, [*edit_drafts(events), *rewritten])
        return {"id": recorded[len(forgotten)].id, "undoes": event.id, "version": recorded[-1].version}

    def separate(self, namespace: str, memory_id: str, alias: str, *, reason: str | None = None) -> EntityMemory:
        """Undo a merge: `alias` is the name of another entity, which has its own facts again; return the entity.

        The two names stay apart until `entity.described` states the alias again.

        Parameters:
            memory_id: the name of the entity, as the list `entities` has it.
            alias: one of its `aliases`; `merged` of the entity says why it was merged.

        Raises:
            NotFound: no entity has this name. InvalidInput: the entity has no such alias.
        """
        return self._changed(namespace, memory_id, lambda memory: separation_event(memory, alias, reason))

    def _changed(self, namespace: str, memory_id: str, event_of: Callable[[MemoryItem], dict[str, Any]]) -> Any:
        """Append the event that `event_of` returns for a memory; return the memory as it is afterwards."""
        memory = self.get(namespace, memory_id)
        self.append_drafts(namespace, edit_drafts([event_of(memory)]))
        return self.get(namespace, memory["name"] if memory["kind"] == "entity" else memory["id"])

    def _replace_message(self, namespace: str, memory: EpisodeMemory, changes: dict[str, Any]) -> MemoryItem:
        """Forget a message and append it with other content, in one batch."""
        new_id = str(uuid_utils.uuid7())
        events = [
            forget_event(memory, UPDATED),
            new_message(self.parts.log, namespace, memory, new_id, changes),
        ]
        if memory["pinned"]:
            events.append({"type": "memory.pinned", "payload": {"memory_id": new_id}})
        forgotten, *added = edit_drafts(events)
        self.append_drafts(namespace, [forgotten, *self._resummarised(namespace, memory), *added])
        return self.get(namespace, new_id)

    def _resummarised(self, namespace: str, memory: MemoryItem) -> list[EventDraft]:
        """Return the events that write the summaries of a message again, without it; none for other kinds."""
        if memory["kind"] != "episode":
            return []
        with self._reading(namespace) as snapshot:
            return resummarised(self.parts.job_context, namespace, snapshot, [memory["id"]])

    def _expired(self, namespace: str, snapshot: Snapshot, memory_id: str) -> EpisodeMemory | None:
        """Return a message that the log and the sources of a summary have, and the read model has not; or None."""
        if not snapshot.memory_ids.exists("memory", memory_id):
            return None
        event = self.parts.log.find(check_namespace(namespace), memory_id)
        return None if event is None else expired_memory(event)


def chat_drafts(events: Sequence[Mapping[str, Any]]) -> list[EventDraft]:
    """Return the events of chat messages as drafts; raise `InvalidInput` with the field of the message."""
    try:
        return producer_drafts(events)
    except InvalidEvent as error:
        field = error.field.replace("events.", "messages.", 1).replace(".payload", "", 1)
        raise InvalidInput(error.reason, field=field) from None
