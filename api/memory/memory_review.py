"""Memory review: the methods of `Recollect` that list memories in quarantine, and decide on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal, Unpack

from recollect.api.as_of import AsOf
from recollect.api.memory.memory_edits import MemoryChanges, edit_drafts
from recollect.api.pages.list_pages import PAGE_ITEMS, checked_limit, find_memory
from recollect.api.result_types import MemoryItem, QuarantineItem, QuarantinePage
from recollect.events.envelope import Appended, EventDraft, rfc3339
from recollect.events.errors import InvalidInput, NotFound
from recollect.events.intake.instructions import without_instructions
from recollect.events.limits import check_namespace
from recollect.projections.queries.quarantine_queries import QuarantineRow
from recollect.projections.queries.snapshot import Snapshot

#: The decisions of a review.
Decision = Literal["approve", "reject", "redact"]
DECISIONS: tuple[Decision, ...] = ("approve", "reject", "redact")


class MemoryReview(ABC):
    """Lists the memories that wait for a review, and records decisions."""

    @abstractmethod
    def append_drafts(
        self, namespace: str, validated: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Append validated events."""

    @abstractmethod
    def update(
        self, namespace: str, memory_id: str, *, text: str | None = None, **changes: Unpack[MemoryChanges]
    ) -> MemoryItem:
        """Correct a memory."""

    @abstractmethod
    def _reading(self, namespace: str, as_of: AsOf = None) -> AbstractContextManager[Snapshot]:
        """Open the read model."""

    def quarantine(
        self, namespace: str, *, status: str | None = "waiting", after: int = 0, limit: int = PAGE_ITEMS
    ) -> QuarantinePage:
        """Return a page of the memories in quarantine, oldest first, each with its text and the reasons.

        Text that a tool, a document or a job wrote, and that looks like instructions for an assistant, is stored, and
        not retrieved until it is reviewed. Of a document, retrieval leaves out the instructions only.

        Parameters:
            status: ``waiting``, a decision, or None for all.
            after: `next` of the previous page.
        """
        with self._reading(check_namespace(namespace)) as snapshot:
            rows = snapshot.quarantine.page(after, checked_limit(limit), status)
            items = [_item(row, snapshot) for row in rows]
        return {"items": items, "next": rows[-1].version if len(rows) == limit else None}

    def review(
        self, namespace: str, memory_id: str, decision: Decision, *, reason: str | None = None
    ) -> QuarantineItem:
        """Decide on a memory in quarantine; return it as `quarantine` lists it afterwards.

        Parameters:
            decision: ``approve``: it is retrieved as any other; ``reject``: it never is; ``redact``: a copy without the
                sentences that look like instructions takes the place of a message or a document.

        Raises:
            NotFound: no such memory waits for a review. InvalidInput: the decision is not one of these, or memories of
            this kind have no text to redact.
        """
        if decision not in DECISIONS:
            raise InvalidInput(f"give one of {', '.join(DECISIONS)}", field="decision")
        with self._reading(check_namespace(namespace)) as snapshot:
            row = snapshot.quarantine.find(memory_id)
            memory = find_memory(snapshot, memory_id)
        if row is None or row.status != "waiting":
            raise NotFound("no such memory waits for a review; `quarantine` lists those that do", field="id")
        text: str | None = None
        if memory is not None and (memory["kind"] == "episode" or memory["kind"] == "document"):
            text = memory["text"]
        if decision == "redact" and text is None:
            raise InvalidInput("only messages and documents can be redacted; approve or reject it", field="decision")
        payload = {"memory_id": memory_id, "decision": decision, "reason": reason}
        self.append_drafts(namespace, edit_drafts([{"type": "memory.reviewed", "payload": payload}]))
        if decision == "redact" and text is not None:
            self.update(namespace, memory_id, text=without_instructions(text) or "[withheld: instructions]")
        with self._reading(namespace) as snapshot:
            reviewed = snapshot.quarantine.find(memory_id)
            return _item(reviewed or row, snapshot)


def _item(row: QuarantineRow, snapshot: Snapshot) -> QuarantineItem:
    """Return a memory in quarantine as JSON."""
    memory = find_memory(snapshot, row.memory_id)
    return {
        "id": row.memory_id,
        "kind": row.kind if memory is None else memory["kind"],
        "status": row.status,
        "reasons": list(row.reasons),
        "version": row.version,
        "occurred_at": rfc3339(row.at_us),
        "memory": memory,
    }
