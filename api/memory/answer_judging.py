"""Answer judging: the method of `Recollect` that records what an agent answered, and checks it by what it cites."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from recollect.api.as_of import AsOf
from recollect.api.memory.memory_edits import edit_drafts
from recollect.api.pages.list_pages import PAGE_ITEMS, find_memory
from recollect.api.result_types import EventItem, JudgedAnswer, Page
from recollect.events.envelope import Appended, EventDraft, rfc3339
from recollect.events.errors import NotFound
from recollect.events.limits import check_namespace
from recollect.jobs.llm.grounding import SENTENCE_SHARE_MIN, SourceEvidence, SourceLine
from recollect.projections.queries.snapshot import Snapshot
from recollect.projections.text.sentences import split_sentences
from recollect.projections.text.statement_lines import fact_line

#: Statuses of memories that no longer hold.
_OVER = frozenset(("superseded", "ended", "invalidated"))
#: Relations of the cited documents that are read.
_RELATIONS_MAX = 1_000
#: Fields that say what a memory without a text is.
_TEXT_FIELDS = ("subject", "source", "type", "target", "name", "value", "trigger")
#: Characters of a sentence in the reason of a check.
_REASON_CHARS_MAX = 120


class _Cited(NamedTuple):
    """A cited memory."""

    id: str
    kind: str
    line: SourceLine
    is_over: bool
    source_events: tuple[str, ...]


class AnswerJudging(ABC):
    """Records answers with a judgement."""

    @abstractmethod
    def append_drafts(
        self, namespace: str, validated: Sequence[EventDraft], *, expected_version: int | None = None
    ) -> list[Appended]:
        """Append validated events."""

    @abstractmethod
    def events(self, namespace: str, *, after: int = 0, limit: int = PAGE_ITEMS) -> Page[EventItem]:
        """Return a page of the log."""

    @abstractmethod
    def _reading(self, namespace: str, as_of: AsOf = None) -> AbstractContextManager[Snapshot]:
        """Open the read model."""

    def record_answer(
        self, namespace: str, text: str, cited: Sequence[str], *, trace_id: str | None = None
    ) -> JudgedAnswer:
        """Append what an agent answered as `answer.given`, with four checks, and return them.

        ``cites``: it cites something. ``current``: all cited memories hold. ``governed``: it cites the document that
        governs what a cited document only mentions. ``grounded``: the cited memories have the names, numbers, dates and
        a third of the other words of each sentence.

        Parameters:
            text: the answer.
            cited: the ids of the memories that it used, as a retrieval returned them.
            trace_id: the trace of that retrieval.

        Raises:
            NotFound: no memory has one of the ids.
        """
        with self._reading(check_namespace(namespace)) as snapshot:
            memories = [self._cited(namespace, snapshot, memory_id) for memory_id in cited]
            checks = [
                _check("cites", None if memories else "it cites no memory"),
                _check("current", _over(snapshot, memories)),
                _check("governed", _ungoverned(snapshot, memories)),
                _check("grounded", _ungrounded(text, memories)),
            ]
        sources = list(dict.fromkeys(source for memory in memories for source in memory.source_events))
        payload = {"text": text, "trace_id": trace_id, "cited": list(cited), "checks": checks, "source_events": sources}
        [appended] = self.append_drafts(namespace, edit_drafts([{"type": "answer.given", "payload": payload}]))
        return {"event_id": appended.id, "version": appended.version, "checks": checks}

    def _cited(self, namespace: str, snapshot: Snapshot, memory_id: str) -> _Cited:
        """Return a cited memory; raise `NotFound` when there is none."""
        memory = find_memory(snapshot, memory_id)
        if memory is None:
            raise NotFound(f"there is no memory {memory_id!r}; give ids that a retrieval returned", field="cited")
        fields: dict[str, Any] = dict(memory)
        said_at = fields.get("occurred_at") or fields.get("created_at") or fields.get("added_at") or rfc3339(0)
        speaker = fields.get("speaker") or fields.get("title") or ""
        sources = fields.get("source_events") or [memory_id]
        if fields["kind"] == "document":
            sources = [event["id"] for event in self.events(namespace, after=fields["version"] - 1, limit=1)["items"]]
        line = SourceLine(speaker, _text_of(fields), datetime.fromisoformat(said_at))
        valid_until = fields.get("valid_until")
        is_over = fields.get("status") in _OVER or (
            valid_until is not None and datetime.fromisoformat(valid_until) <= datetime.now(UTC)
        )
        return _Cited(str(fields["id"]), fields["kind"], line, is_over, tuple(sources))


def _check(name: str, reason: str | None) -> dict[str, Any]:
    """Return a check; one without a reason has passed."""
    passed = {"check": name, "passed": reason is None}
    return passed if reason is None else passed | {"reason": reason}


def _text_of(fields: dict[str, Any]) -> str:
    """Return what a memory of any kind says."""
    if fields["kind"] == "fact":
        return fields["statement"] or fact_line(fields["subject"], fields["predicate"], fields["object"])
    text = fields.get("text") or fields.get("description")
    return text or " ".join(str(fields[name]) for name in _TEXT_FIELDS if fields.get(name))


def _over(snapshot: Snapshot, memories: Sequence[_Cited]) -> str | None:
    """Return which cited memories no longer hold."""
    replaced = {target for _, target in snapshot.entities.document_relations_of("supersedes")}
    over = [memory.id for memory in memories if memory.is_over or memory.id in replaced]
    return f"no longer holds: {', '.join(over)}" if over else None


def _ungoverned(snapshot: Snapshot, memories: Sequence[_Cited]) -> str | None:
    """Return which governing documents are not cited."""
    documents = {memory.id for memory in memories if memory.kind == "document"}
    cited = snapshot.entities.relations_of_documents(sorted(documents), limit=_RELATIONS_MAX)
    governing = snapshot.entities.governing([target for _, _, target, _ in cited])
    missing = [document for document in governing if document not in documents]
    return f"does not cite what governs the topic: {', '.join(missing)}" if missing else None


def _ungrounded(text: str, memories: Sequence[_Cited]) -> str | None:
    """Return the first sentence that the cited memories do not bear out."""
    evidence = SourceEvidence(sorted((memory.line for memory in memories), key=lambda line: line.sent_at))
    for sentence in split_sentences(text):
        if not evidence.grounds(sentence, SENTENCE_SHARE_MIN):
            return f"the cited memories do not say: {sentence.strip()[:_REASON_CHARS_MAX]}"
    return None
