"""Staging: computes the rows of one transaction, with versions, hashes and duplicates, for every backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import orjson
import uuid_utils
from uuid_utils import UUID

from recollect.events.backends.group_commit_writer import AppendRequest
from recollect.events.backends.staged_encryption import StagedEncryption
from recollect.events.catalogue import CURSOR_EVENT_TYPES
from recollect.events.chain import GENESIS, leaf, link
from recollect.events.envelope import ENCODING_AES, ENCODING_JSON, Appended, EventDraft, RecordedEvent, make_appended
from recollect.events.errors import Erased, EventIdConflict, InvalidEvent, RecollectError, VersionConflict
from recollect.events.local_time import differ_in_offset

#: A backend's key of a namespace in its tables.
Key = int | str
#: A backend's stored form of an event id.
StoredId = str | bytes
#: A row of the events table: key, version, stored id, type, schema_version, occurred_at_us, recorded_at_us, session_id,
#: actor, causation_id, correlation_id, encoding, payload, leaf, hash.
StoredEvent = tuple[Any, ...]


class StagedHead:
    """A namespace's head within one transaction."""

    __slots__ = (
        "erasure_version",
        "hash",
        "is_new",
        "key",
        "moved",
        "namespace",
        "pruned",
        "recorded_at_us",
        "version",
    )

    def __init__(
        self,
        namespace: str,
        key: Key,
        version: int = 0,
        chain_hash: bytes = GENESIS,
        recorded_at_us: int = 0,
        erasure_version: int = 0,
        pruned: int = 0,
    ) -> None:
        self.namespace = namespace
        self.key = key
        self.version = version
        self.hash = chain_hash
        self.recorded_at_us = recorded_at_us
        #: The version of the newest erasure; 0 without one.
        self.erasure_version = erasure_version
        #: The last version that only the archive has.
        self.pruned = pruned
        self.moved = False
        #: Whether the namespace has no event before this transaction.
        self.is_new = not version

    def state(self) -> tuple[int, bytes, int, bool]:
        """Return the state for `restore`."""
        return self.version, self.hash, self.recorded_at_us, self.moved

    def restore(self, state: tuple[int, bytes, int, bool]) -> None:
        """Restore an earlier state."""
        self.version, self.hash, self.recorded_at_us, self.moved = state


