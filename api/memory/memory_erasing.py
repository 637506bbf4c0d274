"""Memory erasing: the methods of `Recollect` that erase events for good, and return receipts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast, overload

from recollect.api.assembly.memory_parts import MemoryParts
from recollect.api.receipt_types import ErasurePreview, Receipt
from recollect.events.encryption.erasure_ledger import Scope
from recollect.events.envelope import now_us
from recollect.events.errors import InvalidInput
from recollect.events.limits import BATCH_EVENTS_MAX
from recollect.jobs.queue.registry import LIVE_JOBS


class MemoryErasing:
    """Erases events. Forgetting (`forget`) hides a memory and keeps its bytes; erasing removes them."""

    parts: MemoryParts

    @overload
    def erase(
        self,
        namespace: str,
        *,
        everything: bool = False,
        subject: str | None = None,
        session_id: str | None = None,
        event_ids: Sequence[str] | None = None,
        dry_run: Literal[False] = False,
        reason: str | None = None,
        requested_by: str | None = None,
    ) -> Receipt: ...
    @overload
    def erase(
        self,
        namespace: str,
        *,
        everything: bool = False,
        subject: str | None = None,
        session_id: str | None = None,
        event_ids: Sequence[str] | None = None,
        dry_run: Literal[True],
        reason: str | None = None,
        requested_by: str | None = None,
    ) -> ErasurePreview: ...
    @overload
    def erase(
        self,
        namespace: str,
        *,
        everything: bool = False,
        subject: str | None = None,
        session_id: str | None = None,
        event_ids: Sequence[str] | None = None,
        dry_run: bool,
        reason: str | None = None,
        requested_by: str | None = None,
    ) -> Receipt | ErasurePreview: ...
    def erase(
        self,
        namespace: str,
        *,
        everything: bool = False,
        subject: str | None = None,
        session_id: str | None = None,
        event_ids: Sequence[str] | None = None,
        dry_run: bool = False,
        reason: str | None = None,
        requested_by: str | None = None,
    ) -> Receipt | ErasurePreview:
        """Erase events for good, with all that was derived from them, and return the signed receipt.

        What was summed up or extracted from erased events is erased too, and made again from what is left. Erased ids
        stay known, so that the same events are refused (`Erased`).

        Parameters:
            everything: all events of the namespace, which refuses further events until `readmit`.
            subject: all events of a person in a shared namespace: their messages, the sessions of this `user_id`, what
                they caused as `actor`, and what was stated about them by name. Further events of theirs are refused.
            session_id: all events of a session.
            event_ids: single events, such as messages.
            dry_run: erase nothing, and return the numbers of events that would be erased.
            reason: stored in the log and in the receipt, unencrypted; it must not name anybody.
            requested_by: who asked, for the receipt; it must not name the subject.

        Raises:
            InvalidInput: not exactly one of `everything`, `subject`, `session_id` and `event_ids` is given.
            NotFound: there is nothing to erase: no such namespace, session or event, or it was erased before.
            NotSupported: the log was opened without a key store. StorageError: the disk failed; the erasure is
            completed when the memory is opened again.
        """
        scope, names = _scope(everything, subject, session_id, event_ids)
        eraser = self.parts.eraser
        if dry_run:
            plan = eraser.plan(namespace, scope, names)
            preview = {"namespace": namespace, "scope": scope, "dry_run": True, **plan.as_json()}
            return cast("ErasurePreview", preview)
        receipt = eraser.erase(namespace, scope, names, reason=reason, requested_by=requested_by)
        if self.parts.workers is None:
            # Without it, the extraction waits for a model that no worker loads until its time is over.
            self.parts.vectors.embedder.start()
            for job in LIVE_JOBS.values():
                job.work(self.parts.job_context, namespace, now_us())
        return cast("Receipt", receipt)

    def receipts(self, namespace: str | None = None) -> list[Receipt]:
        """Return the receipts of the erasures of a namespace, or of all, in their order."""
        return cast("list[Receipt]", self.parts.eraser.receipts(namespace))

    def readmit(self, namespace: str, *, subject: str | None = None) -> bool:
        """Accept new events of an erased namespace or subject again; return whether it was erased.

        Nothing comes back: the same person begins again with nothing remembered.
        """
        return self.parts.eraser.readmit(namespace, subject)


def _scope(
    everything: bool, subject: str | None, session_id: str | None, event_ids: Sequence[str] | None
) -> tuple[Scope, Sequence[str]]:
    """Return the scope of an erasure and the names in it."""
    given: list[tuple[Scope, Sequence[str]]] = []
    if everything:
        given.append(("namespace", ()))
    if subject is not None:
        given.append(("subject", [subject]))
    if session_id is not None:
        given.append(("session", [session_id]))
    if event_ids is not None:
        given.append(("message", event_ids))
    if len(given) != 1:
        raise InvalidInput("give exactly one of everything, subject, session_id and event_ids", field="erase")
    scope, names = given[0]
    if scope != "namespace" and not (names and all(name.strip() for name in names)):
        raise InvalidInput("give a name that is not empty", field=scope)
    if len(names) > BATCH_EVENTS_MAX:
        raise InvalidInput(f"more than {BATCH_EVENTS_MAX:,} events; erase them in several calls", field="event_ids")
    return scope, names