class Staging:
    """The rows and heads of one transaction.

    Parameters:
        now_us: the time of recording.
        heads: the heads of all namespaces in the transaction, by name.
        stored_id: returns the backend's stored form of an id.
        find: returns the recorded row with a (key, stored id), or None.
        encryption: encrypts the payloads; None stages them as they are.
        stored_uuid: returns the backend's stored form of a generated id.
    """

    __slots__ = ("_by_id", "_encryption", "_find", "_now_us", "_stored_id", "_stored_uuid", "heads", "rows")

    def __init__(
        self,
        now_us: int,
        heads: Iterable[StagedHead],
        stored_id: Callable[[str], StoredId],
        find: Callable[[tuple[Key, StoredId]], StoredEvent | None],
        encryption: StagedEncryption | None = None,
        *,
        stored_uuid: Callable[[UUID], StoredId] = str,
    ) -> None:
        self._encryption = encryption
        self._now_us = now_us
        self._stored_id = stored_id
        self._stored_uuid = stored_uuid
        self._find = find
        self.heads = {head.namespace: head for head in heads}
        self.rows: list[StoredEvent] = []
        #: Staged rows with a producer's id, by (key, stored id), since one transaction may hold an id twice.
        self._by_id: dict[tuple[Key, StoredId], StoredEvent] = {}

    def stage(self, requests: Sequence[AppendRequest]) -> None:
        """Stage the events of each request, or set the error of a refused request."""
        for request in requests:
            try:
                request.recorded = self._stage(request)
            except RecollectError as refusal:
                request.error = refusal

    def moved_heads(self) -> list[StagedHead]:
        """Return the heads of the namespaces that get new events."""
        return [head for head in self.heads.values() if head.moved]

    def _stage(self, request: AppendRequest) -> list[Appended]:
        """Stage all events of `request`, or none when one of them is refused."""
        head = self.heads[request.namespace]
        rows_before, head_before = len(self.rows), head.state()
        may_refuse = request.expected_version is not None or (
            self._encryption is not None and not self._encryption.admits_all
        )
        recorded: list[Appended] = []
        try:
            for index, draft in enumerate(request.drafts):
                stored_id = None if draft.id is None else self._stored_id(draft.id)
                duplicate = None if stored_id is None or not head.version else self._duplicate(head, draft, stored_id)
                if duplicate is None and (may_refuse or draft.type in CURSOR_EVENT_TYPES):
                    self._check(head, request, index, head_before[0])
                recorded.append(duplicate or self._add(head, draft, stored_id))
        except RecollectError:
            for row in self.rows[rows_before:]:
                self._by_id.pop((row[0], row[2]), None)
            del self.rows[rows_before:]
            head.restore(head_before)
            raise
        return recorded

    def _duplicate(self, head: StagedHead, draft: EventDraft, stored_id: StoredId) -> Appended | None:
        """Return the recorded version of a draft with an id; None when its id is new."""
        event_id, place = cast(str, draft.id), (head.key, stored_id)
        recorded_row = self._by_id.get(place) or self._find(place)
        if recorded_row is None:
            self._check_not_erased(head, event_id)
            return None
        if not _same_content(self._opened(head, event_id, recorded_row), draft):
            raise EventIdConflict(head.namespace, event_id, recorded_row[1])
        return Appended(event_id, recorded_row[1], recorded_row[6], recorded_row[14], True)

    def _check(self, head: StagedHead, request: AppendRequest, index: int, version_before: int) -> None:
        """Refuse the draft `index`: its subject is erased, the version is not the expected one, `through` is wrong."""
        draft = request.drafts[index]
        if self._encryption is not None:
            self._encryption.check(head.namespace, draft)
        expected = request.expected_version
        if expected is not None and expected != version_before:
            raise VersionConflict(request.namespace, expected, version_before)
        if draft.type in CURSOR_EVENT_TYPES and draft.encoding == ENCODING_JSON:
            _check_through(draft, head.version + 1, index)

    def _check_not_erased(self, head: StagedHead, event_id: str) -> None:
        """Raise `Erased` for the id of an erased event."""
        if not head.erasure_version or self._encryption is None:
            return
        erased = self._stored_id(self._encryption.keys.erased_id(head.namespace, event_id))
        if self._find((head.key, erased)) is not None:
            raise Erased(
                f"the event {event_id!r} of namespace {head.namespace!r} was erased, so it is not recorded again; "
                "leave it out"
            )

    def _opened(self, head: StagedHead, event_id: str, row: StoredEvent) -> StoredEvent:
        """Return a recorded row with its decrypted payload."""
        if row[11] != ENCODING_AES or self._encryption is None:
            return row
        event = self._encryption.opened(RecordedEvent(head.namespace, row[1], event_id, *row[3:]))
        return (*row[:11], event.encoding, event.payload, *row[13:])

    def _add(self, head: StagedHead, draft: EventDraft, stored_id: StoredId | None) -> Appended:
        """Stage `draft` as the next version of `head`.

        It runs for every event within the log's lock, so its steps are written out: a call takes 0.1 µs.
        """
        (
            given_id,
            name,
            schema_version,
            occurred_at_us,
            session_id,
            actor,
            causation_id,
            correlation_id,
            encoding,
            payload,
            subject,
        ) = draft
        event_id = given_id
        if event_id is None or stored_id is None:
            uuid = uuid_utils.uuid7()
            event_id, stored_id = str(uuid), self._stored_uuid(uuid)
        version = head.version + 1
        if self._encryption is not None and encoding == ENCODING_JSON:
            encoding, payload = self._encryption.sealed(head.namespace, version, event_id, name, subject, payload)
        recorded_at_us = self._now_us if self._now_us > head.recorded_at_us else head.recorded_at_us
        if occurred_at_us is None:
            occurred_at_us = recorded_at_us
        # The fields of the leaf's header, which are also columns.
        columns = (
            name,
            schema_version,
            occurred_at_us,
            recorded_at_us,
            session_id,
            actor,
            causation_id,
            correlation_id,
            encoding,
        )
        event_leaf = leaf((head.namespace, version, event_id, *columns), payload)
        chain_hash = link(head.hash, event_leaf)
        row = (head.key, version, stored_id, *columns, payload, event_leaf, chain_hash)
        self.rows.append(row)
        if given_id is not None:
            self._by_id[head.key, stored_id] = row
        head.version, head.hash, head.recorded_at_us, head.moved = version, chain_hash, recorded_at_us, True
        return make_appended((event_id, version, recorded_at_us, chain_hash, False, ()))


def _check_through(draft: EventDraft, version: int, index: int) -> None:
    """Refuse a version of the last event read over the event's own, since the job would skip all events up to it."""
    payload = orjson.loads(draft.payload)
    for field in ("through", "llm_through"):
        through = payload.get(field)
        if through is None or through <= version:
            continue
        raise InvalidEvent(
            f"{through} is over {version}, the version of this event, so events that are not recorded yet would count "
            f"as read; leave `{field}` out",
            field=f"events.{index}.payload.{field}",
        )


def _same_content(row: StoredEvent, draft: EventDraft) -> bool:
    """Return whether a recorded row and `draft` have the same content; a draft without a time equals any time.

    The same time with another offset is the same time, so that an import from before offsets were kept can be repeated.
    """
    return (
        row[3:5] == (draft.type, draft.schema_version)
        and draft.occurred_at_us in (None, row[5])
        and row[7:12] == (draft.session_id, draft.actor, draft.causation_id, draft.correlation_id, draft.encoding)
        and (row[12] == draft.payload or (draft.encoding == ENCODING_JSON and differ_in_offset(row[12], draft.payload)))
    )
